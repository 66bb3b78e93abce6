import Foundation
import Observation
import Strata
import Synchronization
import Testing

/// A hierarchy whose subclasses declare properties of the same kinds, so that the store numbers them differently than a single class does.
enum Fleet {
    @Model class Vessel {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Barge: Vessel {
        var load = 1
        var crates: [Item] = []
        override init(name: String) { super.init(name: name) }
    }

    @Model final class Yacht: Vessel {
        var length = 1
        var guests: [Item] = []
        override init(name: String) { super.init(name: name) }
    }

    @Model final class Item {
        var title: String
    }
}

/// Observers of models whose superclass is a model.
@Suite @MainActor struct SubclassObservationTests {
    /// Counts the notification of what is read once.
    private final class Notified: Sendable {
        private let number = Mutex(0)
        var count: Int { number.withLock { $0 } }

        init(_ read: () -> Void) {
            withObservationTracking {
                read()
            } onChange: {
                self.number.withLock { $0 += 1 }
            }
        }
    }

    /// Catches: observers of a new object that are registered for the numbers that its properties had without a context.
    @Test(arguments: TestStore.allCases)
    func `S146, S180: observers of a model of a subclass that began before its insertion are notified afterwards`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: Fleet.Barge.self, Fleet.Yacht.self, Fleet.Item.self, store: description)
            let main = container.mainContext
            let (barge, yacht, item) = (Fleet.Barge(name: "b"), Fleet.Yacht(name: "y"), Fleet.Item(title: "i"))
            let attributes = [
                Notified { _ = barge.name }, Notified { _ = barge.load }, Notified { _ = yacht.name },
                Notified { _ = yacht.length },
            ]
            let lists = [Notified { _ = barge.crates }, Notified { _ = yacht.guests }]
            main.insert(barge)
            main.insert(yacht)
            main.insert(item)
            #expect((attributes + lists).map(\.count) == [0, 0, 0, 0, 0, 0])
            (barge.load, yacht.length) = (2, 2)
            #expect(attributes.map(\.count) == [0, 1, 0, 1])
            (barge.name, yacht.name) = ("c", "z")
            #expect(attributes.map(\.count) == [1, 1, 1, 1])
            barge.crates = [item]
            yacht.guests = [item]
            #expect(lists.map(\.count) == [1, 1])
            // Observers that begin now have the numbers of the context.
            let later = [Notified { _ = yacht.length }, Notified { _ = yacht.guests }]
            yacht.length = 3
            yacht.guests = []
            #expect(later.map(\.count) == [1, 1])
            try await main.save()
            try await container.close()
        }
    }
}
