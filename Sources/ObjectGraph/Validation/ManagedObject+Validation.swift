import StoreInterface
import StoreModel

/// Validation of one object at any time, for forms and before a save.
extension ManagedObject {
    /// Returns the errors that a save of the object would report for it now: the broken rules of its properties, then the error of its
    /// hook `validateForInsert`, `validateForUpdate` or `validateForDelete`.
    ///
    /// Empty if the object is valid, and for an object whose record is gone. A deleted object is validated by its hook alone. An object that
    /// is in no context is validated by the rules of its attributes and by its hook; rules of relationships apply in a context.
    /// In the main context, `withObservationTracking` observes all properties with rules.
    /// O(properties with rules + objects in relationships with such a rule).
    public func validationErrors() -> [any Error] {
        arrive()
        guard state != .detached else {
            return (detachedViolations() as [any Error]) + (detachedHookError().map { [$0] } ?? [])
        }
        let context = requiredContext
        context.checkIsolation()
        noteReads(in: context)
        if isGone { return [] }
        let kind = context.layerStack.pendingKind(entity, key) ?? (isDeletedHere ? .delete : .update)
        var errors: [any Error] = []
        if kind != .delete {
            do {
                errors += try context.ruleViolations(of: self) as [any Error]
                errors += try context.refusedReplacements().filter { $0.objectID == objectID } as [any Error]
            } catch { return [error] }
        }
        if let error = context.hookError(self, kind) { errors.append(error) }
        return errors
    }

    /// Throws the first broken rule of a property, of those that ``validationErrors()`` lists.
    ///
    /// - Parameter property: The name of an attribute or a relationship.
    /// - Precondition: The entity has a property with this name.
    /// - Throws: ``RuleViolation``, and `StoreError` if the store cannot be read.
    public func validate(_ property: String) throws {
        arrive()
        guard state != .detached else { return try throwFirst(of: property, in: detachedViolations()) }
        let context = requiredContext
        context.checkIsolation()
        precondition(
            definition.column(named: property) != nil || definition.relationship(named: property) != nil,
            "\(definition.name) has no property named \(property)")
        noteReads(in: context)
        if !isDeletedHere { try throwFirst(of: property, in: try context.ruleViolations(of: self)) }
    }

    /// Tells observers of the object which properties a validation reads.
    private func noteReads(in context: ManagedObjectContext) {
        guard context.observed.isOn, let rules = context.capabilities.validation?.entities[entity] else { return }
        willRead(.isDeleted)
        for rule in rules.columns { willRead(.column(rule.column)) }
        for rule in rules.counts { willRead(.toMany(rule.relationship)) }
    }

    private func throwFirst(of property: String, in violations: [RuleViolation]) throws {
        if let first = violations.first(where: { $0.property == property }) { throw first }
    }

    private func detachedViolations() -> [RuleViolation] {
        guard let entity = detachedState?.entity, let rules = entity.rules else { return [] }
        return rules.columns.compactMap { rule in
            guard rule.form.type != .reference else { return nil }
            let value = rawValue(rule.column)
            return rule.violation(value.isNull ? entity.emptyValue(rule.column) : value, entity: rules.entity, id: nil)
        }
    }

    private func detachedHookError() -> (any Error)? {
        guard let model = model as? any ManagedObjectLifecycle else { return nil }
        do { try model.validateForInsert() } catch { return error }
        return nil
    }
}

extension PersistentModel {
    /// Returns the errors that a save of the object would report for it now: see ``ManagedObject/validationErrors()``.
    public func validationErrors() -> [any Error] {
        if managedObject.state == .detached { managedObject.claim(self) }
        return managedObject.validationErrors()
    }

    /// Throws the first broken rule of a property, of those that ``validationErrors()`` lists.
    ///
    /// ```swift
    /// do { try track.validate(\.title) } catch { show("\(error)") }
    /// ```
    /// - Throws: ``RuleViolation``, and `StoreError` if the store cannot be read. ``FetchError`` `.unknownProperty` for a key path to no stored
    ///   property.
    public func validate(_ property: PartialKeyPath<Self>) throws {
        guard let name = Self.columnsByKeyPath[property] else {
            throw FetchError.unknownProperty(entity: Self.entityName, property: RowText.property(property))
        }
        if managedObject.state == .detached { managedObject.claim(self) }
        try managedObject.validate(name)
    }
}
