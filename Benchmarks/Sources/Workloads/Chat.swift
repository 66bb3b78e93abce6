import CoreDataRouting
import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Groups of messages that arrive at the same time. Each group has a worker context, while main shows the messages of each
/// group.
public struct Chat: Workload {
    public let name = "chat"
    public let durability: DurabilityKind
    public let saveEvery: Int?
    private let data: PreparedDataset
    private let model: DatasetModel
    /// The rows of each group's messages.
    private let rows: [Range<Int>]

    /// - Parameters:
    ///   - dataset: Groups, and messages in the order of their groups. See ``ChatData``.
    ///   - saveEvery: The number of messages per save. nil means one save per group.
    public init(_ dataset: Dataset, saveEvery: Int?, durability: DurabilityKind) throws {
        data = PreparedDataset(dataset)
        self.saveEvery = saveEvery
        self.durability = durability
        model = try DatasetModel(dataset)
        let groups = dataset.tables[1].references[0].rows
        var rows: [Range<Int>] = []
        var start = 0
        for group in 0..<dataset.tables[0].rowCount {
            let end = groups[start...].firstIndex { $0 != Int32(group) } ?? groups.count
            rows.append(start..<end)
            start = end
        }
        self.rows = rows
    }

    private var dataset: Dataset { data.dataset }

    public var objectCount: Int { dataset.tables[1].rowCount }

    public func run(_ setting: BenchmarkConfiguration) async throws -> RunFigures {
        let folder = try RunFolder()
        return try await folder.run(setting, importing: dataset, model: model) {
            try await measure($0, in: folder, hops: $1)
        }
    }

    private func measure(
        _ container: PersistentContainer, in folder: RunFolder, hops: RequestHops
    ) async throws -> (RunFigures, [[ObjectID]]) {
        let groups = try await makeGroups(container)
        let messages = dataset.tables[1]
        var displays: [LiveDisplay] = []
        for id in groups {
            displays.append(
                try await LiveDisplay(
                    container, entity: messages.name, sortedBy: messages.attributes.last?.name,
                    matching: .compare(messages.references[0].name, .equal, to: .reference(id.key))))
        }
        let hopsBefore = hops.counts
        let measurement = await Measurement.begin()
        let results = try await withThrowingTaskGroup(of: (Int, [ObjectID], [Span]).self) { tasks in
            for number in groups.indices {
                let context = await container.newBackgroundContext(name: "group \(number)")
                tasks.addTask { try await fill(number, group: groups[number], in: context) }
            }
            return try await tasks.reduce(into: []) { $0.append($1) }
        }
        for (display, rows) in zip(displays, rows) { try await display.wait(for: rows.count) }
        if durability == .deferred { try await container.flush() }
        var figures = await measurement.end(spans: results.sorted { $0.0 < $1.0 }.flatMap(\.2))
        figures.saves = results.reduce(0) { $0 + $1.2.count / 2 }
        figures.hops = hops.counts(since: hopsBefore)
        figures.fileBytes = folder.fileBytes()
        for display in displays { await display.stop() }
        return (figures, [groups, results.sorted { $0.0 < $1.0 }.flatMap(\.1)])
    }

    private func makeGroups(_ container: PersistentContainer) async throws -> [ObjectID] {
        let context = await container.newBackgroundContext(name: "groups")
        let ids = await context.perform { context in
            data.rows[0].map { context.insert(model.entities[0], values: $0).objectID }
        }
        try await context.save(through: .store)
        return ids
    }

    /// Inserts one group's messages in a context of its own.
    private func fill(_ number: Int, group: ObjectID, in context: BackgroundContext) async throws -> (Int, [ObjectID], [Span]) {
        var ids: [ObjectID] = []
        var spans: [Span] = []
        let all = rows[number]
        let relationship = dataset.tables[1].references[0].name
        let size = saveEvery ?? max(1, all.count)
        for start in stride(from: all.lowerBound, to: all.upperBound, by: size) {
            let begin = Clock.now()
            ids += await context.perform { context in
                data.rows[1][start..<min(all.upperBound, start + size)].map { values in
                    let message = context.insert(model.entities[1], values: values)
                    message.setRelatedObject(relationship, to: context.object(with: group))
                    return message.objectID
                }
            }
            let middle = Clock.now()
            try await context.save(through: .store, durability.durability)
            spans.append(Span(lane: context.name, kind: .work, start: begin, end: middle))
            spans.append(Span(lane: context.name, kind: .save, start: middle, end: Clock.now()))
        }
        return (number, ids, spans)
    }
}
