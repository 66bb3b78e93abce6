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
    }

    /// Calls the custom policy once with all conflicts and applies its resolutions. Returns the unresolved conflicts.
    mutating func settleContested(
        _ resolve: ([MergeConflict]) throws -> [ObjectID: ConflictResolution]
    ) throws -> [MergeConflict] {
        let all = contested
        guard !all.isEmpty else { return [] }
        let answers = try resolve(all.map(\.conflict))
        var open: [MergeConflict] = []
        for contest in all {
            let id = contest.conflict.objectID
            switch answers[id] {
            case nil: open.append(contest.conflict)
            case .values(let values): try write(values, contest)
            case .storeTrump: try apply(.storeTrump, contest)
            case .objectTrump: try apply(.objectTrump, contest)
            case .overwrite: try apply(.overwrite, contest)
            case .rollback: try apply(.rollback, contest)
            }
        }
        return open
    }

    private mutating func apply(_ policy: MergePolicy, _ contest: Contested) throws {
        guard let row = contest.row else { return }
        let id = contest.conflict.objectID
        try apply(policy, to: row, entity: id.entity, key: id.key, isInStore: contest.isInStore)
        if !contest.isInStore, layer.row(id.entity, id.key) == nil { abandoned.insert(.init(entity: id.entity, key: id.key)) }
    }

    private mutating func write(_ values: [String: Value], _ contest: Contested) throws {
        let id = contest.conflict.objectID
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
            let base = request.base.view
            var added = try base.exists(id.entity, id.key) ? ColumnSet() : row.set
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
            guard let column = schema.columnIndices.first(where: { schema.columns[$0].name == name }),
                schema.columns[column].accepts(value)
            else {
                throw StoreError(
                    .unsupported,
                    "cannot apply a merge policy: \(value) is not a valid value of \(schema.name).\(name). Return a value of its type."
                )
            }
            row[column] = schema.columns[column].type.stored(value)
        }
        layer.put(row, entity: id.entity, key: id.key)
    }
}
