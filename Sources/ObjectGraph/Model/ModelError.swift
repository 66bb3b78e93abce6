/// An error in the descriptions of a model: the entity and property, the reason and the remedy.
///
/// ```swift
/// do {
///     return try Model(descriptions)
/// } catch {
///     print(error.entity, error.property ?? "", error.remedy)
///     return nil
/// }
/// ```
public struct ModelError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason for an error. The raw value is its description.
    public enum Reason: String, Sendable, Hashable {
        case emptyName = "an empty name"
        /// A name that is used for something else, such as `position in album`. All names without spaces are allowed.
        case reservedName = "a reserved name"
        case duplicateEntity = "a second entity of this name"
        case duplicateProperty = "a second property of this name"
        case noEntities = "no entities"
        case tooManyColumns = "too many properties"
        case noSuchDestination = "no such destination"
        case noSuchInverse = "no such inverse"
        case inverseDoesNotPointBack = "the inverse does not lead back"
        case wrongDefault = "the default is of another type"
        case noSuchIndexedProperty = "an index over a property that has no column"
        case wrongIndex = "an index without properties, or with one twice"
        case unsupportedType = "an unsupported type"
        case ruleDoesNotFit = "a rule that does not fit the property"
        case wrongRule = "a rule that cannot be followed"
        case wrongDerivation = "a derivation that cannot be computed"
        case cannotBeOrdered = "a relationship that cannot be ordered"
        case noSuchSuperentity = "an unknown superentity"
        /// An entity inherits from itself, directly or through others.
        case circularInheritance = "an entity that inherits from itself"
        /// Two entities of a hierarchy declare properties of one name that cannot be one column.
        case conflictingProperty = "a property that another entity of the hierarchy declares otherwise"
    }

    /// The reason for the error.
    public var reason: Reason
    /// The name of the entity; empty if the error concerns the whole model.
    public var entity: String
    /// The name of the property; nil if the error concerns the whole entity.
    public var property: String?
    /// The change that corrects the error.
    public var remedy: String

    /// Creates an error about a description.
    public init(_ reason: Reason, entity: String, property: String? = nil, remedy: String) {
        self.reason = reason
        self.entity = entity
        self.property = property
        self.remedy = remedy
    }

    /// The entity and property, the reason and the remedy, as one line.
    public var description: String {
        "\(property.map { "\(entity).\($0)" } ?? (entity.isEmpty ? "the model" : entity)): \(reason.rawValue); \(remedy)"
    }
}
