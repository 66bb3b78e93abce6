import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Runs the same work at growing sizes. Measures the cost per object, the time to open, and the size of file and memory.
public struct Scale: Sendable {
    public let sizes: [Int]
    let seed: UInt64
    let saveEvery: Int
    let durability: DurabilityKind
    /// The seed of the records that the check expects. It is the seed of the run, unless a test changes it.
    var checkedSeed: UInt64

    /// - Parameter objects: The largest size. The other sizes are 10,000 and its multiples by powers of ten below the largest.
    public init(objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        sizes = Array(sequence(first: 10_000) { $0 * 10 }.prefix { $0 < objects }) + [objects]
        self.seed = seed
        checkedSeed = seed
        self.saveEvery = saveEvery
        self.durability = durability
    }

    private static let picks = 100_000

    struct Figures: Sendable {
        var insert = 0.0
        var read = 0.0
        var scan = 0.0
        var update = 0.0
        var openNanoseconds = 0.0
        var fileBytes = 0
        /// The memory, without maps of the file, that importing had added when the last save had returned.
        var memoryBytes = 0
    }

    /// Returns one row per operation, size and engine.
    public func rows(_ engines: [Engine], repeats: Int, progress: ProgressBar) async throws -> (
        rows: [Report.Row], notes: [String]
    ) {
        var rows: [Report.Row] = []
        var notes: [String] = []
        for size in sizes {
            var runs: [[Figures]] = Array(repeating: [], count: engines.count)
            for _ in 0..<repeats {
                for (number, engine) in engines.enumerated() {
                    progress.step("scale: \(engine.rawValue), \(size) objects")
                    runs[number].append(try await run(engine, size))
                }
            }
            for (engine, runs) in zip(engines, runs) {
                rows.append(row("insert", engine: engine, size: size, runs: runs, cost: \.insert))
                rows.append(row("point read", engine: engine, size: size, runs: runs, cost: \.read))
                rows.append(row("full scan", engine: engine, size: size, runs: runs, cost: \.scan))
                rows.append(row("random update", engine: engine, size: size, runs: runs, cost: \.update))
                rows.append(row("open, in all", engine: engine, size: size, runs: runs, cost: \.openNanoseconds))
                let bytes = runs.map(\.fileBytes).max() ?? 0
                let memory = runs.map(\.memoryBytes).max() ?? 0
                notes.append(
                    "\(engine.rawValue), \(size) objects: file \(bytes) bytes (\(bytes / size) an object); importing added "
                        + "\(memory) bytes of memory beside the map, read after the last save.")
            }
        }
        return (
            rows,
            notes + ["Engines alternate; medians of \(repeats). Each size is a new file; reads follow a fresh open, warm."]
        )
    }

    private func row(
        _ operation: String, engine: Engine, size: Int, runs: [Figures], cost: KeyPath<Figures, Double>
    ) -> Report.Row {
        var row = Report.Row(benchmark: "scale", durability: durability.rawValue, objects: size, verified: true)
        row.operation = "\(operation), \(size) objects"
        row.engine = engine.rawValue
        row.store = engine.store?.rawValue
        row.saveEvery = saveEvery
        row.nanosecondsPerObject = Spread(runs.map { $0[keyPath: cost] })
        row.fileBytes = runs.map(\.fileBytes).max()
        return row
    }

    func check(_ engine: Engine, what: String, found: Int, expected: Int) throws {
        guard found == expected else {
            throw VerificationError("scale, \(engine.rawValue): \(what) gave \(found), expected \(expected)")
        }
    }

    private func run(_ engine: Engine, _ size: Int) async throws -> Figures {
        switch engine {
        case .sqliteRaw: try run(SQLiteRecords.self, size)
        case .lmdbRaw: try run(LMDBRecords.self, size)
        case .strata: try await run(.lmdb, engine: engine, size: size)
        case .strataSQLite: try await run(.sqlite, engine: engine, size: size)
        case .strataMemory: try await run(.memory, engine: engine, size: size)
        }
    }

