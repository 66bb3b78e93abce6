import StoreInterface
import StoreModel

/// Notifying the observers of objects (S146). Without observed objects, each change costs one branch.
extension ManagedObjectContext {
    /// A Boolean value that indicates whether properties can be observed with `withObservationTracking` and `Observations`.
    ///
    /// True in contexts on the main actor, and false in others, where each read then costs less. Reads made before it is set to true are not
    /// observed. Observers are called on the context's executor.
    ///
    /// ```swift
    /// withObservationTracking {
    ///     label.text = track.title
    /// } onChange: {
    ///     Task { @MainActor in render() }
    /// }
    /// ```
    public var isObservable: Bool {
        get { observed.isOn }
        set {
            checkIsolation()
            observed.isOn = newValue
            registry.forEach { $0.readsDirectly = false }
        }
    }

    var observed: ObservedObjects { environment.observed }

    // MARK: Changes of one property

    /// Runs a group of changes. Call this only if there are observed objects.
    func changingObserved<R>(_ body: () throws -> R) rethrows -> R {
        observed.begin()
        defer { observed.end() }
        return try body()
    }

    func willChange(_ entity: EntityIndex, key: ObjectKey, property: ObservedProperty) {
        observed.willChange(registry.object(entity, key), property)
    }

    /// Announces a change of a to-one relationship and of its inverse, for the object, its former and its new partner.
    func willSetToOne(
        _ object: ManagedObject, relationship: Relationship, column: ColumnIndex, from old: ObjectKey?, to new: ObjectKey?
    ) {
        observed.willChange(object, .column(column))
        guard let inverse = relationship.inverse.map({ storedModel.entities[relationship.destination].relationships[$0] }) else {
            return
        }
        if case .toOne(let back) = inverse.kind, let new,
            let partner = readBelowOrOwn(relationship.destination, key: new, column: back)?.referenceKey
        {
            willChange(object.entity, key: partner, property: .column(column))
        }
        for key in [old, new] {
            if let key { willChange(relationship.destination, key: key, property: inverse.observed) }
        }
    }

    /// Announces that a to-many relationship gains and loses members.
    func willChangeToMany(_ object: ManagedObject, _ relationship: Relationship, adding: [ObjectKey], removing: [ObjectKey]) {
        guard case .toMany(let relation) = relationship.kind, !(adding.isEmpty && removing.isEmpty) else { return }
        observed.willChange(object, .toMany(relationship.number))
        if case .referrers(let entity, let column) = relation {
            for key in adding {
                guard let owner = readBelowOrOwn(entity, key: key, column: column)?.referenceKey else { continue }
                willChange(object.entity, key: owner, property: .toMany(relationship.number))
            }
        }
        guard let inverse = relationship.inverse.map({ storedModel.entities[relationship.destination].relationships[$0] }) else {
            return
        }
        for key in adding + removing { willChange(relationship.destination, key: key, property: inverse.observed) }
    }

