import StoreInterface
import StoreModel

extension StoreSchema {
    /// Returns the schema without the properties that an older schema stores in an incompatible form.
    ///
    /// These are columns whose type changes, and both ends of relationships whose kind or destination changes. A custom stage first
    /// migrates a file to this schema, so that these properties begin empty.
    func withoutConversions(from old: StoreSchema) -> StoreSchema {
        var plain = self
        // The file has recorded those of the older schema.
        let exchanges = ExchangedNames(of: self).subtracting(ExchangedNames(of: old).renamed(from: old, to: self))
        let changed = changedRelationships(from: old, exchanges)
        plain.relationships = []
        // The numbers of columns change. The values are computed for the whole schema.
        for entity in plain.entities.indices {
            for column in plain.entities[entity].columnIndices { plain.entities[entity].columns[column].derivation = nil }
        }
        plain.links = links.filter { link in
            !changed.contains { relationships[$0].fullName(in: self) == link.name }
        }
        let orders = Set(changed.map { EntitySchema.orderName(of: relationships[$0].fullName(in: self)) })
        for (number, entity) in entities.enumerated(as: EntityIndex.self) {
            guard let before = old.predecessor(of: entity, exchanges) else { continue }
            let dropped = Set(changed.filter { relationships[$0].entity == number }.compactMap { relationships[$0].column })
            let kept = entity.columnIndices.filter { position in
                let column = entity.columns[position]
                let columns = old.entities[before].columns
                // Without the column, the value of its former name would be dropped. With it, the change is refused.
                if let former = column.renamedFrom, !exchanges.contains(column.name, former, in: entity.name + "."),
                    [former, column.name].allSatisfy({ name in columns.contains { $0.name == name } }),
                    !entity.columns.contains(where: { $0.name == former })
                {
                    return true
                }
                if dropped.contains(position) { return false }
                let former = Self.former(
                    column.name, renamedFrom: column.renamedFrom, in: columns.map(\.name), exchanges, scope: entity.name + ".")
                guard let source = former.map({ columns[$0] }) else { return true }
                return source.type == column.type || source.type.widens(to: column.type)
            }
            guard kept.count < entity.columns.count else { continue }
            plain.entities[number].columns = kept.map { plain.entities[number].columns[$0] }
            plain.entities[number].indexes = entity.indexes.compactMap { index in
                let columns = index.columns.compactMap { column in kept.indices().first { kept[$0] == column } as ColumnIndex? }
                return columns.count == index.columns.count ? IndexSchema(columns: columns, kind: index.kind) : nil
            }
        }
        // The positions go with the pairs. No number leads to these entities, which follow those of the model.
        plain.entities.removeAll { $0.isOrder && orders.contains($0.name) }
        return plain
    }

    /// Returns two names that are exchanged, of which this schema converts a part: without the converted properties, a file could not be
    /// migrated to the exchange. nil if there are none.
    fileprivate func convertedExchange(from old: StoreSchema) -> (name: String, former: String)? {
        let plain = withoutConversions(from: old)
        let exchanges = ExchangedNames(of: self).subtracting(ExchangedNames(of: old).renamed(from: old, to: self))
        let lost = exchanges.subtracting(ExchangedNames(of: plain))
        for (entity, rest) in zip(entities, plain.entities) where !entity.isOrder {
            let names = rest.columns.map(\.name)
            for column in entity.columns {
                guard let former = column.renamedFrom, lost.contains(column.name, former, in: entity.name + "."),
                    names.contains(where: [column.name, former].contains)
                else { continue }
                return ("\(entity.name).\(column.name)", "\(entity.name).\(former)")
            }
        }
        let names = plain.links.map(\.name)
        for link in links {
            let former = link.formerNames.first { former in
                lost.contains(link.name, former) && former.hasPrefix(entities[link.source].name + ".")
                    && names.contains(where: [link.name, former].contains)
            }
            if let former { return (link.name, former) }
        }
        return nil
    }

