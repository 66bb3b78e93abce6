import ObjectGraph
import SQLiteStore
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The way that contexts read from a store, for comparisons.
public enum Routing: String, Sendable, Hashable, CaseIterable {
    /// Each context reads layers over a snapshot, as in every program. No reader waits for another reader or a writer.
    case snapshot
    /// Each request goes through every ancestor's executor to the coordinator's single connection, as in Core Data.
    case ancestors
}

extension StoreDescription {
    /// A store in an SQLite file. With `snapshot`, each context has its own read transaction. With `ancestors`, one connection reads and
    /// writes, as in Core Data.
    public static func sqlite(_ url: URL, routing: Routing) -> StoreDescription {
        .sqlite(url, connections: routing == .ancestors ? .sharedWithWriter : .onePerSnapshot)
    }
}

extension PersistentContainer {
    /// Opens the store and creates the contexts.
    ///
    /// - Parameters:
    ///   - model: The model of the store's objects.
    ///   - store: The store. On SQLite, use ``StoreInterface/StoreDescription/sqlite(_:routing:)`` with the same routing.
    ///   - stack: The arrangement of the contexts.
    ///   - routing: The way that the contexts read.
    ///   - hops: The counts of the requests that contexts send to their parents.
    public convenience init(
        model: Model, store: StoreDescription, stack: ContextStack = .siblings, routing: Routing,
        hops: RequestHops = RequestHops()
    ) async throws {
        switch routing {
        case .snapshot: try await self.init(model: model, store: store, stack: stack)
        case .ancestors:
            try await self.init(
                model: model, store: store, stack: stack,
                rootRoute: { AncestorRoute(entityCount: $0.entities.count, hops: hops) })
        }
    }
}
