import StoreInterface

/// One column of a result of values: a property, or a number computed from the objects of a group (S133). By names.
public struct ResultColumn: Sendable, Hashable {
    public enum Source: Sendable, Hashable {
        /// An attribute or a to-one relationship, or a path to one through to-one relationships: `"album.title"`.
        case property(String)
        case objectID
        /// How many objects.
        case count
        /// How many objects have a value.
        case countValues(String)
        case sum(String)
        case minimum(String)
        case maximum(String)
        case average(String)
    }

    public var source: Source
    /// What the result calls it.
    public var name: String

    public init(_ source: Source, as name: String? = nil) {
        self.source = source
        self.name = name ?? source.defaultName
    }

    /// A property; its name is the path.
    public static func property(_ path: String) -> ResultColumn { ResultColumn(.property(path)) }
    /// The id of each object; its name is `objectID`.
    public static var objectID: ResultColumn { ResultColumn(.objectID) }
    /// How many objects; its name is `count`.
    public static var count: ResultColumn { ResultColumn(.count) }
    /// How many objects have a value; its name is `count(attribute)`.
    public static func count(_ attribute: String) -> ResultColumn { ResultColumn(.countValues(attribute)) }
    /// Zero of nothing; its name is `sum(attribute)`.
    public static func sum(_ attribute: String) -> ResultColumn { ResultColumn(.sum(attribute)) }
    /// Null of nothing; its name is `min(attribute)`.
    public static func min(_ attribute: String) -> ResultColumn { ResultColumn(.minimum(attribute)) }
    /// Null of nothing; its name is `max(attribute)`.
    public static func max(_ attribute: String) -> ResultColumn { ResultColumn(.maximum(attribute)) }
    /// A double, null of nothing; its name is `average(attribute)`.
    public static func average(_ attribute: String) -> ResultColumn { ResultColumn(.average(attribute)) }

    /// The same under another name.
    public func named(_ name: String) -> ResultColumn { ResultColumn(source, as: name) }

    /// A condition on the column, for a request's `having`.
    public func `is`(_ comparison: StorePredicate.Comparison, _ value: some AttributeValue) -> Condition {
        .compare(name, comparison, value.storeValue)
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

/// A ``ResultColumn`` of a model type, by key paths.
public struct ModelColumn<M: PersistentModel>: Sendable, Hashable {
    public var column: ResultColumn

    private init(_ source: ResultColumn.Source) { column = ResultColumn(source) }

    public static func property<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.property(M.name(of: keyPath))) }
    /// A to-one relationship: the id of the related object.
    public static func property<N: PersistentModel>(_ keyPath: KeyPath<M, N?>) -> Self { Self(.property(M.name(of: keyPath))) }
    /// An attribute of a related object.
    public static func property<N: PersistentModel, V: AttributeValue>(
        _ relationship: KeyPath<M, N?>, _ keyPath: KeyPath<N, V>
    ) -> Self { Self(.property(M.name(of: relationship) + "." + N.name(of: keyPath))) }
    public static var objectID: Self { Self(.objectID) }
    public static var count: Self { Self(.count) }
    public static func count<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.countValues(M.name(of: keyPath))) }
    public static func sum<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.sum(M.name(of: keyPath))) }
    public static func min<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.minimum(M.name(of: keyPath))) }
    public static func max<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.maximum(M.name(of: keyPath))) }
    public static func average<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.average(M.name(of: keyPath))) }

    /// The same under another name.
    public func named(_ name: String) -> Self {
        var copy = self
        copy.column.name = name
        return copy
    }

    /// A condition on the column, for a request's `having`.
    public func `is`(_ comparison: StorePredicate.Comparison, _ value: some AttributeValue) -> Condition {
        column.is(comparison, value)
    }
}

extension PersistentModel {
    /// The name of a stored property; one that is not stored gets a name that no entity has, so that using it throws.
    static func name(of keyPath: AnyKeyPath) -> String { columnsByKeyPath[keyPath] ?? "\(keyPath)" }
}
