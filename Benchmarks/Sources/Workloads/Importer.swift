import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The points at which an import saves.
public enum SavePoints: Sendable, Hashable {
    case every(Int)
    /// One save after each entity's objects, and one after each entity's relationships.
    case perEntity
    /// One save after all objects and relationships.
    case atEnd
}

/// Imports a data set through objects of a background context. It creates the objects first, then the relationships, and saves
/// in between.
struct Importer: Sendable {
    let data: PreparedDataset
    let model: DatasetModel
    let savePoints: SavePoints
    let durability: Durability
    /// The processor time that stands for parsing one object.
    var parsing = ProcessorWork(nanoseconds: 0)

    /// The result of an import: the id of each row, and the times of its work.
    struct Result: Sendable {
        /// The id of each row, by table.
        var ids: [[ObjectID]]
        var saves = 0
        /// The time that went into ``Importer/parsing``.
        var parsingNanoseconds: UInt64 = 0
        var spans: [Span] = []
    }

    private var dataset: Dataset { data.dataset }

    func run(_ context: BackgroundContext) async throws -> Result {
        var result = Result(ids: dataset.tables.map { _ in [] })
        for (number, table) in dataset.tables.enumerated() {
            result.ids[number].reserveCapacity(table.rowCount)
            for rows in batches(table.rowCount) {
                try await batch(context, result: &result) { result in
                    let (ids, parsed) = await context.perform { insert(number, rows: rows, in: $0) }
                    result.ids[number] += ids
                    result.parsingNanoseconds += parsed
                }
            }
        }
        for (number, table) in dataset.tables.enumerated() where !table.references.isEmpty {
            for rows in batches(table.rowCount) {
                try await batch(context, result: &result) { result in
                    let ids = result.ids
                    await context.perform { relate(number, rows: rows, ids: ids, in: $0) }
                }
            }
        }
        for (number, link) in dataset.links.enumerated() {
            for pairs in batches(link.pairs.count) {
                try await batch(context, result: &result) { result in
                    let ids = result.ids
                    await context.perform { connect(number, pairs: pairs, ids: ids, in: $0) }
                }
            }
        }
        if savePoints == .atEnd { try await save(context, &result) }
        return result
    }

    /// Runs a batch of work, and saves through to the store if a save is due. Records the times of both.
    private func batch(
        _ context: BackgroundContext, result: inout Result, _ work: (inout Result) async throws -> Void
    ) async throws {
        let start = Clock.now()
        try await work(&result)
        result.spans.append(Span(lane: context.name, kind: .work, start: start, end: Clock.now()))
        if savePoints != .atEnd { try await save(context, &result) }
    }

    private func save(_ context: BackgroundContext, _ result: inout Result) async throws {
        let start = Clock.now()
        try await context.save(through: .store, durability)
        result.saves += 1
        result.spans.append(Span(lane: context.name, kind: .save, start: start, end: Clock.now()))
    }

    private func batches(_ count: Int) -> [Range<Int>] {
        let size =
            switch savePoints {
            case .every(let size): size
            case .perEntity, .atEnd: max(1, count)
            }
        return stride(from: 0, to: count, by: size).map { $0..<min(count, $0 + size) }
    }

    // MARK: On the context's executor

    /// Returns the ids of the new objects and the time that parsing took.
    private func insert(_ number: Int, rows: Range<Int>, in context: ManagedObjectContext) -> ([ObjectID], UInt64) {
        let entity = model.entities[number]
        var parsed: UInt64 = 0
        let ids = data.rows[number][rows].map { values in
            parsed += parsing.run()
            return context.insert(entity, values: values).objectID
        }
        return (ids, parsed)
    }

    private func relate(_ number: Int, rows: Range<Int>, ids: [[ObjectID]], in context: ManagedObjectContext) {
        let references = dataset.tables[number].references
        let (own, others) = (ids[number], references.map { ids[$0.destination] })
        for row in rows {
            let object = context.object(with: own[row])
            for index in references.indices where references[index].rows[row] >= 0 {
                let other = others[index][Int(references[index].rows[row])]
                object.setRelatedObject(references[index].name, to: context.object(with: other))
            }
        }
    }

    private func connect(_ number: Int, pairs: Range<Int>, ids: [[ObjectID]], in context: ManagedObjectContext) {
        let link = dataset.links[number]
        let (sources, destinations) = (ids[link.source], ids[link.destination])
        for pair in link.pairs[pairs] {
            let source = context.object(with: sources[Int(pair.source)])
            source.add(context.object(with: destinations[Int(pair.destination)]), to: link.name)
        }
    }
}
