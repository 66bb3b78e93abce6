/// The computation of a derived column, in the positions of its schema.
///
/// The layer above keeps the values of such columns: it computes them for each save, in the transaction that writes the save. A store
/// writes them like all other values. It stores the derivation with its schema.
///
/// A derivation reads attributes and references, and no derived column.
public struct ColumnDerivation: Sendable, Hashable, Codable {
    /// The function that computes the value.
    public enum Function: String, Sendable, Hashable, Codable {
        /// The value of a column at the end of a path of references.
        case value
        /// The number of related objects.
        case count
        /// The sum, the least value, the greatest value or the mean of a column of the related objects, without nulls.
        case sum, minimum, maximum, average
        /// A column of the same object in lower case, or also without diacritics.
        case lowercased, folded
    }

    /// The function that computes the value.
    public let function: Function
    /// The reference columns from the object to the one with the value, for ``Function/value``; otherwise empty.
    public let path: [ColumnIndex]
    /// The column of the value, in the entity at the end of the path or of the relation, or in the object itself; nil for a count.
    public let column: ColumnIndex?
    /// A Boolean value that indicates whether existing objects do not have their values yet. No save keeps the column meanwhile.
    public var isPending = false
    private let relatedEntity: EntityIndex?
    private let relatedColumn: ColumnIndex?
    private let relatedLink: LinkIndex?
    private let isBackward: Bool?

    /// Creates a derivation.
    /// - Parameters:
    ///   - function: The function that computes the value.
    ///   - path: The reference columns to follow, for a value of another object.
    ///   - relation: The relation to the objects that are counted or aggregated.
    ///   - column: The column of the value.
    public init(_ function: Function, path: [ColumnIndex] = [], relation: Relation? = nil, column: ColumnIndex? = nil) {
        self.function = function
        self.path = path
        self.column = column
        relatedEntity = relation?.entity
        switch relation {
        case .referrers(_, let column):
            relatedColumn = column
            relatedLink = nil
            isBackward = nil
        case .link(let link, let direction, _):
            relatedColumn = nil
            relatedLink = link
            isBackward = direction == .backward
        case nil:
            relatedColumn = nil
            relatedLink = nil
            isBackward = nil
        }
    }

    /// The relation to the objects that are counted or aggregated; nil for the other functions.
    public var relation: Relation? {
        guard let relatedEntity else { return nil }
        if let relatedLink { return .link(relatedLink, isBackward == true ? .backward : .forward, destination: relatedEntity) }
        return relatedColumn.map { .referrers(entity: relatedEntity, column: $0) }
    }

    /// Returns the entity that has the column of the value; nil if the path or the relation leads nowhere in the schema.
    func entityOfValue(from entity: EntityIndex, in schema: StoreSchema) -> EntityIndex? {
        if !path.isEmpty {
            var reached = entity
            for reference in path {
                let columns = schema.entities[reached].columns
                guard columns.indices().contains(reference), let next = columns[reference].destination,
                    schema.entityIndices.contains(next)
                else { return nil }
                reached = next
            }
            return reached
        }
        switch relation {
        case nil: return entity
        case .referrers(let far, let column):
            guard schema.entityIndices.contains(far), schema.entities[far].columnIndices.contains(column),
                schema.entities[far].columns[column].destination == entity
            else { return nil }
            return far
        case .link(let number, let direction, let far):
            guard schema.linkIndices.contains(number) else { return nil }
            let link = schema.links[number]
            let ends = direction == .forward ? (link.source, link.destination) : (link.destination, link.source)
            return ends == (entity, far) ? far : nil
        }
    }

    /// Whether all numbers lead to columns of the schema. The schema in a file may contain any numbers.
    func isSound(in entity: EntityIndex, of schema: StoreSchema) -> Bool {
        let needsRelation = [.count, .sum, .minimum, .maximum, .average].contains(function)
        guard needsRelation == (relation != nil), path.isEmpty != (function == .value),
            let reached = entityOfValue(from: entity, in: schema)
        else { return false }
        guard let column else { return function == .count }
        let columns = schema.entities[reached].columns
        return columns.indices().contains(column) && columns[column].derivation == nil && columns[column].destination == nil
    }
}

