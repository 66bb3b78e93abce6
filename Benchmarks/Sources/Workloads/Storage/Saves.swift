import CoreDataRouting
import Datasets
import Figures
import Histogram
import ObjectGraph
import StoreInterface
import Synchronization

/// Measures how long a synchronous save of one changed object takes, alone and beside an importer at full speed.
public struct Saves: Sendable {
    public static let engines = Engine.allCases.filter { $0 != .lmdbRaw }

    /// The number of saves in each state.
    let count: Int
    let seed: UInt64
    /// The number of objects in each save of the importer.
    let saveEvery: Int
    /// The seed of the records that the check expects. It is the seed of the run, unless a test changes it.
    var checkedSeed: UInt64

    public init(count: Int, seed: UInt64, saveEvery: Int) {
        self.count = count
        self.seed = seed
        checkedSeed = seed
        self.saveEvery = saveEvery
    }

    /// The number of records before the importer begins. The saves change them in turn.
    static let records = 1_000
    private static let pauseMilliseconds = 3
    /// The pause between two saves, so that they meet the importer in all its states.
    static let pause = Duration.milliseconds(pauseMilliseconds)

    /// The saves of an importer, one after another, that run beside the measured ones.
    public enum Importer: String, Sendable, CaseIterable {
        case none = "alone"
        case durable = "beside durable saves"
        case deferred = "beside deferred saves"

        var durability: DurabilityKind { self == .deferred ? .deferred : .durable }
    }

    struct Figures: Sendable {
        /// The nanoseconds of each save.
        var latencies = Readers.emptyHistogram
        /// The nanoseconds per imported object, or nil if there was no importer.
        var importNanoseconds: Double?
    }

    public func rows(_ engines: [Engine], repeats: Int, progress: ProgressBar) async throws -> (
        rows: [Report.Row], notes: [String]
    ) {
        var runs: [Importer: [[Figures]]] = [:]
        for importer in Importer.allCases { runs[importer] = Array(repeating: [], count: engines.count) }
        for _ in 0..<repeats {
            for importer in Importer.allCases {
                for (number, engine) in engines.enumerated() {
                    progress.step("saves: \(engine.rawValue), \(importer.rawValue)")
                    runs[importer]?[number].append(try await run(engine, importer))
                }
            }
        }
        let rows = engines.enumerated().flatMap { number, engine in
            Importer.allCases.flatMap { self.rows($0, engine: engine, runs: runs[$0]?[number] ?? []) }
        }
        return (
            rows,
            [
                "One save: one property of one object on main, deferred, \(count) times, \(Self.pauseMilliseconds) ms apart, as ModelContext.save() of "
                    + "StrataSwiftData makes it. Beside them, an importer saves \(saveEvery) new objects, again and again. Raw SQLite: "
                    + "synchronous=NORMAL for deferred and FULL for durable saves, on a connection each; one serial queue for both, because "
                    + "SQLite's busy handler would wait for longer. Medians of \(repeats)."
            ]
        )
    }

    private func rows(_ importer: Importer, engine: Engine, runs: [Figures]) -> [Report.Row] {
        func row(_ operation: String, of values: [Double], durability: DurabilityKind) -> [Report.Row] {
            guard !values.isEmpty else { return [] }
            var row = Report.Row(benchmark: "saves", durability: durability.rawValue, objects: count, verified: true)
            row.operation = "\(importer.rawValue): \(operation)"
            row.engine = engine.rawValue
            row.store = engine.store?.rawValue
            row.saveEvery = saveEvery
            row.nanosecondsPerObject = Spread(values)
            return [row]
        }
        func latency(_ percentile: Double) -> [Report.Row] {
            row(
                "save p\(Int(percentile))", of: runs.map { Double($0.latencies.valueAtPercentile(percentile)) },
                durability: .deferred)
        }
        return latency(50) + latency(95) + latency(99)
            + row("longest save", of: runs.map { Double($0.latencies.max) }, durability: .deferred)
            + row("import", of: runs.compactMap(\.importNanoseconds), durability: importer.durability)
    }

