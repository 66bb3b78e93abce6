import StoreInterface

/// Checks unique constraints (S108): no two objects have the same values in all columns of a constraint. Nulls are distinct.
///
/// Only values after the save count, so two objects may swap their values. Policies resolve a duplicate as follows:
/// - A new object duplicates a row of the store: `objectTrump` and `overwrite` write its values to that row, `storeTrump` and
///   `rollback` drop it. References to the new object then refer to the row.
/// - An updated object duplicates a row of the store: `storeTrump` drops the change of these columns, `rollback` drops the object's
///   changes. Other policies throw.
/// - Two objects of one save have the same values: every policy throws.
extension SaveCheck {
    struct UniqueConstraint {
        var entity: Int
        var columns: [Int]
    }

    /// A changed object and the row of the store that has the same values.
    struct UniquenessConflict {
        var constraint: UniqueConstraint
        var values: [Value]
        var ours: ObjectKey
        var theirs: ObjectKey
    }

    mutating func checkUnique() throws {
        // A resolution may make references equal that are unique themselves. Each round removes at least one object or value.
        while let twins = try firstTwins() {
            var replaced: [ObjectKey: ObjectKey] = [:]
            for twin in twins { try resolve(twin, &replaced) }
            if !replaced.isEmpty { redirect(twins[0].constraint.entity, replaced) }
        }
    }

    /// Returns the conflicts of the first constraint that has any.
    private func firstTwins() throws -> [UniquenessConflict]? {
        let layer = layer
        for (entity, schema) in writer.store.schema.entities.enumerated() {
            guard let changes = layer.entity(entity) else { continue }
            for (column, definition) in schema.columns.enumerated() where definition.index == .unique {
                let twins = try twins(changes, .init(entity: entity, columns: [column]), layer)
                if !twins.isEmpty { return twins }
            }
            for index in schema.indexes where index.kind == .unique {
                let twins = try twins(changes, .init(entity: entity, columns: index.columns), layer)
                if !twins.isEmpty { return twins }
            }
        }
        return nil
    }

    private func twins(_ changes: EntityLayer, _ constraint: UniqueConstraint, _ layer: Layer) throws -> [UniquenessConflict] {
        var seen: [[Value]: ObjectKey] = [:]
        var twins: [UniquenessConflict] = []
        let columns = constraint.columns
        for number in changes.sortedPageNumbers {
            guard let page = changes.page(number) else { continue }
            for slot in SlotIterator(page.inserted | page.updated) {
                guard let row = page[slot], columns.contains(where: row.isSet) else { continue }
                let key = PageAddress.key(page: number, slot: slot)
                let values = try columns.map { column in
                    try row.isSet(column) ? row[column] : state.view.value(constraint.entity, key, column) ?? .null
                }
                if values.contains(where: \.isNull) { continue }
                if let other = seen.updateValue(key, forKey: values) { throw duplicate(values, constraint, [other, key]) }
                if let holder = try holder(of: values, constraint, layer, key) {
                    twins.append(UniquenessConflict(constraint: constraint, values: values, ours: key, theirs: holder))
                }
            }
        }
        return twins
    }

    /// Returns another object that has these values and whose values in these columns this save does not change.
    private func holder(
        of values: [Value], _ constraint: UniqueConstraint, _ layer: Layer, _ key: ObjectKey
    ) throws -> ObjectKey? {
        let view = state.view
        let (entity, columns) = (constraint.entity, constraint.columns)
        var candidates =
            columns.count == 1
            ? try state.base.lookup(entity, column: columns[0], value: values[0])
            : try state.base.lookup(entity, columns: columns, values: values)
        for deferred in state.deferred {
            for (column, value) in zip(columns, values) {
                candidates += deferred.candidates(entity: entity, column: column, value: value)
            }
        }
        return try candidates.first { other in
            guard other != key else { return false }
            if let own = layer.row(entity, other), own.kind == .delete || columns.contains(where: own.isSet) { return false }
            return try zip(columns, values).allSatisfy { try view.value(entity, other, $0) == $1 }
        }
    }

    // MARK: Resolving

    private mutating func resolve(_ twin: UniquenessConflict, _ replaced: inout [ObjectKey: ObjectKey]) throws {
        let entity = twin.constraint.entity
        guard let row = layer.row(entity, twin.ours) else { return }
        switch (request.policy, row.kind) {
        case (.objectTrump, .insert), (.overwrite, .insert):
            let layer = writable()
            let update = row.copy(layer: layer.id)
            update.kind = .update
            layer.put(update, entity: entity, key: twin.theirs)
            layer.remove(entity: entity, key: twin.ours)
            replaced[twin.ours] = twin.theirs
        case (.storeTrump, .insert), (.rollback, .insert):
            writable().remove(entity: entity, key: twin.ours)
            replaced[twin.ours] = twin.theirs
        case (.storeTrump, .update):
            let layer = writable()
            let rest = row.copy(layer: layer.id)
            for column in twin.constraint.columns { rest.clear(column) }
            if rest.set.isEmpty {
                layer.remove(entity: entity, key: twin.ours)
            } else {
                layer.put(rest, entity: entity, key: twin.ours)
            }
        case (.rollback, .update):
            writable().remove(entity: entity, key: twin.ours)
        default:
            throw duplicate(twin.values, twin.constraint, [twin.theirs, twin.ours])
        }
    }

    /// Redirects references from objects that are not inserted to the rows that replace them. O(rows of the layer).
    private mutating func redirect(_ entity: Int, _ replaced: [ObjectKey: ObjectKey]) {
        let layer = writable()
        let schema = writer.store.schema
        for (number, definition) in schema.entities.enumerated() {
            let columns = definition.columns.indices.filter { definition.columns[$0].destination == entity }
            guard !columns.isEmpty, let changes = layer.entity(number) else { continue }
            for pageNumber in changes.sortedPageNumbers {
                guard let page = changes.page(pageNumber) else { continue }
                for slot in SlotIterator(page.inserted | page.updated) {
                    guard let row = page[slot] else { continue }
                    let moved = columns.compactMap { column -> (Int, ObjectKey)? in
                        guard row.isSet(column), let old = row[column].referenceKey, let new = replaced[old] else { return nil }
                        return (column, new)
                    }
                    guard !moved.isEmpty else { continue }
                    let copy = row.copy(layer: layer.id)
                    for (column, key) in moved { copy[column] = .reference(key) }
                    layer.put(copy, entity: number, key: PageAddress.key(page: pageNumber, slot: slot))
                }
            }
        }
        for (number, link) in schema.links.enumerated() where link.source == entity || link.destination == entity {
            for (source, pairs) in layer.links[number].forward {
                for (destination, isLinked) in pairs {
                    let newSource = link.source == entity ? replaced[source] ?? source : source
                    let newDestination = link.destination == entity ? replaced[destination] ?? destination : destination
                    guard newSource != source || newDestination != destination else { continue }
                    layer.forgetLink(number, source, destination)
                    if isLinked { layer.setLink(number, newSource, newDestination, linked: true) }
                }
            }
        }
    }

    private func duplicate(_ values: [Value], _ constraint: UniqueConstraint, _ keys: [ObjectKey]) -> SaveError {
        let schema = writer.store.schema.entities[constraint.entity]
        return .uniqueConstraint(
            entity: schema.name, properties: constraint.columns.map { schema.columns[$0].name }, values: values,
            objects: keys.map { ObjectID(store: writer.store.identity, entity: constraint.entity, key: $0) })
    }
}
