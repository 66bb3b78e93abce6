import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The history while deferred saves are not on disk. A program may store each token that it gets.
@Suite struct DeferredHistoryTests {
    @Test(arguments: Combination.all)
    func `S160: tokens and the history have only what is on disk`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let coordinator = container.coordinator
        let worker = await container.newBackgroundContext()
        await worker.perform { _ = $0.makeTrack("a") }
        try await worker.save(through: .store)
        try await coordinator.refresh()
        let token = coordinator.currentHistoryToken
        #expect(token.generation > 0)
        for title in ["b", "c"] {
            await worker.perform { _ = $0.makeTrack(title) }
            try await worker.save(through: .store, .deferred(within: .seconds(600)))
            try await coordinator.refresh()
            #expect(coordinator.currentHistoryToken == token)
        }
        // A store that has deferred saves in its file may take them to disk to return them.
        let read = try await coordinator.history(.init(after: token)).map(\.token)
        #expect(read.last ?? token == coordinator.currentHistoryToken)
        #expect(read.isEmpty || combination.store == .sqlite)
        try await container.flush()
        try await coordinator.refresh()
        #expect(coordinator.currentHistoryToken.generation == token.generation.advanced(by: 2))
        #expect(try await coordinator.history(.init(after: token)).count == 2)
        // A durable save takes the deferred ones before it to the disk.
        await worker.perform { _ = $0.makeTrack("d") }
        try await worker.save(through: .store, .deferred(within: .seconds(600)))
        await worker.perform { _ = $0.makeTrack("e") }
        try await worker.save(through: .store)
        try await coordinator.refresh()
        #expect(coordinator.currentHistoryToken.generation == token.generation.advanced(by: 4))
        #expect(try await coordinator.history(.init(after: token)).count == 4)
        try await container.close()
    }

    /// Catches: a token of a save that a power failure has taken away. Later saves have its number, and are skipped.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S066, S160: a token from before a power failure skips no save that was made after it`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { _ = $0.makeTrack("a") }
        try await worker.save()
        // A power failure leaves the files as they were at the last sync.
        let left = try TestBed(kind)
        for name in try FileManager.default.contentsOfDirectory(atPath: bed.folder.path) where !name.hasSuffix("-shm") {
            try FileManager.default.copyItem(
                at: bed.folder.appendingPathComponent(name), to: left.folder.appendingPathComponent(name))
        }
        for title in ["b", "c"] {
            await worker.perform { _ = $0.makeTrack(title) }
            try await worker.save(.deferred(within: .seconds(600)))
        }
        let token = container.coordinator.currentHistoryToken
        try await container.close()
        let after = try await left.container()
        let next = await after.newBackgroundContext()
        await next.perform { $0.transactionAuthor = "later" }
        for title in ["d", "e", "f"] {
            await next.perform { _ = $0.makeTrack(title) }
            try await next.save()
        }
        #expect(try await after.coordinator.history(.init(after: token)).map(\.author) == ["later", "later", "later"])
        try await after.close()
    }
}