    /// Returns the schema with plain indexes instead of the unique ones that an older schema does not have. Only the work of a custom stage
    /// can make these values unique.
    func withoutNewUniqueness(from old: StoreSchema) -> StoreSchema {
        var plain = self
        let exchanges = ExchangedNames(of: self).subtracting(ExchangedNames(of: old).renamed(from: old, to: self))
        for (number, entity) in entities.enumerated(as: EntityIndex.self) {
            guard let before = old.predecessor(of: entity, exchanges).map({ old.entities[$0] }) else { continue }
            func source(_ position: ColumnIndex) -> ColumnIndex? {
                let column = entity.columns[position]
                let found = Self.former(
                    column.name, renamedFrom: column.renamedFrom, in: before.columns.map(\.name), exchanges,
                    scope: entity.name + ".")
                guard let place = found.map({ ColumnIndex(rawValue: $0) }) else { return nil }
                let type = before.columns[place].type
                return type == column.type || type.widens(to: column.type) ? place : nil
            }
            // Older objects have null there, which no constraint counts.
            func beginsNull(_ position: ColumnIndex) -> Bool {
                source(position) == nil && entity.columns[position].initialValue.isNull
            }
            // Nulls of such a column get one value, which the work of the stage replaces.
            func becomesRequired(_ position: ColumnIndex) -> Bool {
                source(position).map { before.columns[$0].isOptional && !entity.columns[position].isOptional } ?? false
            }
            for column in entity.columnIndices where entity.columns[column].index == .unique {
                let stays = source(column).map { before.columns[$0].index } == .unique && !becomesRequired(column)
                if beginsNull(column) || stays { continue }
                plain.entities[number].columns[column].index = .indexed
            }
            for (position, index) in entity.indexes.enumerated() where index.kind == .unique {
                if index.columns.contains(where: beginsNull) { continue }
                let columns = index.columns.compactMap(source)
                let stays = before.indexes.contains { $0.kind == .unique && $0.columns == columns }
                if stays, !index.columns.contains(where: becomesRequired) { continue }
                plain.entities[number].indexes[position].kind = .indexed
            }
        }
        return plain
    }

    /// Returns the schema with a default for each required attribute: what a custom stage leaves null becomes zero or empty, as values that
    /// it converts do. Attributes of subentities that share a column stay null.
    ///
    /// - Parameter isFilledByWork: Whether work after the change sets the attributes that stay null.
    func withZeroDefaults(isFilledByWork: Bool) -> StoreSchema {
        var filled = self
        for entity in filled.entities.indices {
            for column in filled.entities[entity].columns.indices {
                filled.entities[entity].columns[column].defaultValue = filled.entities[entity].columns[column].initialValue
            }
            for subentity in filled.entities[entity].subentities.indices {
                filled.entities[entity].subentities[subentity].attributesWithoutDefault = []
                filled.entities[entity].subentities[subentity].isFilledByWork = isFilledByWork
            }
        }
        return filled
    }

    private func predecessor(of entity: EntitySchema, _ exchanges: ExchangedNames) -> EntityIndex? {
        Self.former(entity.name, renamedFrom: entity.renamedFrom, in: entities.map(\.name), exchanges, scope: "")
            .map { EntityIndex(rawValue: $0) }
    }

    /// Returns the position among the older names of what has a name now. The same name comes before the former one, unless the two were
    /// exchanged. Links are recorded by their whole names.
    private static func former(
        _ name: String, renamedFrom former: String?, in old: [String], _ exchanges: ExchangedNames, scope: String
    ) -> Int? {
        let renamed = former.flatMap { old.firstIndex(of: $0) }
        if let former, renamed != nil,
            exchanges.contains(name, former, in: scope) || exchanges.contains(scope + name, scope + former)
        {
            return renamed
        }
        return old.firstIndex(of: name) ?? renamed
    }

