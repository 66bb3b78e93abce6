import Datasets
import Figures
import Histogram
import ObjectGraph
import StoreInterface

/// Measures whether readers at full speed and a writer at full speed make each other wait.
public struct Readers: Sendable {
    public static let counts = [1, 2, 4, 8]

    let objects: Int
    let seed: UInt64
    let saveEvery: Int
    let durability: DurabilityKind
    let seconds: Double
    /// The seed of the records that the check expects. It is the seed of the run, unless a test changes it.
    var checkedSeed: UInt64

    public init(objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind, seconds: Double) {
        self.objects = objects
        self.seed = seed
        checkedSeed = seed
        self.saveEvery = saveEvery
        self.durability = durability
        self.seconds = seconds
    }

    /// The number of reads of one reader in one state, before it moves to the newest state.
    static let readsAState = 1_000

    struct Figures: Sendable {
        var median = 0.0
        var p99 = 0.0
        var p999 = 0.0
        var readNanoseconds = 0.0
        /// nil if there was no writer.
        var writeNanoseconds: Double?
    }

    public func rows(_ engines: [Engine], repeats: Int, progress: ProgressBar) async throws -> (
        rows: [Report.Row], notes: [String]
    ) {
        var rows: [Report.Row] = []
        var notes: [String] = []
        for count in Self.counts {
            var alone: [[Figures]] = Array(repeating: [], count: engines.count)
            var beside = alone
            for _ in 0..<repeats {
                for (number, engine) in engines.enumerated() {
                    progress.step("readers: \(engine.rawValue), \(count), no writer")
                    alone[number].append(try await run(engine, count: count, writer: .none))
                    progress.step("readers: \(engine.rawValue), \(count), a writer")
                    beside[number].append(try await run(engine, count: count, writer: .atFullSpeed))
                }
            }
            for (number, engine) in engines.enumerated() {
                let (alone, beside) = (alone[number], beside[number])
                rows +=
                    self.rows("\(count) readers", engine: engine, runs: alone)
                    + self.rows("\(count) readers and a writer", engine: engine, runs: beside)
                let ratio = Spread(beside.map(\.p99)).median / Spread(alone.map(\.p99)).median
                notes.append(
                    "\(engine.rawValue), \(count) readers: p99 with a writer / without \((ratio * 100).rounded() / 100).")
            }
        }
        return (
            rows,
            notes + [
                "One read: one property of a random object in a context, which moves to the newest state every \(Self.readsAState) reads; raw, "
                    + "one column of a row, in a read transaction of \(Self.readsAState). Latencies by HdrHistogram, with three digits, of all "
                    + "readers together; \"all\" is wall time by all reads. Where there are more readers and writers than cores, the tail is the "
                    + "scheduler's: contexts share as many threads as there are cores, raw readers have one each. Medians of \(repeats) runs "
                    + "of \(seconds) s."
            ]
        )
    }

    enum Writer: Sendable { case none, atFullSpeed }

    private func rows(_ name: String, engine: Engine, runs: [Figures]) -> [Report.Row] {
        func row(_ operation: String, _ values: [Double]) -> [Report.Row] {
            guard !values.isEmpty else { return [] }
            var row = Report.Row(benchmark: "readers", durability: durability.rawValue, objects: objects, verified: true)
            row.operation = "\(name): \(operation)"
            row.engine = engine.rawValue
            row.store = engine.store?.rawValue
            row.saveEvery = saveEvery
            row.nanosecondsPerObject = Spread(values)
            return [row]
        }
        return row("read p50", runs.map(\.median)) + row("read p99", runs.map(\.p99)) + row("read p99.9", runs.map(\.p999))
            + row("read, all", runs.map(\.readNanoseconds)) + row("update", runs.compactMap(\.writeNanoseconds))
    }

    private func run(_ engine: Engine, count: Int, writer: Writer) async throws -> Figures {
        switch engine {
        case .sqliteRaw: try await run(SQLiteRecords.self, count: count, writer: writer)
        case .lmdbRaw: try await run(LMDBRecords.self, count: count, writer: writer)
        case .strata: try await run(.lmdb, count: count, writer: writer)
        case .strataSQLite: try await run(.sqlite, count: count, writer: writer)
        case .strataMemory: try await run(.memory, count: count, writer: writer)
        }
    }

    private func run(_ store: StoreKind, count: Int, writer: Writer) async throws -> Figures {
        let folder = try RunFolder()
        let model = try DatasetModel(RecordData.make(1, seed: seed))
        return try await folder.run(.siblings(store), model: model.model) { container in
            let ids = try await fill(container, model)
            let counts = counts
            let (figures, updates) = try await figures(count, writer) { number, end in
                try await read(container, model: model, ids: ids, counts: counts, seed: seed &+ UInt64(number), until: end)
            } write: { end in
                try await write(container, model: model, ids: ids, until: end)
            }
            return (figures: figures, updates: updates, ids: RowIDs(ids))
        } check: { container, work in
            try await Checksum.records(container, model.entities[0], ids: work.ids)
                .check("readers, \(store.rawValue): records after \(work.updates) updates", expected(work.updates))
        }.figures
    }

