import Foundation
import Observation
import Strata
import Synchronization
import Testing

/// Observers that are never notified, of objects that are gone. What detects observers still keeps their closures for a while.
@Suite @MainActor struct ReleasedObserverTests {
    @Model final class Lamp {
        var name: String
    }

    /// An object that a closure captures, and that reads models when it is deallocated.
    private final class Reader: Sendable {
        private let read: @Sendable () -> Void

        init(_ read: @escaping @Sendable () -> Void) { self.read = read }

        deinit { read() }
    }

    private func observe(_ lamps: [Lamp], keeping reader: Reader) {
        for lamp in lamps {
            withObservationTracking {
                _ = lamp.name
            } onChange: {
                withExtendedLifetime(reader) {}
            }
        }
    }

    /// Catches: a read that stops the program or never returns, because it releases objects that read in the same context.
    @Test func `S146: objects that observers captured may read objects of the context in deinit`() async throws {
        let container = try await PersistentContainer(for: Lamp.self, store: .memory(name: UUID().uuidString))
        let main = container.mainContext
        var lamps = (0..<70).map { Lamp(name: "\($0)") }
        let (other, third) = (Lamp(name: "other"), Lamp(name: "third"))
        for lamp in lamps + [other, third] { main.insert(lamp) }
        try await main.save()
        let id = third.id
        let read = Mutex("")
        observe(
            lamps,
            keeping: Reader {
                MainActor.assumeIsolated {
                    let name = container.mainContext.object(Lamp.self, with: id).name
                    read.withLock { $0 = name }
                }
            })
        lamps = []
        #expect(read.withLock { $0 } == "", "the probe keeps the closures")
        #expect(other.name == "other")
        #expect(read.withLock { $0 } == "third")
    }

    /// Catches: the same for objects that are in no context. All threads share what detects their observers.
    @Test func `S146: objects that observers captured may read objects without a context in deinit`() {
        let read = Mutex("")
        observe(
            (0..<70).map { Lamp(name: "\($0)") },
            keeping: Reader {
                let name = Lamp(name: "third").name
                read.withLock { $0 = name }
            })
        // Reads of other tests may have replaced the detector meanwhile. The next one is worn after as many reads.
        for _ in 0..<100 where read.withLock({ $0 }).isEmpty {
            observe((0..<70).map { Lamp(name: "\($0)") }, keeping: Reader {})
            #expect(Lamp(name: "other").name == "other")
        }
        #expect(read.withLock { $0 } == "third")
    }
}