    /// Returns the relationships, with their inverses, whose storage or destination differs from an older schema.
    private func changedRelationships(from old: StoreSchema, _ exchanges: ExchangedNames) -> Set<Int> {
        let former = relationships.map { predecessor(of: $0, in: old, exchanges) }
        var changed: Set<Int> = []
        for (number, relationship) in relationships.enumerated() {
            guard let before = former[number].map({ old.relationships[$0] }) else { continue }
            let leadsElsewhere = old.predecessor(of: entities[relationship.destination], exchanges) != before.destination
            let hasSameInverse = relationship.inverse.flatMap { former[$0] } == before.inverse
            guard leadsElsewhere || isStoredOtherwise(relationship, before, in: old, hasSameInverse: hasSameInverse) else {
                continue
            }
            changed.insert(number)
            if let inverse = relationship.inverse { changed.insert(inverse) }
        }
        return changed
    }

    /// Returns the position of a relationship of this schema among those of an older one; nil if it is new.
    private func predecessor(of relationship: RelationshipSchema, in old: StoreSchema, _ exchanges: ExchangedNames) -> Int? {
        guard let entity = old.predecessor(of: entities[relationship.entity], exchanges) else { return nil }
        let candidates = old.relationships.indices.filter { old.relationships[$0].entity == entity }
        let position = Self.former(
            relationship.name, renamedFrom: relationship.renamedFrom, in: candidates.map { old.relationships[$0].name },
            exchanges,
            scope: entities[relationship.entity].name + ".")
        return position.map { candidates[$0] }
    }

    private func isStoredOtherwise(
        _ new: RelationshipSchema, _ before: RelationshipSchema, in old: StoreSchema, hasSameInverse: Bool
    ) -> Bool {
        if (new.column == nil) != (before.column == nil) { return true }
        let leadsBackToOne = new.inverse.map { relationships[$0].column != nil } ?? false
        let ledBackToOne = before.inverse.map { old.relationships[$0].column != nil } ?? false
        // A column stays unchanged if its inverse becomes a to-many relationship, which reads the column.
        return new.column == nil ? leadsBackToOne != ledBackToOne : leadsBackToOne && !(ledBackToOne && hasSameInverse)
    }
}

extension MigrationStage {
    /// The schema while `didMigrate` runs.
    var schemaOfWork: StoreSchema {
        didMigrate == nil ? target.storeSchema : target.storeSchema.withoutNewUniqueness(from: source.storeSchema)
    }

    /// The target as a step of the plan. Whether the file is newer than the program's model is checked before the first stage.
    var step: StoreSchema { Self.step(target.storeSchema) }

    private static func step(_ schema: StoreSchema) -> StoreSchema {
        var step = schema
        step.migration.isIntermediate = true
        return step
    }

    /// Returns the schemas with which the stage opens a file in turn before `didMigrate` runs. A custom stage first opens it without the
    /// properties that it converts.
    ///
    /// - Parameter allowedLoss: The stored values that a lightweight stage may drop.
    func schemas(allowedLoss: SchemaMigration.AllowedLoss) -> [StoreSchema] {
        var last = Self.step(schemaOfWork)
        last.migration.allowedLoss = isCustom ? .everything : allowedLoss
        guard isCustom else { return [last] }
        last = last.withZeroDefaults(isFilledByWork: didMigrate != nil)
        let plain = Self.step(last.withoutConversions(from: source.storeSchema))
        return plain.withoutHints == last.withoutHints ? [last] : [plain, last]
    }

    /// Throws `StoreError` `.schemaMismatch` if a custom stage exchanges two names and converts what one of them has.
    func checkExchanges() throws {
        guard isCustom, let found = target.storeSchema.convertedExchange(from: source.storeSchema) else { return }
        throw StoreError(
            .schemaMismatch,
            "cannot migrate from version \(source.version) to \(target.version): \(found.name) and \(found.former) exchange their names, and "
                + "one of them changes its type or kind too. Exchange the names in one version of the model, and convert the values in the "
                + "next one")
    }
}

extension RelationshipSchema {
    /// The name of the relationship's link.
    fileprivate func fullName(in schema: StoreSchema) -> String { "\(schema.entities[entity].name).\(name)" }
}
