extension ChangeSet {
    /// Returns the change set with the positions of another schema. Leaves out parts that the other schema does not have.
    /// - Parameters:
    ///   - entity: Returns the position of an entity in the other schema, and the positions of its columns.
    ///   - link: Returns the position of a link in the other schema, and whether its source was its destination here.
    package func translated(
        entity: (EntityIndex) -> (index: EntityIndex, columns: [ColumnIndex?])?,
        link: (LinkIndex) -> (index: LinkIndex, isReversed: Bool)?
    ) -> ChangeSet {
        var translated = self
        translated.entities = entities.compactMap { change in
            guard let target = entity(change.entity) else { return nil }
            var moved = change
            moved.entity = target.index
            for page in moved.pages.indices {
                moved.pages[page].columns = moved.pages[page].columns.moved(target.columns)
                for group in moved.pages[page].groups.indices {
                    moved.pages[page].groups[group].columns = moved.pages[page].groups[group].columns.moved(target.columns)
                }
            }
            return moved
        }
        translated.entities.sort { $0.entity < $1.entity }
        translated.links = links.compactMap { change in
            guard let target = link(change.link) else { return nil }
            return LinkChange(
                link: target.index, sources: target.isReversed ? change.destinations : change.sources,
                destinations: target.isReversed ? change.sources : change.destinations)
        }
        translated.links.sort { $0.link < $1.link }
        translated.tombstones = tombstones.compactMap { tombstone in
            guard let target = entity(tombstone.entity) else { return nil }
            var moved = tombstone
            moved.entity = target.index
            moved.values = tombstone.values.compactMap { value in
                guard target.columns.indices().contains(value.column), let column = target.columns[value.column] else {
                    return nil
                }
                return .init(column: column, value: value.value)
            }
            moved.values.sort { $0.column < $1.column }
            return moved
        }
        translated.tombstones.sort { ($0.entity, $0.key) < ($1.entity, $1.key) }
        return translated
    }
}

extension ColumnSet {
    fileprivate func moved(_ positions: [ColumnIndex?]) -> ColumnSet {
        var moved = ColumnSet()
        forEach { column in
            if positions.indices().contains(column), let position = positions[column] { moved.insert(position) }
        }
        return moved
    }
}

extension ChangeSet {
    /// Returns whether a store of the schema can have made the changes. Readers use the positions without a check.
    package func fits(_ schema: StoreSchema) -> Bool {
        guard generation.isPlausible, links.allSatisfy({ schema.linkIndices.contains($0.link) }) else { return false }
        for change in entities {
            guard schema.entityIndices.contains(change.entity) else { return false }
            let known = ColumnSet(first: schema.entities[change.entity].columns.count)
            for page in change.pages {
                guard page.number < PageAddress.end, page.columns.intersection(known) == page.columns,
                    page.groups.allSatisfy({ $0.columns.intersection(known) == $0.columns })
                else { return false }
            }
        }
        // Values of tombstones are found by column, which leads nowhere if it is unknown.
        return tombstones.allSatisfy { schema.entityIndices.contains($0.entity) }
    }
}
