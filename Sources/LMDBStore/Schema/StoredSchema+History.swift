import StoreInterface

extension [StoredSchema] {
    /// Translates a row of the history to the positions of the current schema. Leaves out parts that were removed since.
    func translated(_ changes: ChangeSet, of save: Generation) -> ChangeSet {
        // The versions ascend by generation. A save belongs to the last version that took effect before it.
        guard let current = last, let then = self.last(where: { $0.generation < save }) ?? first,
            then.entities.map(\.number) != current.entities.map(\.number) || !then.hasColumns(of: current)
                || then.links.map(\.number) != current.links.map(\.number)
        else { return changes }
        var translated = changes
        translated.entities = changes.entities.compactMap { change in
            guard let place = current.position(ofEntity: change.entity, in: then) else { return nil }
            let columns = current.columns(of: place, from: change.entity, in: then)
            var moved = change
            moved.entity = place
            for page in moved.pages.indices {
                moved.pages[page].columns = moved.pages[page].columns.moved(columns)
                for group in moved.pages[page].groups.indices {
                    moved.pages[page].groups[group].columns = moved.pages[page].groups[group].columns.moved(columns)
                }
            }
            return moved
        }
        translated.entities.sort { $0.entity < $1.entity }
        translated.links = changes.links.compactMap { change in
            guard then.links.indices.contains(change.link),
                let place = current.links.firstIndex(where: { $0.number == then.links[change.link].number })
            else { return nil }
            let isTurned = then.links[change.link].isReversed != current.links[place].isReversed
            return .init(
                link: place, sources: isTurned ? change.destinations : change.sources,
                destinations: isTurned ? change.sources : change.destinations)
        }
        translated.links.sort { $0.link < $1.link }
        translated.tombstones = changes.tombstones.compactMap { tombstone in
            guard let place = current.position(ofEntity: tombstone.entity, in: then) else { return nil }
            let columns = current.columns(of: place, from: tombstone.entity, in: then)
            var moved = tombstone
            moved.entity = place
            moved.values = tombstone.values.compactMap { value in
                guard columns.indices.contains(value.column), let column = columns[value.column] else { return nil }
                return .init(column: column, value: value.value)
            }
            moved.values.sort { $0.column < $1.column }
            return moved
        }
        translated.tombstones.sort { ($0.entity, $0.key) < ($1.entity, $1.key) }
        return translated
    }
}

extension StoredSchema {
    fileprivate func hasColumns(of other: StoredSchema) -> Bool {
        entities.map { $0.columns.map(\.number) } == other.entities.map { $0.columns.map(\.number) }
    }

    fileprivate func position(ofEntity entity: Int, in older: StoredSchema) -> Int? {
        guard older.entities.indices.contains(entity) else { return nil }
        return entities.firstIndex { $0.number == older.entities[entity].number }
    }

    /// Returns, per column of the older schema, its position in this schema.
    fileprivate func columns(of place: Int, from entity: Int, in older: StoredSchema) -> [Int?] {
        older.entities[entity].columns.map { column in
            entities[place].columns.firstIndex { $0.number == column.number }
        }
    }
}

extension ColumnSet {
    fileprivate func moved(_ places: [Int?]) -> ColumnSet {
        var moved = ColumnSet()
        forEach { column in
            if places.indices.contains(column), let place = places[column] { moved.insert(place) }
        }
        return moved
    }
}
