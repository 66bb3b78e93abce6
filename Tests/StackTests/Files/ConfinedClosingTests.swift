import Foundation
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Closing a container whose contexts have no executor: idle ones release the file, and a running request or save is awaited.
@Suite struct ConfinedClosingTests {
    /// Blocks the thread that runs a save until the flag is set.
    private final class BlockedSave: Sendable {
        private let begun = Mutex(false)
        let mayEnd = Flag()
        var hasBegun: Bool { begun.withLock { $0 } }

        func observe(_ context: ManagedObjectContext) -> ObservationToken {
            context.observe { [self] notice in
                guard notice.kind == .willSave else { return }
                begun.withLock { $0 = true }
                _ = mayEnd.wait(atMost: .seconds(600))
            }
        }
    }

    private static func code(_ body: () throws -> Void) -> StoreError.Code? {
        do { try body() } catch { return (error as? StoreError)?.code }
        return nil
    }

    /// Whether the file has no user in this process and no other.
    private static func isClosed(_ bed: TestBed) throws {
        guard let file = bed.description.migration else { return }
        try file.makeCopy().discard()
    }

    @Test(arguments: StoreKind.allCases)
    func `S169: closing ends the reads of idle contexts without an executor`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container)
        let kept = Kept()
        let (first, second) = try await confined.onThread { context in
            let (first, second) = (context.makeArtist("Ravel").objectID, context.makeArtist("Debussy").objectID)
            // A deferred save would stay readable in memory until the next request.
            try context.saveNow(.durable)
            context.reset()
            kept.objects = [context.object(with: first), context.object(with: second)]
            // Now the context retains a page of the file.
            #expect(kept.objects[0]["name"] == "Ravel")
            _ = context.makeTrack("unsaved")
            return (first, second)
        }
        // Others read nothing yet, or only a count.
        let unread = Carrier(container, "unread")
        let counting = Carrier(container, "counting")
        _ = try await counting.onThread { try $0.count(EntityFetchRequest("Artist")) }
        try await container.close()
        try Self.isClosed(bed)
        try await confined.onThread { context in
            context.shouldDeleteInaccessibleFaults = false
            #expect(kept.objects.map { $0["name"] } == ["", ""])
            #expect(kept.objects[0].relatedObjects("albums") == [])
            #expect(Self.code { _ = try context.existingObject(with: second) } == .closed)
            #expect(Self.code { _ = try context.fetch(EntityFetchRequest("Artist")) } == .closed)
            #expect(Self.code { try context.saveNow() } == .closed)
            #expect(context.insertedObjects.first?["title"] == "unsaved")
            #expect(context.object(with: first)["name"] == "")
            context.rollback()
            context.reset()
            kept.objects = []
        }
        for other in [unread, counting] {
            try await other.onThread { context in
                #expect(Self.code { _ = try context.count(EntityFetchRequest("Artist")) } == .closed)
            }
        }
    }

    /// Objects that stay registered between two uses. `@unchecked Sendable` is safe because one thread at a time uses them.
    private final class Kept: @unchecked Sendable {
        var objects: [ManagedObject] = []
    }

    /// Makes a track and saves it on a thread, in a save that `blocked` stops. Returns the code of the error.
    private static func save(_ confined: Carrier, _ blocked: BlockedSave) async throws -> StoreError.Code? {
        try await confined.onThread { context in
            let token = blocked.observe(context)
            context.makeTrack("a")
            defer { token.cancel() }
            return Self.code { try context.saveNow() }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S169: closing waits for a save on another thread`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container)
        let blocked = BlockedSave()
        async let saving = Self.save(confined, blocked)
        try await until("the save has begun") { blocked.hasBegun }
        let closing = Task { try await container.close(within: .seconds(600)) }
        // From here on, the save runs while the container waits for it.
        try await until("closing has begun") { Self.code { _ = try container.coordinator.snapshot() } == .closed }
        blocked.mayEnd.set()
        #expect(try await saving == .closed)
        try await closing.value
        try Self.isClosed(bed)
        #expect(try await confined.onThread { $0.hasChanges })
    }

    @Test(arguments: StoreKind.allCases)
    func `S169: closing names a context that does not end its save, and can be repeated`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container, "import")
        let blocked = BlockedSave()
        async let saving = Self.save(confined, blocked)
        try await until("the save has begun") { blocked.hasBegun }
        do {
            try await container.close(within: .milliseconds(20))
            Issue.record("closing did not wait")
        } catch let error as StoreError {
            #expect(error.code == .inUseElsewhere)
            #expect(error.message.contains("the context import is in use on another thread"), "\(error.message)")
        }
        blocked.mayEnd.set()
        #expect(try await saving == .closed)
        try await container.close()
        try Self.isClosed(bed)
    }

    @Test(arguments: StoreKind.allCases)
    func `S169: another container's contexts without an executor go on`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (first, second) = (try await bed.container(), try await bed.container())
        let (closed, open) = (Carrier(first, "closed"), Carrier(second, "open"))
        for carrier in [closed, open] {
            try await carrier.onThread { context in
                context.makeTrack("a")
                try context.saveNow()
            }
        }
        try await first.close()
        #expect(try await open.onThread { try $0.trackTitles() } == ["a", "a"])
        try await open.onThread { context in
            context.makeTrack("b")
            try context.saveNow()
        }
        await #expect(throws: StoreError.self) { _ = try await closed.onThread { try $0.trackTitles() } }
        try await second.close()
        try Self.isClosed(bed)
    }

    /// Threads that read, fetch and save without pause while the container closes. What was acknowledged is in the file.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S169: closing beside busy contexts without an executor keeps what was saved`(_ kind: StoreKind) async throws {
        for round in 0..<Rounds.of(3, long: 300) {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let saved = Counts()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<3 {
                    group.addTask {
                        try await Carrier(container, "\(number)").onThread { context in
                            for own in 1... {
                                let code = Self.code {
                                    let track = context.makeTrack("\(number)")
                                    try context.saveNow(number == 0 ? .durable : .deferred)
                                    saved.add()
                                    let tracks = try context.fetch(EntityFetchRequest("Track"))
                                    // A fetch is whole, even if the container is closed during it.
                                    #expect(tracks.count >= own)
                                    for track in tracks { _ = (track["title"], track.relatedObject("album")) }
                                    _ = track["plays"]
                                }
                                guard let code else { continue }
                                #expect(code == .closed)
                                return
                            }
                        }
                    }
                }
                group.addTask {
                    try await until("some saves") { saved.count >= 5 + round }
                    try await container.close()
                    try Self.isClosed(bed)
                }
                try await group.waitForAll()
            }
            let again = try await bed.container()
            #expect(try await again.read { try $0.count(EntityFetchRequest("Track")) } == saved.count, "round \(round)")
            try await again.close()
        }
    }

    private final class Counts: Sendable {
        private let number = Mutex(0)
        var count: Int { number.withLock { $0 } }
        func add() { number.withLock { $0 += 1 } }
    }
}
