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

    public func run(_ setting: Setting) async throws -> RunFigures {
        let folder = try RunFolder()
        let store = folder.store(setting.store, setting.routing)
        let importer = Importer(dataset: dataset, model: model, savePoints: savePoints, durability: durability.durability)
        var (figures, ids, container) = try await measure(importer, store, setting)
        figures.fileBytes = folder.fileBytes()
        // A store in memory lives as long as its container; a file is opened anew.
        if setting.store != .memory { container = nil }
        try await Verification(dataset: dataset, model: model, ids: ids).run(folder.store(setting.store, .snapshot))
        _ = container
        return figures
    }

    private func measure(
        _ importer: Importer, _ store: StoreDescription, _ setting: Setting
    ) async throws -> (RunFigures, [[ObjectID]], PersistentContainer?) {
        let container = try await PersistentContainer(model: model.model, store: store, stack: setting.stack)
        let table = dataset.tables[dataset.largestTable]
        let display = try await LiveDisplay(container, entity: table.name, sortedBy: table.attributes.first?.name)
        let context = await container.importContext(name: "import")
        let measurement = await Measurement.begin()
        let result = try await importer.run(context)
        try await display.wait(for: table.rowCount)
        if durability == .deferred { try await container.flush() }
        var figures = await measurement.end(spans: result.spans)
        figures.saves = result.saves
        await display.stop()
        return (figures, result.ids, container)
    }
}