extension StoreSchema {
    /// A Boolean value that indicates whether a column is derived.
    public var hasDerivations: Bool { entities.contains { $0.columns.contains { $0.derivation != nil } } }

    /// The schema without the marks of derivations whose values are still to be computed.
    package var withoutPendingDerivations: StoreSchema { markingDerivations { _, _ in false } }

    /// Returns the schema in which exactly the derivations that a closure selects are pending.
    package func markingDerivations(isPending: (_ entity: EntityIndex, _ column: ColumnIndex) -> Bool) -> StoreSchema {
        guard hasDerivations else { return self }
        var marked = self
        for entity in entityIndices {
            for column in entities[entity].columnIndices where entities[entity].columns[column].derivation != nil {
                marked.entities[entity].columns[column].derivation?.isPending = isPending(entity, column)
            }
        }
        return marked
    }

    /// Returns this schema with a mark at each derivation whose values a file does not have yet, or nil if the file has them all.
    ///
    /// - Parameters:
    ///   - file: The schema of the file.
    ///   - exchanged: The exchanges of names that the file has recorded.
    package func pendingDerivations(in file: StoreSchema, exchanged: ExchangedNames) -> StoreSchema? {
        guard hasDerivations, withoutHints.withoutKeyedValues != file else { return nil }
        // Opening the file reports the error.
        guard let steps = try? SchemaPath(from: file, exchanged: exchanged, to: self, path: "the file").steps else {
            return markingDerivations { _, _ in true }
        }
        // Positions in the file, per entity, column and link of this schema.
        var numbers = SchemaPositions(file)
        for step in steps { numbers.advance(step.evolution) }
        var isAnyPending = false
        let marked = markingDerivations { entity, column in
            let isKept = isDerivationKept(entity, column: column, in: file, positions: numbers)
            if !isKept { isAnyPending = true }
            return !isKept
        }
        return isAnyPending ? marked : nil
    }

    /// Whether a file has the values of a derived column, because it has the same derivation, from values that stay.
    private func isDerivationKept(
        _ entity: EntityIndex, column: ColumnIndex, in file: StoreSchema, positions numbers: SchemaPositions
    ) -> Bool {
        guard let source = numbers.entities[entity], let place = numbers.columns[entity][column],
            let derivation = entities[entity].columns[column].derivation
        else { return false }
        let stored = file.entities[source].columns[place]
        guard let known = stored.derivation, let wanted = derivation.placed(in: numbers, entity, self), known == wanted else {
            return false
        }
        // A column that was required has its default, instead of null, where there was nothing to derive a value from.
        if !stored.isOptional, entities[entity].columns[column].isOptional { return false }
        guard let number = derivation.column, let far = derivation.entityOfValue(from: entity, in: self) else { return true }
        return !numbers.filledColumns[far].contains(number)
    }
}

extension ColumnDerivation {
    /// Returns the derivation in the numbers of another schema; nil if that schema lacks a part of it.
    fileprivate func placed(in numbers: SchemaPositions, _ entity: EntityIndex, _ schema: StoreSchema) -> ColumnDerivation? {
        var reached = entity
        var references: [ColumnIndex] = []
        for reference in path {
            guard let number = numbers.columns[reached][reference],
                let next = schema.entities[reached].columns[reference].destination
            else { return nil }
            references.append(number)
            reached = next
        }
        var found: Relation?
        switch relation {
        case nil: break
        case .referrers(let far, let column):
            guard let entity = numbers.entities[far], let number = numbers.columns[far][column] else { return nil }
            found = .referrers(entity: entity, column: number)
            reached = far
        case .link(let link, let direction, let far):
            guard let entity = numbers.entities[far], let number = numbers.links[link], !numbers.reversedLinks.contains(link)
            else { return nil }
            found = .link(number, direction, destination: entity)
            reached = far
        }
        guard let column else { return ColumnDerivation(function, path: references, relation: found) }
        guard let number = numbers.columns[reached][column] else { return nil }
        return ColumnDerivation(function, path: references, relation: found, column: number)
    }
}
