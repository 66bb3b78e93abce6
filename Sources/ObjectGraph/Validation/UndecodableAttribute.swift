/// An error of validation: an assignment would destroy a stored value that the property's type cannot decode (S179).
///
/// Another version of the program has written the value, or the type has changed since. To keep the value, correct the type: give a new
/// field a default in `init(from:)`, or add the missing case. To replace the value, call ``PersistentModel/allowOverwriting(_:)``.
/// The stored bytes are the value of `object.managedObject["name"]` before the assignment.
///
/// ```swift
/// do {
///     try await context.save()
/// } catch SaveError.validation(let errors) {
///     for (_, error) in errors {
///         if let undecodable = error as? UndecodableAttribute { print(undecodable.property, undecodable.reason) }
///     }
/// }
/// ```
public struct UndecodableAttribute: Error, Sendable, Hashable {
    /// The id of the object.
    public let objectID: ObjectID
    /// The name of the entity.
    public let entity: String
    /// The name of the property.
    public let property: String
    /// The type of the property, and the reason why it cannot decode the stored value.
    public let reason: String
}

extension UndecodableAttribute: CustomStringConvertible {
    /// The object, the property, the reason, and the remedies, as one line.
    public var description: String {
        "cannot save \(entity)(id: \(objectID.key)).\(property): its stored value does not decode as \(reason), and the assignment would destroy it. "
            + "Correct the type so that it decodes the value, or replace the value after allowOverwriting(_:)."
    }
}
