import StoreInterface
import TestSupport

@testable import ObjectGraph

/// The main context of a container or one of its background contexts, and its watches.
struct WatchedContext: Sendable {
    let name: String
    /// nil for the main context.
    private let background: BackgroundContext?
    private let container: PersistentContainer
    /// Whether the context has a parent.
    let isChild: Bool
    let watches: [any ContextWatch]

    init(
        _ name: String, _ background: BackgroundContext?, in container: PersistentContainer, isChild: Bool,
        watches: [any ContextWatch]
    ) {
        (self.name, self.background, self.container, self.isChild) = (name, background, container, isChild)
        self.watches = watches
    }

    func perform<R: Sendable>(_ body: @Sendable (ManagedObjectContext) throws -> R) async throws -> R {
        if let background { return try await background.perform { try body($0) } }
        return try await MainActor.run { try body(container.mainContext) }
    }

    func save(_ durability: Durability, through: Bool) async throws {
        switch (background, through) {
        case (let background?, true): try await background.save(through: .store, durability)
        case (let background?, false): try await background.save(durability)
        case (nil, _): try await Self.saveMain(of: container, durability, through: through)
        }
    }

    @MainActor
    private static func saveMain(of container: PersistentContainer, _ durability: Durability, through: Bool) async throws {
        if through {
            try await container.mainContext.save(through: .store, durability)
        } else {
            try await container.mainContext.save(durability)
        }
    }

    func refreshFromParent() async throws {
        if let background { return try await background.refreshFromParent() }
        try await Self.refreshMain(of: container)
    }

    @MainActor
    private static func refreshMain(of container: PersistentContainer) async throws {
        try await container.mainContext.refreshFromParent()
    }

    /// Waits for the live results of a background context.
    func untilIdle() async {
        await background?.perform { [watches] _, context in
            context.processPendingChanges()
            for watch in watches { await watch.controller?.untilIdle() }
        }
    }

    /// Returns how one of the watches differs from a fetch; nil if none does.
    func difference() async throws -> String? {
        try await perform { [watches] context throws -> String? in
            for watch in watches {
                if let difference = try watch.difference(in: context) { return difference }
            }
            return nil
        }
    }
}
