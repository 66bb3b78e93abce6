import Foundation
import ObjectGraph
import SQLiteStore
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

    /// Catches: a token of one container after a save of another one that is not on disk. A power failure takes the save away, and a later
    /// one with its number is skipped.
    @Test(arguments: StoreKind.allCases)
    func `S160: a token of one container comes before deferred saves of another on the file`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container()
        let second = try await bed.container()
        let one = await first.newBackgroundContext()
        let two = await second.newBackgroundContext()
        await one.perform { _ = $0.makeTrack("a") }
        try await one.save()
        try await second.coordinator.refresh()
        let token = second.coordinator.currentHistoryToken
        #expect(token.generation == 1)
        await one.perform { _ = $0.makeTrack("b") }
        try await one.save(.deferred(within: .seconds(600)))
        try await second.coordinator.refresh()
        #expect(second.coordinator.currentHistoryToken == token)
        if kind == .sqlite {
            let reader = try await PersistentContainer(model: Music.model, store: .sqlite(bed.file, readOnly: true))
            #expect(reader.coordinator.currentHistoryToken == token)
            try await reader.close()
        }
        // A durable save takes the earlier saves with it, whoever made them.
        await two.perform { _ = $0.makeTrack("c") }
        try await two.save()
        try await first.coordinator.refresh()
        for container in [first, second] { #expect(container.coordinator.currentHistoryToken.generation == 3) }
        await two.perform { _ = $0.makeTrack("d") }
        try await two.save(.deferred(within: .seconds(600)))
        try await first.coordinator.refresh()
        for container in [first, second] { #expect(container.coordinator.currentHistoryToken.generation == 3) }
        try await first.flush()
        try await first.coordinator.refresh()
        for container in [first, second] { #expect(container.coordinator.currentHistoryToken.generation == 4) }
        #expect(try await first.coordinator.history(.init(after: token)).count == 3)
        try await first.close()
        try await second.close()
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
