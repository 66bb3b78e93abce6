import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Catches: compactions that change what contexts read, and stores that do not report that nothing is left to pack.
@Suite struct CompactionTests {
    @Test func contextsReadAndSaveOnAfterACompaction() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            for number in 0..<1000 { context.makeTrack("track \(number)", plays: number) }
            return context.makeTrack("last", plays: 1).objectID
        }
        try await worker.save()
        let result = try await container.compact(CompactionOptions(age: .any))
        #expect(result.pagesPacked > 0)
        await worker.perform { context in
            #expect(context.object(with: id)["title"] == .string("last"))
            context.object(with: id)["plays"] = .int(2)
        }
        try await worker.save()
        let other = container.coordinator.newBackgroundContext()
        #expect(await other.perform { $0.object(with: id)["plays"] } == .int(2))
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    /// An idle main context must not keep every page from before a compaction.
    @Test func compactionsGiveRoomBackWhileAMainContextIsOpen() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            for number in 0..<6400 { context.makeTrack("track \(number)", plays: number) }
        }
        try await worker.save()
        let ids = try await worker.perform { try $0.objects("Track").map(\.objectID) }
        var sizes: [Int] = []
        for round in 0..<8 {
            await worker.perform { context in
                for id in ids { context.object(with: id)["rating"] = .double(Double(round)) }
            }
            try await worker.save()
            try await container.compact(CompactionOptions(age: .any, effort: .fast))
            try await until("main is told") {
                await MainActor.run { container.mainContext.object(with: ids[round])["rating"] } == .double(Double(round))
            }
            sizes.append(try container.coordinator.store.fileBytes())
        }
        #expect(sizes[7] < sizes[2] * 3 / 2, "\(sizes)")
    }

    @Test func aStoreInMemoryHasNothingToCompact() async throws {
        let container = try await TestBed(.memory).container()
        #expect(try await container.compact() == CompactionProgress())
        await #expect(throws: StoreError.self) {
            try await container.compactCopy(to: FileManager.default.temporaryDirectory.appendingPathComponent("never"))
        }
    }
}