    private func run(_ engine: Engine, _ importer: Importer) async throws -> Figures {
        switch engine {
        case .sqliteRaw: try await runRaw(importer)
        case .lmdbRaw: throw VerificationError("saves: raw LMDB has no deferred saves beside durable ones")
        case .strata: try await run(.lmdb, importer)
        case .strataSQLite: try await run(.sqlite, importer)
        case .strataMemory: try await run(.memory, importer)
        }
    }

    private func run(_ store: StoreKind, _ importer: Importer) async throws -> Figures {
        let folder = try RunFolder()
        let model = try DatasetModel(RecordData.make(1, seed: seed))
        let entity = model.entities[0]
        return try await folder.run(.siblings(store), model: model.model) { container in
            let context = await container.newBackgroundContext(name: "importer")
            let (seed, saveEvery) = (seed, saveEvery)
            let records = Records(seed: seed)
            @Sendable func insert(_ count: Int) async throws {
                await context.perform { context in
                    records.add(count) { context.insert(entity, values: $0).objectID }
                }
                try await context.save(importer.durability.durability)
            }
            try await insert(Self.records)
            let ids = records.ids
            let figures = try await measure(importer) {
                try await insert(saveEvery)
                return saveEvery
            } saves: {
                try await save(container, amount: entity.attributes[RecordData.amount], ids: ids)
            }
            try await container.flush()
            return (figures, records.ids)
        } check: { container, result in
            try await Checksum.records(container, entity, ids: result.1)
                .check("saves, \(store.rawValue): records after \(count) saves", expected(result.1.count))
        }.0
    }

    /// Changes and saves the records in turn. Returns the nanoseconds of each save.
    @MainActor
    private func save(_ container: PersistentContainer, amount: Attribute, ids: RowIDs) async throws -> [UInt64] {
        let context = container.mainContext
        var times: [UInt64] = []
        for number in 0..<count {
            try context.existingObject(with: ids[number % Self.records])[attribute: amount] = .double(Double(number))
            let start = Clock.now()
            try context.saveAtOnce()
            times.append(Clock.now() - start)
            try await Task.sleep(for: Self.pause)
        }
        return times
    }

    /// Runs the saves, and an importer until they have ended.
    ///
    /// - Parameter insert: Inserts and saves some objects, and returns their number.
    func measure(
        _ importer: Importer, insert: @escaping @Sendable () async throws -> Int,
        saves: @escaping @Sendable () async throws -> [UInt64]
    ) async throws -> Figures {
        let end = End()
        return try await withThrowingTaskGroup(of: Double?.self) { group in
            group.addTask {
                if importer == .none { return nil }
                let start = Clock.now()
                var objects = 0
                while !end.isReached.load(ordering: .relaxed) { objects += try await insert() }
                return Double(Clock.now() - start) / Double(max(objects, 1))
            }
            defer { end.isReached.store(true, ordering: .relaxed) }
            var figures = Figures()
            for time in try await saves() { figures.latencies.record(time) }
            end.isReached.store(true, ordering: .relaxed)
            figures.importNanoseconds = try await group.next() ?? nil
            return figures
        }
    }

    /// Tells the importer that the saves have ended.
    private final class End: Sendable {
        let isReached = Atomic(false)
    }

    /// The inserted records. They are made from the seed, in order.
    private final class Records: Sendable {
        private let state: Mutex<(random: SeededNumbers, ids: RowIDs)>

        init(seed: UInt64) { state = Mutex((SeededNumbers(seed: seed), RowIDs())) }

        var ids: RowIDs { state.withLock { $0.ids } }

        func add(_ count: Int, _ insert: ([Value]) -> ObjectID) {
            state.withLock { state in
                for _ in 0..<count { state.ids.append(insert(RecordData.values(&state.random))) }
            }
        }
    }

    /// Returns the checksum of `size` records after the saves.
    func expected(_ size: Int) -> Checksum {
        ExpectedRecords(size, seed: checkedSeed, picks: [], updates: changedRows).checksum
    }

    /// The rows that the saves change. Each row's amount becomes its position in this list.
    var changedRows: [Int] { (0..<count).map { $0 % Self.records } }
}
