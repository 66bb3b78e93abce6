import CoreDataRouting
import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Saves many objects at once while a label ticks on main, and measures how late its ticks are.
public struct Stall: Workload {
    public let name = "stall"
    public let durability: DurabilityKind
    public let saveEvery: Int?
    private let data: PreparedDataset
    private let model: DatasetModel

    /// - Parameters:
    ///   - dataset: The data to import. See ``strings(_:seed:)``.
    ///   - saveEvery: The number of objects per save. nil means one save.
    public init(_ dataset: Dataset, saveEvery: Int?, durability: DurabilityKind) throws {
        data = PreparedDataset(dataset)
        self.saveEvery = saveEvery
        self.durability = durability
        model = try DatasetModel(dataset)
    }

    /// Generates objects with one random string each.
    public static func strings(_ objects: Int = 25_000, seed: UInt64) -> Dataset {
        var random = SeededNumbers(seed: seed)
        let texts = (0..<objects).map { _ in Value.string(random.word(20...60)) }
        let text = TableAttribute(name: "text", type: .string, isOptional: false, values: texts)
        return Dataset(name: "random strings", tables: [Table(name: "Item", attributes: [text], rowCount: objects)])
    }

    private var dataset: Dataset { data.dataset }

    public var objectCount: Int { dataset.rowCount }

    public func run(_ setting: BenchmarkConfiguration) async throws -> RunFigures {
        let folder = try RunFolder()
        return try await folder.run(setting, importing: dataset, model: model) {
            try await measure($0, in: folder, hops: $1)
        }
    }

    private func measure(
        _ container: PersistentContainer, in folder: RunFolder, hops: RequestHops
    ) async throws -> (RunFigures, [[ObjectID]]) {
        let display = try await LiveDisplay(container, showing: dataset)
        let importer = Importer(
            data: data, model: model, savePoints: saveEvery.map { .every($0) } ?? .atEnd, durability: durability.durability)
        let context = await container.importContext(name: "import")
        let slow = Ticker(period: 100_000_000)
        let fast = Ticker(period: 8_333_333)
        let hopsBefore = hops.counts
        let measurement = await Measurement.begin()
        slow.start()
        fast.start()
        let result = try await importer.run(context)
        try await display.wait(for: dataset.tables[dataset.shownTable].rowCount)
        if durability == .deferred { try await container.flush() }
        var figures = await measurement.end(spans: result.spans)
        let lateness = (slow.stop(), fast.stop())
        figures.saves = result.saves
        figures.extra = ["latest tick of 100 ms": lateness.0 / 1e6, "latest tick of 8.3 ms": lateness.1 / 1e6]
        figures.hops = hops.counts(since: hopsBefore)
        figures.fileBytes = folder.fileBytes()
        await display.stop()
        return (figures, result.ids)
    }
}
