import Dispatch
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct SnapshotTests {
    @Test(arguments: StoreKind.allCases)
    func S150_aKeptSnapshotIsReadByManyContextsAtOnce(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in for i in 0..<100 { context.makeTrack("t\(i)", plays: i) } }
        try await worker.save()
        let kept = try container.coordinator.snapshot()
        try await worker.perform { context in for track in try context.objects("Track") { track["plays"] = .int(-1) } }
        try await worker.save()
        let sums = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<8 {
                let reader = container.coordinator.newBackgroundContext(reading: kept)
                group.addTask {
                    try await reader.perform { context in
                        try context.objects("Track").reduce(into: Int64(0)) { sum, track in
                            if case .int(let plays) = track["plays"] { sum += plays }
                        }
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(sums == Array(repeating: 4950, count: 8))
    }

    /// Catches: a context that keeps the snapshot which it had before the reset, and does not merge saves any more.
    @Test(arguments: StoreKind.allCases)
    func `S049, S154: a reset ends the reading of a kept snapshot`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let kept = try container.coordinator.snapshot()
        let reader = container.coordinator.newBackgroundContext(name: "reader", reading: kept)
        let writer = container.coordinator.newBackgroundContext()
        try await writer.perform(andSave: .durable) { _ = $0.makeTrack("a") }
        #expect(try await reader.perform { try $0.trackTitles() } == [])
        await reader.perform { $0.reset() }
        try await writer.perform(andSave: .durable) { _ = $0.makeTrack("b") }
        await reader.perform { $0.automaticallyMergesChanges = true }
        #expect(try await reader.perform { try $0.trackTitles() }.sorted() == ["a", "b"])
        withExtendedLifetime(kept) {}
    }

    @Test(arguments: StoreKind.allCases)
    func S151_aTokenPinsAnotherContextToTheSameState(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (one, two) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        await one.perform { context in _ = context.makeTrack("a") }
        try await one.save()
        let token = await one.perform { $0.snapshot }
        let writer = container.coordinator.newBackgroundContext()
        await writer.perform { context in _ = context.makeTrack("b") }
        try await writer.save()
        await two.perform { $0.refreshAllObjects() }
        #expect(try await two.perform { try $0.trackTitles() } == ["a", "b"])
        await two.perform { $0.read(from: token) }
        #expect(try await two.perform { try $0.trackTitles() } == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func S153_readersDoNotWaitForAWriterNorWritersForReaders(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in _ = context.makeTrack("a") }
        try await worker.save()
        let held = try container.coordinator.snapshot()
        let store = container.coordinator.store
        let inside = DispatchSemaphore(value: 0)
        let release = DispatchSemaphore(value: 0)
        // Also if an expectation throws.
        defer { release.signal() }
        DispatchQueue.global().async {
            try? store.write(.durable) { _ in
                inside.signal()
                release.wait()
            }
            // Also if the transaction could not begin: the test must not wait for ever.
            inside.signal()
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                inside.wait()
                continuation.resume()
            }
        }
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.trackTitles() } == ["a"], "while a transaction is open")
        #expect(try store.snapshot().count(Music.query("Track")) == 1)
        release.signal()
        await worker.perform { context in _ = context.makeTrack("b") }
        try await worker.save()
        let late = container.coordinator.newBackgroundContext(reading: held)
        #expect(try await late.perform { try $0.trackTitles() } == ["a"])
    }

    /// Catches: a lost update, because the states of two containers of one file are ordered as if they were of one writer.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S100, S151: a context that reads another container's snapshot meets the saves since`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container()
        let id = try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { $0.makeTrack("a").objectID }
        let kept = try first.coordinator.snapshot()
        let second = try await bed.container()
        try await second.coordinator.newBackgroundContext().perform(andSave: .durable) { $0.object(with: id)["title"] = "b" }
        let reader = second.coordinator.newBackgroundContext(reading: kept)
        await #expect(throws: SaveError.self) {
            try await reader.perform(andSave: .durable) { $0.object(with: id)["title"] = "c" }
        }
        let moved = second.coordinator.newBackgroundContext()
        await moved.perform {
            $0.read(from: kept)
            $0.object(with: id)["title"] = "d"
        }
        await #expect(throws: SaveError.self) { try await moved.save() }
        #expect(try await second.read { try $0.trackTitles() } == ["b"])
    }

    /// Catches: a context that does not show its own save, and that a refresh does not move.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S068, S151: a context that reads another container's snapshot moves with its save`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container()
        let writer = first.coordinator.newBackgroundContext()
        for title in ["a", "b", "c"] { try await writer.perform(andSave: .durable) { _ = $0.makeTrack(title) } }
        let kept = try first.coordinator.snapshot()
        let second = try await bed.container()
        let reader = second.coordinator.newBackgroundContext(reading: kept)
        try await reader.perform(andSave: .durable) { _ = $0.makeTrack("d") }
        #expect(try await reader.perform { try $0.trackTitles() } == ["a", "b", "c", "d"])
        try await writer.perform(andSave: .durable) { _ = $0.makeTrack("e") }
        await reader.perform { $0.refreshAllObjects() }
        #expect(try await reader.perform { try $0.trackTitles() } == ["a", "b", "c", "d", "e"])
    }

    @Test func S151_aContextDoesNotReadAnotherStoresSnapshot() async throws {
        await #expect(processExitsWith: .failure) {
            let (bed, otherBed) = (try TestBed(.memory), try TestBed(.memory))
            let foreign = try await otherBed.container().coordinator.snapshot()
            let context = try await bed.container().coordinator.newBackgroundContext()
            await context.perform { $0.read(from: foreign) }
        }
        await #expect(processExitsWith: .failure) {
            let (bed, otherBed) = (try TestBed(.memory), try TestBed(.memory))
            let foreign = try await otherBed.container().coordinator.snapshot()
            _ = try await bed.container().coordinator.newBackgroundContext(reading: foreign)
        }
    }
}
