import PageCodec
import StoreInterface
import StoreModel

/// One version of a file's schema: its description, and the numbers of its parts in the file.
///
/// A number never changes its meaning. A removed or renamed part keeps its number, and a new part gets a new number. So the
/// names of sub-databases stay the same, and pages of older versions can be found and read.
struct StoredSchema: Codable, Sendable {
    /// The replacement for null in pages older than a schema number, in which the column became required.
    struct Fill: Codable, Sendable {
        var schemaNumber: Int
        var value: Value
    }

    struct Column: Codable, Sendable {
        var number: Int
        /// The value of objects in pages older than the column.
        var initial: Value
        var fills: [Fill]
    }

    struct Entity: Codable, Sendable {
        var number: Int
        var columns: [Column]
        /// The number of the next column to be added.
        var nextColumn: Int

        /// Returns the position of the column with a number, or nil if there is none.
        func column(number: Int) -> ColumnIndex? {
            columns.indices(as: ColumnIndex.self).first { columns[$0].number == number }
        }
    }

    struct Link: Codable, Sendable {
        var number: Int
        /// Whether the source in the model is the destination in the file.
        var isReversed: Bool
    }

    var schema: StoreSchema
    /// The stored entities, per entity of the schema.
    var entities: [Entity]
    /// The stored links, per link of the schema.
    var links: [Link]
    var nextEntity: Int
    var nextLink: Int
    /// The newest save when the schema took effect. Later saves use its positions.
    var generation: Generation
    /// The exchanges of names that the model asked for and the file has carried out; nil if there are none.
    var exchanges: Set<String>?
    /// The inverses of the model that wrote the file; nil if none has stated them. Only the current version has them.
    var inverses: InversePairs?
    /// The narrowed destinations of that model; nil if it has none. Only the current version has them.
    var destinations: NarrowedDestinations?

    /// Creates the schema of a new file, which numbers everything by its position.
    init(first schema: StoreSchema) {
        self.schema = schema.withoutHints
        entities = schema.entities.enumerated().map { number, entity in
            Entity(
                number: number,
                columns: entity.columns.indices.map { Column(number: $0, initial: .null, fills: []) },
                nextColumn: entity.columns.count)
        }
        links = schema.links.indices.map { Link(number: $0, isReversed: false) }
        nextEntity = entities.count
        nextLink = links.count
        generation = 0
        exchanges = Self.exchanges(of: schema)
        inverses = InversePairs(of: schema)
        destinations = NarrowedDestinations(of: schema)
    }

    /// Returns the position of the entity with a number, or nil if there is none.
    func entity(number: Int) -> EntityIndex? {
        entities.indices(as: EntityIndex.self).first { entities[$0].number == number }
    }

    /// Returns the position of the link with a number, or nil if there is none.
    func link(number: Int) -> LinkIndex? { links.indices(as: LinkIndex.self).first { links[$0].number == number } }

    /// Returns the schemas of all versions of a file, of which the last is current.
    static func recorded(_ versions: [StoredSchema]) -> RecordedSchemas {
        let current = versions[versions.count - 1]
        return RecordedSchemas(
            current.schema, earlier: versions.dropLast().map(\.schema), exchanged: ExchangedNames(lines: current.exchanges ?? []),
            inverses: current.inverses, destinations: current.destinations)
    }

    static func exchanges(of schema: StoreSchema) -> Set<String>? {
        let names = ExchangedNames(of: schema)
        return names.isEmpty ? nil : names.lines
    }

    /// Returns the next version, with this number.
    func evolved(to new: StoreSchema, _ evolution: SchemaEvolution, number: Int, generation: Generation) -> StoredSchema {
        var next = self
        next.schema = new.withoutHints
        next.generation = generation
        next.exchanges = Self.exchanges(of: new)
        next.inverses = nil
        next.destinations = nil
        next.entities = zip(evolution.entities, new.entities).map { change, entity in
            guard let source = change.source else {
                defer { next.nextEntity += 1 }
                var made = StoredSchema(first: StoreSchema(entities: [entity])).entities[0]
                made.number = next.nextEntity
                return made
            }
            var made = entities[source]
            made.columns = zip(change.columns, entity.columns).map { change, column in
                let fill = change.fill.map { column.type.stored($0) }
                guard let before = change.source else {
                    defer { made.nextColumn += 1 }
                    return Column(number: made.nextColumn, initial: fill ?? .null, fills: [])
                }
                var kept = entities[source].columns[before]
                if let fill { kept.fills.append(Fill(schemaNumber: number, value: fill)) }
                return kept
            }
            return made
        }
        next.links = evolution.links.map { change in
            guard let change else {
                defer { next.nextLink += 1 }
                return Link(number: next.nextLink, isReversed: false)
            }
            let before = links[change.source]
            return Link(number: before.number, isReversed: before.isReversed != change.isReversed)
        }
        return next
    }

    // MARK: Reading older pages

    /// Returns the way to read one entity's pages of the version `older`, which has the number `number`. Returns nil if that
    /// version did not have the entity.
    func sources(of older: StoredSchema, number: Int, entity position: EntityIndex) -> PageLayout.Older? {
        let entity = entities[position]
        guard let place = older.entity(number: entity.number) else { return nil }
        let there = older.entities[place]
        let sources = zip(entity.columns, schema.entities[position].columns).map { column, definition -> ColumnSource in
            let fill = column.fills.first { $0.schemaNumber > number }.map { definition.type.widened($0.value) }
            if let found = there.column(number: column.number) {
                return fill.map { .filled(found, $0) } ?? .stored(found)
            }
            return .constant(column.initial.isNull ? fill ?? .null : definition.type.widened(column.initial))
        }
        return PageLayout.Older(
            schemaNumber: UInt32(number), entity: older.schema.entities[place], sources: sources)
    }

    /// Returns the layouts per entity.
    /// - Parameters:
    ///   - schemas: All versions, of which the last is current. Their numbers begin with 1.
    ///   - format: The file's format.
    static func layouts(_ schemas: [StoredSchema], model: StoreSchema, format: UInt64) throws -> [PageLayout] {
        guard let current = schemas.last else { return [] }
        return try model.entityIndices.map { entity in
            try PageLayout(
                model.entities[entity], schemaNumber: UInt32(schemas.count),
                entityNumber: format > 1 ? current.entities[entity].number : nil,
                older: schemas.dropLast().enumerated().compactMap { position, older in
                    current.sources(of: older, number: position + 1, entity: entity)
                })
        }
    }
}
