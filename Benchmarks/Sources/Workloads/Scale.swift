import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The same work at growing sizes: what an object costs, how long opening takes, how large file and memory become.
public struct Scale: Sendable {
    public let sizes: [Int]
    private let seed: UInt64
    private let saveEvery: Int
    private let durability: DurabilityKind

    /// - Parameter objects: the largest size; the others are 10,000 and its tenfolds below.
    public init(objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        sizes = Array(sequence(first: 10_000) { $0 * 10 }.prefix { $0 < objects }) + [objects]
        self.seed = seed
        self.saveEvery = saveEvery
        self.durability = durability
    }

    private static let picks = 100_000

    private struct Figures: Sendable {
        var insert = 0.0
        var read = 0.0
        var scan = 0.0
        var update = 0.0
        var openNanoseconds = 0.0
        var fileBytes = 0
        /// What importing added to the memory that is not a map of the file.
        var memoryBytes = 0
    }

    public func rows(_ stores: [StoreKind], repeats: Int, progress: ProgressBar) async throws -> (
        rows: [Report.Row], notes: [String]
    ) {
        var rows: [Report.Row] = []
        var notes: [String] = []
        for store in stores {
            for size in sizes {
                var runs: [Figures] = []
                for _ in 0..<repeats {
                    progress.step("scale: \(store.rawValue), \(size) objects")
                    runs.append(try await run(store, size))
                }
                rows.append(row("insert", store, size, runs, \.insert))
                rows.append(row("point read", store, size, runs, \.read))
                rows.append(row("full scan", store, size, runs, \.scan))
                rows.append(row("random update", store, size, runs, \.update))
                rows.append(row("open, in all", store, size, runs, \.openNanoseconds))
                let bytes = runs.map(\.fileBytes).max() ?? 0
                let memory = runs.map(\.memoryBytes).max() ?? 0
                notes.append(
                    "\(store.rawValue), \(size) objects: file \(bytes) bytes (\(bytes / size) an object); importing added \(memory) bytes "
                        + "of memory beside the map.")
            }
        }
        return (rows, notes + ["Medians of \(repeats). Each size is a new file; reads follow a fresh open, warm."])
    }

    private func row(
        _ operation: String, _ store: StoreKind, _ size: Int, _ runs: [Figures], _ cost: KeyPath<Figures, Double>
    ) -> Report.Row {
        var row = Report.Row(benchmark: "scale", durability: durability.rawValue, objects: size, verified: true)
        row.operation = "\(operation), \(size) objects"
        row.engine = Engine.allCases.first { $0.store == store }?.rawValue
        row.store = store.rawValue
        row.saveEvery = saveEvery
        row.nanosecondsPerObject = Spread(runs.map { $0[keyPath: cost] })
        row.fileBytes = runs.map(\.fileBytes).max()
        return row
    }

    private func run(_ store: StoreKind, _ size: Int) async throws -> Figures {
        var figures = Figures()
        let folder = try RunFolder()
        let model = try DatasetModel(RecordData.make(1, seed: seed))
        Memory.resetPeak()
        let before = Memory.anonymousBytes()
        let (first, matching, sum) = try await fill(store, size, model, folder, &figures)
        figures.memoryBytes = max(0, Memory.anonymousBytes() - before)
        figures.fileBytes = folder.fileBytes()
        let start = Clock.now()
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        figures.openNanoseconds = Double(Clock.now() - start)
        // Keys of one importer are dense, so a random object is one addition away.
        let keys = first.key..<first.key + UInt64(size)
        let reader = await container.newBackgroundContext(name: "reader")
        (figures.read, figures.scan) = try await reader.perform { context throws -> (Double, Double) in
            try read(context, model, first, keys, matching, sum)
        }
        figures.update = try await update(container, model, first, keys)
        return figures
    }

    /// Imports; gives the first id, how many objects the scan must find, and the sum of all counts.
    private func fill(
        _ store: StoreKind, _ size: Int, _ model: DatasetModel, _ folder: RunFolder, _ figures: inout Figures
    ) async throws -> (ObjectID, Int, Int) {
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        let importer = await container.newBackgroundContext(name: "import")
        var random = SeededNumbers(seed: seed)
        var matching = 0
        var sum = 0
        var first: ObjectID?
        var made: UInt64 = 0
        let start = Clock.now()
        for begin in stride(from: 0, to: size, by: saveEvery) {
            // Making the values is not what is measured.
            let making = Clock.now()
            let rows = (begin..<min(size, begin + saveEvery)).map { _ in RecordData.values(&random) }
            for row in rows {
                guard case .int(let count) = row[0], case .int(let kind) = row[1] else { continue }
                sum += Int(count)
                if count >= RecordData.leastCount, kind == RecordData.kind { matching += 1 }
            }
            made += Clock.now() - making
            let id = await importer.perform { context in
                var id: ObjectID?
                for values in rows {
                    let object = context.insert(model.entities[0], values: values)
                    if id == nil { id = object.objectID }
                }
                return id
            }
            first = first ?? id
            try await importer.save(durability.durability)
        }
        if durability == .deferred { try await container.flush() }
        figures.insert = Double(Clock.now() - start - made) / Double(size)
        guard let first else { throw VerificationError("scale: nothing was imported") }
        return (first, matching, sum)
    }

    private func read(
        _ context: ManagedObjectContext, _ model: DatasetModel, _ first: ObjectID, _ keys: Range<UInt64>, _ matching: Int,
        _ sum: Int
    ) throws -> (Double, Double) {
        let attribute = model.entities[0].attributes[0]
        var random = SeededNumbers(seed: seed &+ 1)
        let ids = (0..<Self.picks).map { _ in
            ObjectID(store: first.store, entity: first.entity, key: keys.lowerBound + UInt64(random.below(keys.count)))
        }
        var found = 0
        var start = Clock.now()
        for id in ids {
            if case .int = context.object(with: id)[attribute: attribute] { found += 1 }
        }
        let read = Double(Clock.now() - start) / Double(ids.count)
        guard found == ids.count else { throw VerificationError("scale: \(found) of \(ids.count) objects had a value") }
        let request = EntityFetchRequest(
            RecordData.entity,
            matching: .all([
                .compare("count", .greaterOrEqual, .int(RecordData.leastCount)), .compare("kind", .equal, .int(RecordData.kind)),
            ]))
        start = Clock.now()
        let count = try context.count(request)
        let scan = Double(Clock.now() - start) / Double(keys.count)
        guard count == matching else { throw VerificationError("scale: the scan found \(count), expected \(matching)") }
        return (read, scan)
    }

    private func update(
        _ container: PersistentContainer, _ model: DatasetModel, _ first: ObjectID, _ keys: Range<UInt64>
    ) async throws -> Double {
        let updater = await container.newBackgroundContext(name: "updater")
        var random = SeededNumbers(seed: seed &+ 2)
        let start = Clock.now()
        for begin in stride(from: 0, to: Self.picks, by: saveEvery) {
            let picks = (begin..<min(Self.picks, begin + saveEvery)).map { _ in keys.lowerBound + UInt64(random.below(keys.count))
            }
            await updater.perform { context in
                let amount = model.entities[0].attributes[2]
                for (number, key) in picks.enumerated() {
                    let id = ObjectID(store: first.store, entity: first.entity, key: key)
                    context.object(with: id)[attribute: amount] = .double(Double(begin + number))
                }
            }
            try await updater.save(durability.durability)
        }
        if durability == .deferred { try await container.flush() }
        return Double(Clock.now() - start) / Double(Self.picks)
    }
}