    private func readBelowOrOwn(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? {
        if let known = registry.object(entity, key) { return read(known, column) }
        return readBelow(entity, key: key, column: column)
    }

    /// Announces the deletion of an object: of all its properties, and of relationships that lead to it.
    func willDelete(_ object: ManagedObject) {
        observed.willChangeAll(of: object)
        for relationship in storedModel.entities[object.entity].relationships {
            guard let inverse = relationship.inverse.map({ storedModel.entities[relationship.destination].relationships[$0] })
            else { continue }
            let keys: [ObjectKey] =
                switch relationship.kind {
                case .toOne(let column): read(object, column)?.referenceKey.map { [$0] } ?? []
                case .toMany(let relation): toManyKeys(object, relation)
                }
            // A reference stays what it is under some rules. A cleared one is announced where it is written.
            guard case .toMany = inverse.kind else { continue }
            for key in keys { willChange(relationship.destination, key: key, property: inverse.observed) }
        }
        for container in capabilities.rules.containers[object.entity] {
            for key in toManyKeys(object, container.relation) {
                willChange(container.entity, key: key, property: .toMany(container.relationship))
            }
        }
        // A reference to a missing object reads as nil.
        guard storedModel.storeSchema.mayDangle else { return }
        for other in observed.all where other.state == .registered {
            capabilities.rules.dangling[other.entity].forEach { column in
                guard storedModel.entities[other.entity].columns[column].destination == object.entity,
                    read(other, column)?.referenceKey == object.key
                else { return }
                observed.willChange(other, .column(column))
            }
        }
    }

    // MARK: Changes of the view

    /// Runs a step that changes the view, and notifies the observers of the properties whose values differ. The step is not recorded
    /// for undo.
    ///
    /// - Parameters:
    ///   - next: The view after the step.
    ///   - changes: Changes that contain all differences of the two views; nil if they are unknown.
    ///   - own: The layers of unsaved changes that are left after the step; nil for all.
    ///   - forgetsInserted: Whether objects that do not exist after the step leave the context. Observers of those without a model are not
    ///     notified, because reading such an object stops the program.
    func showing<R>(
        _ next: @autoclosure () -> LayeredView, changes: @autoclosure () -> ChangeSet?,
        keeping own: @autoclosure () -> [Layer]? = nil,
        forgetsInserted: Bool = false, _ body: () throws -> R
    ) rethrows -> R {
        guard !observed.isEmpty else { return try withoutUndo(body) }
        return try changingObserved {
            willShow(from: layerStack.view, to: next(), changes(), keeping: own(), forgetsInserted: forgetsInserted)
            return try withoutUndo(body)
        }
    }

    /// Notifies observers of the differences between two views.
    func willShow(
        from old: LayeredView, to next: LayeredView, _ changes: ChangeSet?, keeping own: [Layer]? = nil,
        forgetsInserted: Bool = false
    ) {
        let comparison = ViewComparison(
            old: old, new: next, changes: changes, own: own ?? layerStack.sealed + [layerStack.top], rules: capabilities.rules,
            model: storedModel)
        var found: [(ManagedObject, [ObservedProperty])] = []
        for object in observed.all where object.state == .registered {
            guard let observation = object.observation else { continue }
            let changed = trapOnStoreError { try comparison.changes(of: object, observation) }
            switch changed {
            case .none: break
            case .properties(let properties): found.append((object, properties))
            case .existence(let exists):
                if exists || !forgetsInserted || object.hasModel { found.append((object, observation.properties)) }
            }
        }
        // Observers may use the context, so they are notified after the comparison.
        for (object, properties) in found {
            for property in properties { observed.willChange(object, property) }
        }
    }
}

extension Relationship {
    /// The relationship as observers identify it.
    var observed: ObservedProperty {
        switch kind {
        case .toOne(let column): .column(column)
        case .toMany: .toMany(number)
        }
    }
}

/// Finds the observed properties that differ between two views. Costs two reads per observed property of the changed objects, and per
/// observed to-many relationship that may have changed.
private struct ViewComparison {
    let old: LayeredView
    let new: LayeredView
    let changes: ChangeSet?
    /// The layers of the context's own changes in the new view.
    let own: [Layer]
    let rules: RelationshipRules
    let model: Model

    enum Difference {
        case none
        case properties([ObservedProperty])
        /// The object is new or gone. Contains whether it exists in the new view.
        case existence(Bool)
    }

    func changes(of object: ManagedObject, _ observation: ObservedObject) throws -> Difference {
        let (entity, key) = (object.entity, object.key)
        let isTouched = changes.map { contains(entity, key, in: $0) } ?? true
        if isTouched {
            let exists = try new.exists(entity, key)
            // A view that is not fixed shows the new objects already.
            let was = try areComparable ? old.exists(entity, key) : !object.isDeletedHere
            if was != exists { return .existence(exists) }
            if !exists {
                // An unsaved update of an object that is deleted below it shows its values until it is gone too.
                let isShown = !object.isDeletedHere && own.newestRow(entity, key) == nil
                return isShown ? .properties(observation.properties) : .none
            }
        }
        var columns = observation.columns
        if !isTouched { columns = columns.intersection(rules.dangling[entity]) }
        var properties: [ObservedProperty] = []
        try columns.forEach { column in
            if try differs(entity, key: key, column: column) { properties.append(.column(column)) }
        }
        for number in observation.relationships {
            let relationship = model.entities[entity].relationships[number]
            guard case .toMany(let relation) = relationship.kind, mayDiffer(relation, relationship.order) else { continue }
            if try !areComparable || old.members(of: relationship, key) != new.members(of: relationship, key) {
                properties.append(.toMany(number))
            }
        }
        return properties.isEmpty ? .none : .properties(properties)
    }

    /// Whether both views can be read. Snapshots that are not fixed show the new values already.
    private var areComparable: Bool { old.base === new.base || old.base.isFixed && new.base.isFixed }

    private func differs(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Bool {
        guard areComparable else { return true }
        return try old.shown(old.value(entity, key: key, column: column) ?? .null, entity: entity, column: column)
            != new.shown(new.value(entity, key: key, column: column) ?? .null, entity: entity, column: column)
    }

    private func contains(_ entity: EntityIndex, _ key: ObjectKey, in changes: ChangeSet) -> Bool {
        let (number, slot) = (key.page, key.slot)
        return changes.change(of: entity)?.pages.contains { page in
            page.number == number && (page.inserted | page.updated | page.deleted) >> UInt64(slot) & 1 != 0
        } ?? false
    }

    private func mayDiffer(_ relation: Relation, _ order: EntityIndex?) -> Bool {
        guard let changes else { return true }
        return order.map { changes.change(of: $0) != nil } ?? false || changes.change(of: relation.entity) != nil
            || !changes.links.isEmpty
    }
}