    func expected(_ updates: Int) -> Checksum {
        ExpectedRecords(objects, seed: checkedSeed, picks: [], updates: updatedRows.prefix(updates)).checksum
    }

    /// Runs readers and the writer at the same time. Also returns the number of updates.
    func figures(
        _ count: Int, _ writer: Writer, read: @escaping @Sendable (_ number: Int, _ end: UInt64) async throws -> Part,
        write: @escaping @Sendable (_ end: UInt64) async throws -> Part
    ) async throws -> (Figures, updates: Int) {
        let start = Clock.now()
        let end = start + UInt64(seconds * 1e9)
        return try await withThrowingTaskGroup(of: Part.self) { group in
            for number in 0..<count { group.addTask { try await read(number, end) } }
            if writer == .atFullSpeed { group.addTask { try await write(end) } }
            var all = Self.emptyHistogram
            var figures = Figures()
            var updates = 0
            for try await part in group {
                switch part {
                case .reads(let values, let number):
                    for value in values.recordedValues() { all.record(value.value, count: value.count) }
                    figures.readNanoseconds += Double(number)
                case .updates(let number, let end):
                    figures.writeNanoseconds = Double(end - start) / Double(max(number, 1))
                    updates = number
                }
            }
            figures.median = Double(all.valueAtPercentile(50))
            figures.p99 = Double(all.valueAtPercentile(99))
            figures.p999 = Double(all.valueAtPercentile(99.9))
            figures.readNanoseconds = seconds * 1e9 / max(figures.readNanoseconds, 1)
            return (figures, updates)
        }
    }

    /// The rows that the writer updates, an endless sequence. Each row's amount becomes its position in this sequence.
    var updatedRows: some Sequence<Int> {
        sequence(state: SeededNumbers(seed: seed &+ 77)) { random in random.below(objects) }
    }

    enum Part: Sendable {
        case reads(Histogram<UInt64>, Int)
        /// The number of updates, and the time of the clock after the last one.
        case updates(Int, end: UInt64)
    }

    /// A histogram for times of up to ten seconds, with three digits.
    static var emptyHistogram: Histogram<UInt64> {
        Histogram(highestTrackableValue: 10_000_000_000, numberOfSignificantValueDigits: .three)
    }

    private func fill(_ container: PersistentContainer, _ model: DatasetModel) async throws -> [ObjectID] {
        let importer = await container.newBackgroundContext(name: "import")
        let (seed, objects) = (seed, objects)
        let ids = await importer.perform { context in
            var random = SeededNumbers(seed: seed)
            return (0..<objects).map { _ in context.insert(model.entities[0], values: RecordData.values(&random)).objectID }
        }
        try await importer.save()
        return ids
    }

    private func read(
        _ container: PersistentContainer, model: DatasetModel, ids: [ObjectID], counts: [Int], seed: UInt64,
        until end: UInt64
    ) async throws -> Part {
        var latencies = Self.emptyHistogram
        var random = SeededNumbers(seed: seed)
        var count = 0
        let attribute = model.entities[0].attributes[0]
        while Clock.now() < end {
            let reader = await container.newBackgroundContext(name: "reader")
            let picks = (0..<Self.readsAState).map { _ in random.below(ids.count) }
            let (times, sum) = await reader.perform { context in
                var times: [UInt64] = []
                times.reserveCapacity(picks.count)
                var sum = 0
                for row in picks {
                    let start = Clock.now()
                    if case .int(let number) = context.object(with: ids[row])[attribute: attribute] { sum += Int(number) }
                    times.append(Clock.now() - start)
                }
                return (times, sum)
            }
            let expected = picks.reduce(0) { $0 + counts[$1] }
            guard sum == expected else { throw VerificationError("readers: reads gave \(sum), expected \(expected)") }
            for time in times { latencies.record(time) }
            count += picks.count
        }
        return .reads(latencies, count)
    }

    /// The value of each record in its first column, which no update changes.
    var counts: [Int] {
        var random = SeededNumbers(seed: checkedSeed)
        return (0..<objects).map { _ in if case .int(let count) = RecordData.values(&random)[0] { Int(count) } else { 0 } }
    }

    private func write(
        _ container: PersistentContainer, model: DatasetModel, ids: [ObjectID], until end: UInt64
    ) async throws -> Part {
        let writer = await container.newBackgroundContext(name: "writer")
        var rows = updatedRows.makeIterator()
        var count = 0
        while Clock.now() < end {
            let picks = (0..<min(saveEvery, objects)).compactMap { _ in rows.next().map { ids[$0] } }
            let base = count
            await writer.perform { context in
                let amount = model.entities[0].attributes[RecordData.amount]
                for (number, id) in picks.enumerated() {
                    context.object(with: id)[attribute: amount] = .double(Double(base + number))
                }
            }
            try await writer.save(durability.durability)
            count += picks.count
        }
        if durability == .deferred { try await container.flush() }
        return .updates(count, end: Clock.now())
    }
}
