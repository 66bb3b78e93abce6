import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Compares objects with code that a user would otherwise write by hand on SQLite or LMDB. The engines alternate.
public struct Storage: Sendable {
    let importedData: PreparedDataset
    let recordData: PreparedDataset
    let matching: Int
    /// Random rows for point reads and updates, the same for every engine.
    let picks: [Int]
    /// The sum of the values that point reads return.
    let pickedSum: Int
    /// The expected content of a file at the end: the records after the updates.
    var updated: Dataset
    let saveEvery: Int
    let durability: DurabilityKind
    var shelves: IndexedWorkload
    var keyed: [KeyedWorkload]

    public init(imported: Dataset, objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        importedData = PreparedDataset(imported)
        self.saveEvery = saveEvery
        self.durability = durability
        let records = RecordData.make(objects, seed: seed)
        recordData = PreparedDataset(records)
        matching = RecordData.matching(records)
        shelves = IndexedWorkload(objects: objects, seed: seed, saveEvery: saveEvery, durability: durability)
        keyed = KeyedWorkload.Size.allCases.map {
            KeyedWorkload($0, keys: objects, seed: seed, saveEvery: saveEvery, durability: durability)
        }
        var random = SeededNumbers(seed: seed &+ 1)
        let picks = (0..<min(objects, 100_000)).map { _ in random.below(objects) }
        self.picks = picks
        let counts = records.tables[0].attributes[0].values
        pickedSum = picks.reduce(0) { sum, row in if case .int(let number) = counts[row] { sum + Int(number) } else { sum } }
        updated = RecordData.updated(records, picks)
    }

    var imported: Dataset { importedData.dataset }
    var records: Dataset { recordData.dataset }

    /// Returns one row per operation and engine.
    public func rows(_ engines: [Engine], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        var runs: [[EngineFigures]] = Array(repeating: [], count: engines.count)
        for _ in 0..<repeats {
            for (number, engine) in engines.enumerated() {
                progress.step("storage: \(engine.rawValue)")
                runs[number].append(try await run(engine))
            }
        }
        return StorageOperation.allCases.flatMap { operation in
            zip(engines, runs).compactMap { engine, runs in row(operation, engine: engine, runs: runs) }
        }
    }

    private func row(_ operation: StorageOperation, engine: Engine, runs: [EngineFigures]) -> Report.Row? {
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
        var figures =
            switch engine {
            case .sqliteRaw: try runSQLite().adding(shelves.runSQLite())
            case .lmdbRaw: try runLMDB().adding(shelves.runLMDB())
            case .strata: try await runStrata(.lmdb).adding(shelves.runStrata(.lmdb))
            case .strataSQLite: try await runStrata(.sqlite).adding(shelves.runStrata(.sqlite))
            case .strataMemory: try await runStrata(.memory).adding(shelves.runStrata(.memory))
            }
        for workload in keyed { figures = figures.adding(try await workload.run(engine)) }
        return figures
    }

    func check(_ engine: Engine, what: String, found: Int, expected: Int) throws {
        guard found == expected else {
            throw VerificationError("storage, \(engine.rawValue): \(what) gave \(found), expected \(expected)")
        }
    }
}

/// Returns the nanoseconds of `body`, divided by `count`.
package func cost(_ count: Int, _ body: () throws -> Void) rethrows -> Double {
    let start = Clock.now()
    try body()
    return Double(Clock.now() - start) / Double(count)
}
