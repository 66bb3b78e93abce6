import CoreDataRouting
import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The concurrent-stacks shootout: an import in a background context while main shows live results.
public struct Shootout: Workload {
    public let name = "shootout"
    public let durability: DurabilityKind
    private let data: PreparedDataset
    private let model: DatasetModel
    private let savePoints: SavePoints
    /// The processor time per object that stands for parsing.
    public var parseTimes = ParseTimes()
    /// Processor time for each object that a context takes from its child or saves to the store, in microseconds. Only with requests
    /// through ancestors: it stands for work that Core Data does there.
    public var coreDataCost = 0.0

    public init(_ dataset: Dataset, savePoints: SavePoints, durability: DurabilityKind) throws {
        data = PreparedDataset(dataset)
        self.savePoints = savePoints
        self.durability = durability
        model = try DatasetModel(dataset)
    }

    private var dataset: Dataset { data.dataset }

    public var objectCount: Int { dataset.rowCount }

    /// The objects alone, without links.
    var importedObjectCount: Int { dataset.objectCount }

    public var saveEvery: Int? {
        if case .every(let count) = savePoints { count } else { nil }
    }

    public func run(_ setting: BenchmarkConfiguration) async throws -> RunFigures {
        let folder = try RunFolder()
        return try await folder.run(setting, importing: dataset, model: model) {
            try await measure($0, in: folder, hops: $1, setting: setting)
        }
    }

    private func measure(
        _ container: PersistentContainer, in folder: RunFolder, hops: RequestHops, setting: BenchmarkConfiguration
    ) async throws -> (RunFigures, [[ObjectID]]) {
        let importer = Importer(
            data: data, model: model, savePoints: savePoints, durability: durability.durability,
            parsing: parseTimes.work(setting))
        let display = try await LiveDisplay(container, showing: dataset)
        let context = await container.importContext(name: "import")
        if coreDataCost > 0 {
            let work = ProcessorWork(nanoseconds: coreDataCost * 1000)
            hops.onServing { _, objects in for _ in 0..<objects { _ = work.run() } }
        }
        let hopsBefore = hops.counts
        let measurement = await Measurement.begin()
        let result = try await importer.run(context)
        try await display.wait(for: dataset.tables[dataset.shownTable].rowCount)
        if durability == .deferred { try await container.flush() }
        var figures = await measurement.end(spans: result.spans)
        figures.saves = result.saves
        figures.hops = hops.counts(since: hopsBefore)
        if result.parsingNanoseconds > 0 {
            let parsing = Double(result.parsingNanoseconds) / 1e6
            figures.extra = ["parsing": parsing, "below the importer": figures.totalSeconds * 1000 - parsing]
        }
        figures.fileBytes = folder.fileBytes()
        await display.stop()
        return (figures, result.ids)
    }
}

extension RequestHops {
    /// The requests that contexts sent to their parents since an earlier count, by kind and level.
    func counts(since before: [RequestHop: Int]) -> [String: Int] {
        let counts = counts.merging(before) { $0 - $1 }.filter { $0.value > 0 }
        return Dictionary(uniqueKeysWithValues: counts.map { ("\($0.kind.rawValue) \($0.level)", $1) })
    }
}