    private func run(_ store: StoreKind, engine: Engine, size: Int) async throws -> Figures {
        let folder = try RunFolder()
        let model = try DatasetModel(RecordData.make(1, seed: seed))
        let setting = BenchmarkConfiguration.siblings(store)
        let (reads, updates) = (randomRows(size, seed &+ 1), randomRows(size, seed &+ 2))
        Memory.resetPeak()
        let before = Memory.anonymousBytes()
        let filled = try await folder.open(setting, model: model.model) { try await fill($0, size: size, model: model) }
        var figures = Figures()
        figures.memoryBytes = max(0, filled.result.memoryBytes - before)
        figures.fileBytes = folder.fileBytes()
        let expected = ExpectedRecords(size, seed: checkedSeed, picks: reads, updates: updates)
        let ids = filled.result.ids
        let start = Clock.now()
        let used = try await folder.open(setting, model: model.model) { container in
            figures.openNanoseconds = Double(Clock.now() - start)
            let reader = await container.newBackgroundContext(name: "reader")
            (figures.read, figures.scan) = try await reader.perform { context throws -> (Double, Double) in
                try (
                    pointReads(context, model: model, engine: engine, ids: ids, rows: reads, expected: expected),
                    scan(context, engine: engine, size: size, expected: expected)
                )
            }
            figures.update = try await update(container, model: model, ids: ids, rows: updates)
        }
        figures.insert = filled.result.nanoseconds
        _ = try await folder.open(setting, model: model.model) { container in
            try await Checksum.records(container, model.entities[0], ids: ids)
                .check("scale, \(engine.rawValue): \(size) records after the updates", expected.checksum)
        }
        withExtendedLifetime((filled.kept, used.kept)) {}
        return figures
    }

    func randomRows(_ size: Int, _ seed: UInt64) -> [Int] {
        var random = SeededNumbers(seed: seed)
        return (0..<Self.picks).map { _ in random.below(size) }
    }

    /// Imports the records. Returns their ids, the nanoseconds per object, and the memory of the process after the last save.
    private func fill(
        _ container: PersistentContainer, size: Int, model: DatasetModel
    ) async throws -> (ids: RowIDs, nanoseconds: Double, memoryBytes: Int) {
        let importer = await container.newBackgroundContext(name: "import")
        var random = SeededNumbers(seed: seed)
        var ids = RowIDs()
        var made: UInt64 = 0
        let start = Clock.now()
        for begin in stride(from: 0, to: size, by: saveEvery) {
            // Generating the values is not measured.
            let making = Clock.now()
            let rows = (begin..<min(size, begin + saveEvery)).map { _ in RecordData.values(&random) }
            made += Clock.now() - making
            ids = await importer.perform { [ids] context in
                var ids = ids
                let entity = model.entities[0]
                for values in rows { ids.append(context.insert(entity, values: values).objectID) }
                return ids
            }
            try await importer.save(durability.durability)
        }
        let sampling = Clock.now()
        let memory = Memory.anonymousBytes()
        made += Clock.now() - sampling
        if durability == .deferred { try await container.flush() }
        return (ids, Double(Clock.now() - start - made) / Double(size), memory)
    }

    private func pointReads(
        _ context: ManagedObjectContext, model: DatasetModel, engine: Engine, ids: RowIDs, rows: [Int],
        expected: ExpectedRecords
    ) throws -> Double {
        let attribute = model.entities[0].attributes[0]
        let picked = rows.map { ids[$0] }
        var sum = 0
        let result = cost(picked.count) {
            for id in picked {
                if case .int(let number) = context.object(with: id)[attribute: attribute] { sum += Int(number) }
            }
        }
        try check(engine, what: "point reads", found: sum, expected: expected.pickedSum)
        return result
    }

    private func scan(
        _ context: ManagedObjectContext, engine: Engine, size: Int, expected: ExpectedRecords
    ) throws -> Double {
        let request = EntityFetchRequest(
            RecordData.entity,
            matching: .all([
                .compare("count", .greaterOrEqual, to: .int(RecordData.leastCount)),
                .compare("kind", .equal, to: .int(RecordData.kind)),
            ]))
        var count = 0
        let result = try cost(size) { count = try context.count(request) }
        try check(engine, what: "the scan", found: count, expected: expected.matching)
        return result
    }

    private func update(
        _ container: PersistentContainer, model: DatasetModel, ids: RowIDs, rows: [Int]
    ) async throws -> Double {
        let updater = await container.newBackgroundContext(name: "updater")
        let start = Clock.now()
        for begin in stride(from: 0, to: rows.count, by: saveEvery) {
            await updater.perform { context in
                let amount = model.entities[0].attributes[RecordData.amount]
                for number in begin..<min(rows.count, begin + saveEvery) {
                    context.object(with: ids[rows[number]])[attribute: amount] = .double(Double(number))
                }
            }
            try await updater.save(durability.durability)
        }
        if durability == .deferred { try await container.flush() }
        return Double(Clock.now() - start) / Double(rows.count)
    }
}
