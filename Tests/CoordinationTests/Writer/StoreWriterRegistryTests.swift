import Foundation
import Platform
import TestSupport
import Testing

@testable import ObjectGraph

/// The writers of a process, while one of them waits for its disk.
@Suite struct StoreWriterRegistryTests {
    /// `@unchecked Sendable` is right because one thread after the other uses the reference.
    private final class Kept: @unchecked Sendable {
        var coordinator: PersistentStoreCoordinator?

        init(_ coordinator: PersistentStoreCoordinator) { self.coordinator = coordinator }
    }

    /// Catches: a release on the main thread that waits for the disk of another store.
    @Test func `opening a store that waits for its disk delays no other store of the process`() async throws {
        let (slow, other) = (FaultyStore(schema: Music.model.storeSchema), FaultyStore(schema: Music.model.storeSchema))
        let kept = Kept(try .music(other, SteppedClock()))
        let (isHeld, mayEnd) = (Flag(), Flag())
        defer { mayEnd.set() }
        slow.hold(.write, isHeld, until: mayEnd)
        let opened = Mutex<[PersistentStoreCoordinator]>([])
        let openings = (0..<2).map { _ in Flag() }
        for opening in openings {
            // Threads of their own, because blocked ones of Dispatch would delay the tests that run beside this one.
            Thread.detachNewThread {
                let coordinator = try? PersistentStoreCoordinator.music(slow, SteppedClock())
                opened.withLock { $0.append(contentsOf: [coordinator].compactMap(\.self)) }
                opening.set()
            }
        }
        try await until("a writer is made") { isHeld.wait(atMost: .zero) }
        let isReleased = Flag()
        Thread.detachNewThread {
            kept.coordinator = nil
            isReleased.set()
        }
        try await until("the other store is released") { isReleased.wait(atMost: .zero) }
        let third = try PersistentStoreCoordinator.music(other, SteppedClock())
        #expect(openings.allSatisfy { !$0.wait(atMost: .zero) })
        mayEnd.set()
        try await until("the store is opened twice") { openings.allSatisfy { $0.wait(atMost: .zero) } }
        let writers = opened.withLock { $0.map { ObjectIdentifier($0.writer) } }
        #expect(writers.count == 2 && Set(writers).count == 1, "both use one writer")
        withExtendedLifetime(third) {}
    }
}
