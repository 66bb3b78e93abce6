import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The concurrent-stacks shootout: an import in a background context while main shows live results.
public struct Shootout: Workload {
    public let name = "shootout"
    public let durability: DurabilityKind
    private let dataset: Dataset
    private let model: DatasetModel
    private let savePoints: SavePoints

    public init(_ dataset: Dataset, savePoints: SavePoints, durability: DurabilityKind) throws {
        self.dataset = dataset
        self.savePoints = savePoints
        self.durability = durability
        model = try DatasetModel(dataset)
    }

    public var objectCount: Int { dataset.rowCount }

    public var saveEvery: Int? {
        if case .every(let count) = savePoints { count } else { nil }
    }

    public func run(_ setting: BenchmarkConfiguration) async throws -> RunFigures {
        let folder = try RunFolder()
        return try await folder.run(setting, importing: dataset, model) { try await measure($0, folder) }
    }

    private func measure(_ container: PersistentContainer, _ folder: RunFolder) async throws -> (RunFigures, [[ObjectID]]) {
        let importer = Importer(dataset: dataset, model: model, savePoints: savePoints, durability: durability.durability)
        let display = try await LiveDisplay(container, showing: dataset)
        let context = await container.importContext(name: "import")
        let measurement = await Measurement.begin()
        let result = try await importer.run(context)
        try await display.wait(for: dataset.tables[dataset.largestTable].rowCount)
        if durability == .deferred { try await container.flush() }
        var figures = await measurement.end(spans: result.spans)
        figures.saves = result.saves
        figures.fileBytes = folder.fileBytes()
        await display.stop()
        return (figures, result.ids)
    }
}
