import StoreInterface
import StoreModel

/// A column of a value request: a property, or a value computed from the objects of a group (S133). By names.
///
/// ```swift
/// let plays = ResultColumn.sum("playCount").named("plays")
/// ```
public struct ResultColumn: Sendable, Hashable {
    /// The source of a column's values.
    public enum Source: Sendable, Hashable {
        /// An attribute, a to-one relationship, or a path to one of them through to-one relationships: `"album.title"`.
        case property(String)
        /// The id of each object.
        case objectID
        /// The number of objects.
        case count
        /// The number of objects that have a value.
        case countValues(String)
        /// The sum of an attribute.
        case sum(String)
        /// The least value of an attribute.
        case minimum(String)
        /// The greatest value of an attribute.
        case maximum(String)
        /// The mean of an attribute.
        case average(String)
    }

    /// The source of the column's values.
    public var source: Source
    /// The name of the column in the result.
    public var name: String
    /// The path of a property, whatever the name of the column; the name of another column.
    var path: String { if case .property(let path) = source { path } else { name } }

    /// Creates a column. Without a name, it is named after its source: a property by its path, an aggregate like
    /// `sum(playCount)`.
    public init(_ source: Source, as name: String? = nil) {
        self.source = source
        self.name = name ?? source.defaultName
    }

    /// Returns a column of a property, named by its path.
    public static func property(_ path: String) -> ResultColumn { ResultColumn(.property(path)) }
    /// A column of each object's id, named `objectID`.
    public static var objectID: ResultColumn { ResultColumn(.objectID) }
    /// A column of the number of objects, named `count`.
    public static var count: ResultColumn { ResultColumn(.count) }
    /// Returns a column of the number of objects that have a value, named `count(attribute)`.
    public static func count(_ attribute: String) -> ResultColumn { ResultColumn(.countValues(attribute)) }
    /// Returns a column of an attribute's sum, named `sum(attribute)`. The sum of no values is zero.
    public static func sum(_ attribute: String) -> ResultColumn { ResultColumn(.sum(attribute)) }
    /// Returns a column of an attribute's least value, named `min(attribute)`. It is null if there are no values.
    public static func min(_ attribute: String) -> ResultColumn { ResultColumn(.minimum(attribute)) }
    /// Returns a column of an attribute's greatest value, named `max(attribute)`. It is null if there are no values.
    public static func max(_ attribute: String) -> ResultColumn { ResultColumn(.maximum(attribute)) }
    /// Returns a column of an attribute's mean, a double, named `average(attribute)`. It is null if there are no values.
    public static func average(_ attribute: String) -> ResultColumn { ResultColumn(.average(attribute)) }

    /// Returns the column with another name.
    public func named(_ name: String) -> ResultColumn { ResultColumn(source, as: name) }

    /// Returns a condition on the column, for a request's `having`.
    public func `is`(_ comparison: StorePredicate.Comparison, _ value: some AttributeValue) -> Condition {
        .compare(name, comparison, to: value.storeValue)
    }
}

extension ResultColumn.Source {
    fileprivate var defaultName: String {
        switch self {
        case .property(let path): path
        case .objectID: "objectID"
        case .count: "count"
        case .countValues(let name): "count(\(name))"
        case .sum(let name): "sum(\(name))"
        case .minimum(let name): "min(\(name))"
        case .maximum(let name): "max(\(name))"
        case .average(let name): "average(\(name))"
        }
    }
}
