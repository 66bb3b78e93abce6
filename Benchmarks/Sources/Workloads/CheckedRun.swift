import CoreDataRouting
import Datasets
import ObjectGraph
import StoreInterface

extension RunFolder {
    /// Runs the work in a new container, then reopens the store in another container and checks the result.
    ///
    /// - Parameter hops: The counts of the requests in the container of the work.
    func run<Result>(
        _ setting: BenchmarkConfiguration, model: Model, hops: RequestHops = RequestHops(),
        _ work: (PersistentContainer) async throws -> Result,
        check: (PersistentContainer, Result) async throws -> Void
    ) async throws -> Result {
        let (result, kept) = try await open(setting, model: model, hops: hops, work)
        // The check has no unsaved changes, so it does not need the routing `ancestors`.
        _ = try await open(.siblings(setting.store), model: model) { container in try await check(container, result) }
        withExtendedLifetime(kept) {}
        return result
    }

    /// Imports a data set, and finds every value and relationship in the reopened container. Returns the measurements of
    /// `work`, which gets the container and the counts of the requests in it.
    func run<Measured>(
        _ setting: BenchmarkConfiguration, importing dataset: Dataset, model: DatasetModel,
        _ work: (PersistentContainer, RequestHops) async throws -> (Measured, [[ObjectID]])
    ) async throws -> Measured {
        let hops = RequestHops()
        return try await run(setting, model: model.model, hops: hops) {
            try await work($0, hops)
        } check: { container, result in
            try await Verification(dataset: dataset, model: model, ids: result.1).run(container)
        }.0
    }

    /// Opens a container and releases it after the work. A store in memory lives as long as its container, so that container is
    /// returned too.
    func open<Result>(
        _ setting: BenchmarkConfiguration, model: Model, hops: RequestHops = RequestHops(),
        _ work: (PersistentContainer) async throws -> Result
    ) async throws -> (result: Result, kept: PersistentContainer?) {
        let container = try await PersistentContainer(
            model: model, store: store(setting.store, setting.routing), stack: setting.stack, routing: setting.routing, hops: hops
        )
        return (try await work(container), setting.store == .memory ? container : nil)
    }
}
