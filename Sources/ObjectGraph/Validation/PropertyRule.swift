import StoreInterface
import StoreModel

/// A rule that the value of a property must follow when it is saved (S061).
///
/// Descriptions of attributes and relationships list rules. In models with macros, `@Attribute` and `@Relationship` list them.
/// A value of nil follows every rule except ``required``.
///
/// ```swift
/// let title = AttributeDescription(name: "title", type: .string, rules: [.length(1...80)])
/// let isrc = AttributeDescription(
///     name: "isrc", type: .string, isOptional: true, rules: [.required, .pattern("[A-Z]{2}[A-Z0-9]{3}[0-9]{7}")])
/// let tracks = RelationshipDescription(
///     name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, rules: [.count(1...)])
/// ```
public struct PropertyRule: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case required
        case length(CountBounds)
        case range(ValueBounds)
        case pattern(String)
        case count(CountBounds)
    }

    let kind: Kind

    /// The value is not nil. For optional attributes and for relationships to one object. An empty string is a value.
    public static let required = PropertyRule(kind: .required)

    /// Returns a rule for the length: the characters of a string, the bytes of data, or the elements of an array or a set.
    ///
    /// - Parameter range: A range of numbers, such as `1...80`, `1...` or `...80`.
    public static func length(_ range: some RangeExpression<Int>) -> PropertyRule {
        PropertyRule(kind: .length(CountBounds(range)))
    }

    /// Returns a rule for a number or a date. A value that is not a number (NaN) is outside of every range.
    ///
    /// - Parameter range: A range, such as `0...5`, `0.5...` or `...Date.distantFuture`. Attributes of numbers have ranges of any number
    ///   type, and attributes of dates have ranges of dates.
    public static func range<R: RangeExpression>(_ range: R) -> PropertyRule where R.Bound: AttributeValue {
        PropertyRule(kind: .range(ValueBounds(range)))
    }

    /// Returns a rule for the text of a string. The pattern must match the whole text.
    ///
    /// - Parameter pattern: A regular expression in the syntax of Swift's `Regex`. A pattern that `Regex` does not accept is an error of
    ///   the model.
    public static func pattern(_ pattern: String) -> PropertyRule { PropertyRule(kind: .pattern(pattern)) }

    /// Returns a rule for the number of objects in a relationship to many objects.
    ///
    /// - Parameter range: A range of numbers, such as `1...`, `...20` or `2...2`.
    public static func count(_ range: some RangeExpression<Int>) -> PropertyRule {
        PropertyRule(kind: .count(CountBounds(range)))
    }

    /// Returns the rules for a minimum and a maximum of objects, in which 0 means no limit. For the layer with SwiftData's spelling.
    ///
    /// - Parameter allowsNone: Whether the property may be nil. If not, a relationship to one object must lead to one.
    package static func counts(
        minimum: Int?, maximum: Int?, isToMany: Bool, allowsNone: Bool
    ) -> [PropertyRule] {
        let minimum = minimum ?? 0
        let maximum = maximum.flatMap { $0 == 0 ? nil : $0 }
        guard isToMany else { return allowsNone ? [] : [.required] }
        if minimum == 0, maximum == nil { return [] }
        return [PropertyRule(kind: .count(CountBounds(minimum: minimum, maximum: maximum, allowsNone: allowsNone)))]
    }

    /// The smallest and the largest number of objects that a rule made by ``count(_:)`` accepts; nil for other rules.
    package var countLimits: (minimum: Int, maximum: Int?)? {
        guard case .count(let bounds) = kind else { return nil }
        return (bounds.minimum, bounds.maximum)
    }
}

extension PropertyRule: CustomStringConvertible {
    /// The rule as it is written: `.length(1...80)`.
    public var description: String {
        switch kind {
        case .required: ".required"
        case .length(let bounds): ".length(\(bounds))"
        case .range(let bounds): ".range(\(bounds))"
        case .pattern(let pattern): ".pattern(\(Value.string(pattern)))"
        case .count(let bounds): ".count(\(bounds))"
        }
    }
}
