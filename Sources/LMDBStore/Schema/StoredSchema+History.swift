import StoreInterface
import StoreModel

extension [StoredSchema] {
    /// Translates a row of the history to the positions of the current schema. Leaves out parts that were removed since.
    func translated(_ changes: ChangeSet, of save: Generation) -> ChangeSet {
        // The versions ascend by generation. A save belongs to the last version that took effect before it.
        guard let current = last, let then = self.last(where: { $0.generation < save }) ?? first,
            then.entities.map(\.number) != current.entities.map(\.number) || !then.hasColumns(of: current)
                || then.links.map(\.number) != current.links.map(\.number)
                || then.links.map(\.isReversed) != current.links.map(\.isReversed)
        else { return changes }
        return changes.translated { entity in
            guard let position = current.position(ofEntity: entity, in: then) else { return nil }
            return (position, current.columns(of: position, from: entity, in: then))
        } link: { link in
            guard then.links.indices(as: LinkIndex.self).contains(link),
                let position = current.link(number: then.links[link].number)
            else { return nil }
            return (position, then.links[link].isReversed != current.links[position].isReversed)
        }
    }
}

extension StoredSchema {
    fileprivate func hasColumns(of other: StoredSchema) -> Bool {
        entities.map { $0.columns.map(\.number) } == other.entities.map { $0.columns.map(\.number) }
    }

    fileprivate func position(ofEntity entity: EntityIndex, in older: StoredSchema) -> EntityIndex? {
        guard older.entities.indices(as: EntityIndex.self).contains(entity) else { return nil }
        return self.entity(number: older.entities[entity].number)
    }

    /// Returns, per column of the older schema, its position in this schema.
    fileprivate func columns(of position: EntityIndex, from entity: EntityIndex, in older: StoredSchema) -> [ColumnIndex?] {
        older.entities[entity].columns.map { entities[position].column(number: $0.number) }
    }
}
