import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// What a user would otherwise write on SQLite or LMDB, through objects and by hand, alternating.
public struct Storage: Sendable {
    private let imported: Dataset
    private let records: Dataset
    private let matching: Int
    /// Random rows for point reads and updates, the same for every engine.
    private let picks: [Int]
    private let saveEvery: Int
    private let durability: DurabilityKind
    private let shelves: Shelves

    public init(imported: Dataset, objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        self.imported = imported
        self.saveEvery = saveEvery
        self.durability = durability
        records = RecordData.make(objects, seed: seed)
        matching = RecordData.matching(records)
        shelves = Shelves(objects: objects, seed: seed, saveEvery: saveEvery, durability: durability)
        var random = SeededNumbers(seed: seed &+ 1)
        picks = (0..<min(objects, 100_000)).map { _ in random.below(objects) }
    }

    /// One row an operation and engine.
    public func rows(_ engines: [Engine], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        var runs: [[EngineFigures]] = Array(repeating: [], count: engines.count)
        for _ in 0..<repeats {
            for (number, engine) in engines.enumerated() {
                progress.step("storage: \(engine.rawValue)")
                runs[number].append(try await run(engine))
            }
        }
        return StorageOperation.allCases.flatMap { operation in
            zip(engines, runs).compactMap { engine, runs in row(operation, engine, runs) }
        }
    }

    private func row(_ operation: StorageOperation, _ engine: Engine, _ runs: [EngineFigures]) -> Report.Row? {
        let costs = runs.compactMap { $0.costs[operation] }
        guard !costs.isEmpty else { return nil }
        var row = Report.Row(
            benchmark: "storage", durability: durability.rawValue,
            objects: operation == .importing ? imported.rowCount : records.rowCount, verified: true)
        row.operation = operation.rawValue
        row.engine = engine.rawValue
        row.store = engine.store?.rawValue
        row.saveEvery = saveEvery
        row.nanosecondsPerObject = Spread(costs)
        if operation == .insert { row.fileBytes = runs.map(\.fileBytes).max() }
        return row
    }

    private func run(_ engine: Engine) async throws -> EngineFigures {
        switch engine {
        case .sqliteRaw: try runSQLite().adding(shelves.runSQLite())
        case .lmdbRaw: try runLMDB()
        case .strata: try await runStrata(.lmdb).adding(shelves.runStrata(.lmdb))
        case .strataSQLite: try await runStrata(.sqlite).adding(shelves.runStrata(.sqlite))
        case .strataMemory: try await runStrata(.memory).adding(shelves.runStrata(.memory))
        }
    }

    /// Nanoseconds that `body` took, by `count`.
    private func cost(_ count: Int, _ body: () throws -> Void) rethrows -> Double {
        let start = Clock.now()
        try body()
        return Double(Clock.now() - start) / Double(count)
    }

    private func check(_ engine: Engine, _ what: String, _ found: Int, _ expected: Int) throws {
        guard found == expected else {
            throw VerificationError("storage, \(engine.rawValue): \(what) gave \(found), expected \(expected)")
        }
    }

    /// The sum of what point reads give, the same on every engine.
    private var expectedSum: Int {
        picks.reduce(0) { sum, row in
            if case .int(let number) = records.tables[0].attributes[0].values[row] { sum + Int(number) } else { sum }
        }
    }

    // MARK: Floors

    private func runSQLite() throws -> EngineFigures {
        var figures = EngineFigures()
        let folder = try RunFolder()
        let importing = try SQLiteFloor(path: folder.path("import.sqlite"), durability: durability)
        figures.costs[.importing] = try cost(imported.rowCount) { try importing.run(imported, saveEvery: saveEvery) }
        try importing.verify(imported)
        let other = try RunFolder()
        let floor = try SQLiteFloor(path: other.path("records.sqlite"), durability: durability)
        figures.costs[.insert] = try cost(records.rowCount) { try floor.run(records, saveEvery: saveEvery) }
        try floor.verify(records)
        figures.fileBytes = other.fileBytes()
        let database = floor.database
        var sum = 0
        let get = try database.prepare("SELECT \"count\" FROM \"Record\" WHERE id_key = ?")
        try database.execute("BEGIN")
        figures.costs[.pointRead] = try cost(picks.count) {
            for row in picks {
                get.bind(1, Int64(row + 1))
                if try get.step() { sum += Int(get.int(0)) }
                get.reset()
            }
        }
        try check(.sqliteRaw, "point reads", sum, expectedSum)
        let scan = try database.prepare("SELECT COUNT(*) FROM \"Record\" WHERE \"count\" >= ? AND kind = ?")
        scan.bind(1, RecordData.leastCount)
        scan.bind(2, RecordData.kind)
        var count = 0
        figures.costs[.scan] = try cost(records.rowCount) {
            if try scan.step() { count = Int(scan.int(0)) }
            scan.reset()
        }
        try database.execute("COMMIT")
        try check(.sqliteRaw, "the scan", count, matching)
        let update = try database.prepare("UPDATE \"Record\" SET amount = ? WHERE id_key = ?")
        figures.costs[.update] = try cost(picks.count) {
            for start in stride(from: 0, to: picks.count, by: saveEvery) {
                try database.execute("BEGIN IMMEDIATE")
                for index in start..<min(picks.count, start + saveEvery) {
                    update.bind(1, Double(index))
                    update.bind(2, Int64(picks[index] + 1))
                    try update.run()
                }
                try database.execute("COMMIT")
            }
        }
        return figures
    }

