import ObjectGraph

/// An option of a stored attribute: an index, the treatment of deleted values, or a rule (S061).
///
/// Rules are written out in the attribute, because the macro reads them from the source: see ``Attribute(_:renamedFrom:)``.
/// A value of nil follows every rule except ``required``.
///
/// ```swift
/// @Model final class Single {
///     @Attribute(.unique, .pattern(/[A-Z]{2}[A-Z0-9]{3}[0-9]{7}/)) var isrc: String
///     @Attribute(.length(1...80)) var title: String
///     @Attribute(.required) var recorded: Date?
///     @Attribute(.indexed, .range(0...)) var playCount = 0
///     @Relationship(.required) var label: Label?
///     @Relationship(count: 1...20) var artists: [Singer]
/// }
/// ```
public enum AttributeOption: Sendable {
    /// No two objects have the same value, where nil differs from nil. Implies an index.
    ///
    /// A save with a second object of a value throws `SaveError.uniqueConstraint`, unless the context's `MergePolicy` settles it.
    case unique
    /// Fetches by this attribute use an index. Saves take longer to update it.
    case indexed
    /// The history keeps the value of a deleted object in its tombstone.
    case preserveValueOnDeletion
    /// Values follow a rule when they are saved.
    case rule(PropertyRule)

    /// A save must not leave the value nil. An empty string is a value.
    public static var required: AttributeOption { .rule(.required) }

    /// Requires a length: the characters of a string, the bytes of data, or the elements of an array or a set.
    ///
    /// - Parameter range: A range of numbers, such as `1...80`, `1...` or `...80`.
    public static func length(_ range: some RangeExpression<Int>) -> AttributeOption { .rule(.length(range)) }

    /// Requires a number or a date in a range, such as `0...5` or `0.5...`.
    ///
    /// - Parameter range: A range of numbers for a property with numbers, and of dates for dates.
    public static func range<R: RangeExpression>(_ range: R) -> AttributeOption where R.Bound: AttributeValue {
        .rule(.range(range))
    }

    /// Requires a text that the pattern matches as a whole.
    ///
    /// - Parameter pattern: A regular expression as text.
    public static func pattern(_ pattern: String) -> AttributeOption { .rule(.pattern(pattern)) }

    /// Requires a text that the pattern matches as a whole.
    ///
    /// - Parameter pattern: A regex literal on one line, such as `/[a-z]+/`. The macro reads its text.
    public static func pattern<Output>(_ pattern: Regex<Output>) -> AttributeOption {
        preconditionFailure("a regex literal is an option of @Attribute only. Pass the pattern as text")
    }
}

/// An option of a relationship: see ``Relationship(_:deleteRule:inverse:count:renamedFrom:)``.
public enum RelationshipOption: Sendable {
    /// A save must not leave the relationship nil. For a relationship to one object.
    case required
    /// The members keep the order in which the program sets them (S046). For an array.
    case ordered
}
