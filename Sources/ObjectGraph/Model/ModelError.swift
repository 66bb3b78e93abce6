/// Why descriptions do not make a model: names the entity and the property, the reason and the remedy.
public struct ModelError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The raw value says it in words.
    public enum Reason: String, Sendable, Hashable {
        case emptyName = "an empty name"
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
    }

    public var reason: Reason
    public var entity: String
    public var property: String?
    public var remedy: String

    public init(_ reason: Reason, entity: String, property: String? = nil, remedy: String) {
        self.reason = reason
        self.entity = entity
        self.property = property
        self.remedy = remedy
    }

    public var description: String {
        "\(property.map { "\(entity).\($0)" } ?? (entity.isEmpty ? "the model" : entity)): \(reason.rawValue); \(remedy)"
    }
}