    private func runLMDB() throws -> EngineFigures {
        var figures = EngineFigures()
        let folder = try RunFolder()
        let importing = try LMDBFloor(path: folder.path("import.lmdb"), durability: durability)
        figures.costs[.importing] = try cost(imported.rowCount) { try importing.run(imported, saveEvery: saveEvery) }
        try importing.verify(imported)
        let other = try RunFolder()
        let floor = try LMDBFloor(path: other.path("records.lmdb"), durability: durability)
        figures.costs[.insert] = try cost(records.rowCount) { try floor.run(records, saveEvery: saveEvery) }
        try floor.verify(records)
        figures.fileBytes = other.fileBytes()
        try floor.environment.begin(.reading)
        var sum = 0
        // In a row, "count" is the first value: a byte that says whether there is one, then eight bytes.
        figures.costs[.pointRead] = try cost(picks.count) {
            for row in picks {
                sum +=
                    try floor.environment.get(floor.firstTable, key: UInt64(row + 1)) { bytes in
                        Int(bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self))
                    } ?? 0
            }
        }
        try check(.lmdbRaw, "point reads", sum, expectedSum)
        var count = 0
        figures.costs[.scan] = try cost(records.rowCount) {
            try floor.environment.forEach(floor.firstTable) { bytes in
                if bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self) >= RecordData.leastCount,
                    bytes.loadUnaligned(fromByteOffset: 10, as: Int64.self) == RecordData.kind
                {
                    count += 1
                }
            }
        }
        try floor.environment.commit()
        try check(.lmdbRaw, "the scan", count, matching)
        figures.costs[.update] = try cost(picks.count) { try floor.updateAmounts(picks, saveEvery) }
        return figures
    }

    // MARK: Through objects

    private func runStrata(_ store: StoreKind) async throws -> EngineFigures {
        var figures = EngineFigures()
        figures.costs[.importing] = try await importCost(store)
        let folder = try RunFolder()
        let model = try DatasetModel(records)
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        let importer = Importer(
            dataset: records, model: model, savePoints: .every(saveEvery), durability: durability.durability)
        let start = Clock.now()
        let ids = try await importer.run(container.importContext(name: "import")).ids
        if durability == .deferred { try await container.flush() }
        figures.costs[.insert] = Double(Clock.now() - start) / Double(records.rowCount)
        figures.fileBytes = folder.fileBytes()
        let engine = Engine.allCases.first { $0.store == store } ?? .strata
        let reader = await container.newBackgroundContext(name: "reader")
        figures.costs[.pointRead] = try await reader.perform { context throws -> Double in
            try pointReads(ids[0], model, context, engine)
        }
        figures.costs[.scan] = try await reader.perform { context throws -> Double in try scan(context, engine) }
        let updater = await container.newBackgroundContext(name: "updater")
        let updateStart = Clock.now()
        for first in stride(from: 0, to: picks.count, by: saveEvery) {
            await updater.perform { context in
                let amount = model.entities[0].attributes[2]
                for index in first..<min(picks.count, first + saveEvery) {
                    context.object(with: ids[0][picks[index]])[attribute: amount] = .double(Double(index))
                }
            }
            try await updater.save(durability.durability)
        }
        if durability == .deferred { try await container.flush() }
        figures.costs[.update] = Double(Clock.now() - updateStart) / Double(picks.count)
        return figures
    }

    private func importCost(_ store: StoreKind) async throws -> Double {
        let folder = try RunFolder()
        let model = try DatasetModel(imported)
        var container: PersistentContainer? = try await PersistentContainer(
            model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        guard let context = await container?.importContext(name: "import") else { return 0 }
        let importer = Importer(
            dataset: imported, model: model, savePoints: .every(saveEvery), durability: durability.durability)
        let start = Clock.now()
        let result = try await importer.run(context)
        if durability == .deferred { try await container?.flush() }
        let cost = Double(Clock.now() - start) / Double(imported.rowCount)
        if store != .memory { container = nil }
        try await Verification(dataset: imported, model: model, ids: result.ids).run(folder.store(store, .snapshot))
        _ = container
        return cost
    }

    private func pointReads(
        _ ids: [ObjectID], _ model: DatasetModel, _ context: ManagedObjectContext, _ engine: Engine
    ) throws -> Double {
        let attribute = model.entities[0].attributes[0]
        var sum = 0
        let result = cost(picks.count) {
            for row in picks {
                if case .int(let number) = context.object(with: ids[row])[attribute: attribute] { sum += Int(number) }
            }
        }
        try check(engine, "point reads", sum, expectedSum)
        return result
    }

    private func scan(_ context: ManagedObjectContext, _ engine: Engine) throws -> Double {
        let request = EntityFetchRequest(
            RecordData.entity,
            matching: .all([
                .compare("count", .greaterOrEqual, .int(RecordData.leastCount)), .compare("kind", .equal, .int(RecordData.kind)),
            ]))
        var count = 0
        let result = try cost(records.rowCount) { count = try context.count(request) }
        try check(engine, "the scan", count, matching)
        return result
    }
}
