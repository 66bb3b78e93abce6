import Datasets
import ObjectGraph
import StoreInterface

extension RunFolder {
    /// Works in a new container, then checks what is left in one that is opened anew.
    func run<Result>(
        _ setting: BenchmarkConfiguration, _ model: Model, _ work: (PersistentContainer) async throws -> Result,
        check: (PersistentContainer, Result) async throws -> Void
    ) async throws -> Result {
        let (result, kept) = try await open(setting, model, work)
        // Checking has nothing unsaved, so it needs no ancestors.
        _ = try await open(.siblings(setting.store), model) { container in try await check(container, result) }
        withExtendedLifetime(kept) {}
        return result
    }

    /// Imports a data set; gives what `work` measured, once every value and relationship is found in the container opened anew.
    func run<Measured>(
        _ setting: BenchmarkConfiguration, importing dataset: Dataset, _ model: DatasetModel,
        _ work: (PersistentContainer) async throws -> (Measured, [[ObjectID]])
    ) async throws -> Measured {
        try await run(setting, model.model, work) { container, result in
            try await Verification(dataset: dataset, model: model, ids: result.1).run(container)
        }.0
    }

    /// Opens a container and lets it go after the work, unless its store is in memory, which lives as long as its container: then the
    /// container is given back too.
    func open<Result>(
        _ setting: BenchmarkConfiguration, _ model: Model, _ work: (PersistentContainer) async throws -> Result
    ) async throws -> (result: Result, kept: PersistentContainer?) {
        let container = try await PersistentContainer(
            model: model, store: store(setting.store, setting.routing), stack: setting.stack)
        return (try await work(container), setting.store == .memory ? container : nil)
    }
}
