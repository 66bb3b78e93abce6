import StoreInterface
import StoreModel

/// Custom merge policies (S109).
extension SaveCheck {
    /// An object whose conflict is passed to the custom policy.
    struct Contested {
        var conflict: MergeConflict
        /// The context's change; nil for an object that was only watched.
        var row: Row?
        var isInStore: Bool
        /// The changed object: that of the conflict, or the position of a member in the list that the conflict is about.
        var place: ObjectAddress

        var isPosition: Bool { place.entity != conflict.objectID.entity || place.key != conflict.objectID.key }
    }

    /// Calls the custom policy once with all conflicts and applies its resolutions. Returns the unresolved conflicts.
    mutating func settleContested(
        _ resolve: ([MergeConflict]) throws -> [ObjectID: ConflictResolution]
    ) throws -> [MergeConflict] {
        let all = contested
        guard !all.isEmpty else { return [] }
        let conflicts = joined(all.map(\.conflict))
        let answers = try resolve(conflicts)
        for contest in all {
            switch answers[contest.conflict.objectID] {
            case nil: break
            case .values(let values): try write(values, contest)
            case .storeTrump: try apply(.storeTrump, contest)
            case .objectTrump: try apply(.objectTrump, contest)
            case .overwrite: try apply(.overwrite, contest)
            case .rollback: try apply(.rollback, contest)
            }
        }
        return conflicts.filter { answers[$0.objectID] == nil }
    }

    /// Returns one conflict per object, with the properties of all of its conflicts: several members of its lists may have moved.
    private func joined(_ conflicts: [MergeConflict]) -> [MergeConflict] {
        var joined: [MergeConflict] = []
        var places: [ObjectID: Int] = [:]
        for conflict in conflicts {
            guard let place = places[conflict.objectID] else {
                places[conflict.objectID] = joined.count
                joined.append(conflict)
                continue
            }
            let known = Set(joined[place].properties.map(\.name))
            joined[place].properties += conflict.properties.filter { !known.contains($0.name) }
        }
        return joined
    }

    private mutating func apply(_ policy: MergePolicy, _ contest: Contested) throws {
        guard let row = contest.row else { return }
        let place = contest.place
        try apply(policy, to: row, entity: place.entity, key: place.key, isInStore: contest.isInStore)
        if !contest.isInStore, layer.row(place.entity, place.key) == nil { abandoned.insert(place) }
    }

    private mutating func write(_ values: [String: Value], _ contest: Contested) throws {
        let id = contest.place
        // Properties without a value keep the store's, and the order of a list is no property that a policy can set.
        if contest.isPosition { return writable().remove(entity: id.entity, key: id.key) }
        let schema = writer.store.schema.entities[id.entity]
        let layer = writable()
        let row: Row
        if contest.isInStore {
            if contest.row?.kind == .delete { kept.append(.init(entity: id.entity, key: id.key)) }
            guard !values.isEmpty else { return layer.remove(entity: id.entity, key: id.key) }
            row = Row.make(kind: .update, layer: layer.id, columnCount: schema.columns.count)
        } else {
            row =
                contest.row?.copy(layer: layer.id) ?? Row.make(kind: .insert, layer: layer.id, columnCount: schema.columns.count)
            row.kind = .insert
            noteWrittenAgain(id, row: contest.row, setting: values)
            let base = request.base.view
            let isInBase = try base.exists(id.entity, id.key)
            // A suspension has released the other values of the deleted object, so that the policy cannot write the object again.
            guard isInBase || row.set.count == row.columnCount else {
                abandoned.insert(id)
                return layer.remove(entity: id.entity, key: id.key)
            }
            var added = isInBase ? ColumnSet() : row.set
            for column in schema.columnIndices where !row.isSet(column) {
                row[column] = try base.value(id.entity, key: id.key, column: column) ?? .null
                added.insert(column)
            }
            for name in values.keys {
                if let column = schema.columnIndices.first(where: { schema.columns[$0].name == name }) { added.remove(column) }
            }
            restored[.init(entity: id.entity, key: id.key)] = added
        }
        for (name, value) in values {
            let found = schema.columnIndices.first { schema.columns[$0].name == name }
            if found == nil, isList(name, contest) { continue }
            guard let column = found, schema.columns[column].accepts(value) else {
                throw StoreError(
                    .unsupported,
                    "cannot apply a merge policy: \(value) is not a valid value of \(schema.name).\(name). Return a value of its type."
                )
            }
            row[column] = schema.columns[column].type.stored(value)
        }
        // The answer names nothing but lists.
        if contest.isInStore, row.set.isEmpty { return layer.remove(entity: id.entity, key: id.key) }
        try setPositions(in: row, for: values, contest)
        layer.put(row, entity: id.entity, key: id.key)
    }

    /// Returns whether the joined conflict of an object has named a list in which members have moved.
    private func isList(_ name: String, _ contest: Contested) -> Bool {
        contested.contains { other in
            other.isPosition && other.conflict.objectID == contest.conflict.objectID
                && other.conflict.properties.contains { $0.name == name }
        }
    }

    /// Sets the positions in the lists into which resolved values put an object: ours if it is our list, else at the end.
    private func setPositions(in row: Row, for values: [String: Value], _ contest: Contested) throws {
        let (id, columns) = (contest.place, writer.store.schema.entities[contest.place.entity].columns)
        var ends = ListEnds()
        for reference in request.rules.ordered[id.entity]
        where values[columns[reference.column].name] != nil && values[columns[reference.position].name] == nil {
            guard let owner = row[reference.column].referenceKey else { continue }
            let base = request.base.view
            if !contest.isInStore, try base.value(id.entity, key: id.key, column: reference.column)?.referenceKey == owner {
                // The object comes back in the list in which the context has read it.
                if let own = contest.row, own.isSet(reference.column), own[reference.column].referenceKey != owner {
                    row[reference.position] = try base.value(id.entity, key: id.key, column: reference.position) ?? .null
                }
                continue
            }
            if let own = contest.row, own.isSet(reference.column), own.isSet(reference.position),
                own[reference.column].referenceKey == owner
            {
                row[reference.position] = own[reference.position]
            } else if try state.view.value(id.entity, key: id.key, column: reference.column)?.referenceKey != owner {
                row[reference.position] = try ends.append(id.key, of: id.entity, to: owner, reference, in: after).value
            }
        }
    }
}
