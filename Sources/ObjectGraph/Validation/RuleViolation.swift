import StoreInterface
import StoreModel

/// An error of validation: the value of a property breaks a rule of the property (S061).
///
/// ```swift
/// for case let violation as RuleViolation in track.validationErrors() {
///     print(violation.message)  // title must have 1 to 80 characters, has 0
/// }
/// ```
public struct RuleViolation: Error, Sendable, Hashable {
    /// The id of the object; nil for an object that is in no context.
    public let objectID: ObjectID?
    /// The name of the entity.
    public let entity: String
    /// The name of the property.
    public let property: String
    /// The value that breaks the rule. For a relationship to many objects, the number of objects.
    public let value: Value
    /// The broken rule.
    public let rule: PropertyRule
    /// A sentence for a person: `title must have 1 to 80 characters, has 0`.
    public let message: String
    private let valueText: String

    /// - Parameter requirement: The part of the message after the name of the property.
    init(
        objectID: ObjectID?, entity: String, property: String, value: Value, valueText: String, rule: PropertyRule,
        requirement: String
    ) {
        self.objectID = objectID
        self.entity = entity
        self.property = property
        self.value = value
        self.valueText = valueText
        self.rule = rule
        message = "\(property) \(requirement)"
    }
}

extension RuleViolation: CustomStringConvertible {
    /// The object, the property, the value, the rule, and the sentence for a person, as one line.
    public var description: String {
        let object = objectID.map { "\(entity)(id: \($0.key))" } ?? "a new \(entity)"
        return "\(object).\(property) \(valueText) breaks \(rule): \(message)"
    }
}
