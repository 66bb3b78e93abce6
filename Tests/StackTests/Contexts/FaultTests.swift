import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct FaultTests {
    @Test(arguments: Combination.all)
    func S020_aFetchedObjectIsAFaultUntilItIsChanged(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in _ = context.makeTrack("a", plays: 3) }
        try await worker.save(through: .store)
        let reader = await container.newBackgroundContext()
        try await reader.perform { context in
            let track = try #require(try context.objects("Track").first)
            #expect(track.isFault)
            #expect(track["plays"] == .int(3))
            #expect(track.isFault, "a clean object holds no values, whatever was read")
            track["plays"] = .int(4)
            #expect(!track.isFault)
        }
    }

    /// Catches: a fetch or a read of one property that decodes other properties. The bytes of the title are not valid text, so
    /// every read of the title fails.
    @Test func S020_readingOnePropertyOfAFaultDecodesThatOneOnly() async throws {
        let bed = try TestBed(.lmdb)
        let mark = "zzqq damaged here qqzz"
        do {
            let container = try await bed.container()
            let worker = container.newBatchOperationContext()
            await worker.perform { context in
                for number in 0..<20 { context.makeTrack(number == 7 ? mark : "title \(number)", plays: number) }
            }
            try await worker.save(.durable)
        }
        try await bed.closed()
        var file = try Data(contentsOf: bed.file)
        var places = 0
        while let place = file.range(of: Data(mark.utf8)) {
            file.replaceSubrange(place, with: Data(repeating: 0xFF, count: mark.utf8.count))
            places += 1
        }
        #expect(places > 0)
        try file.write(to: bed.file)
        let container = try await bed.container()
        let id = try await container.newBatchOperationContext().perform { context in
            let tracks = try context.fetch(EntityFetchRequest("Track", sortBy: [AttributeSort("plays")]))
            #expect(tracks.map { $0["plays"] } == (0..<20).map { .int($0) })
            #expect(tracks.allSatisfy { $0["rating"] == .double(2.5) && $0["isrc"] == .null && $0.isFault })
            #expect(try context.count(EntityFetchRequest("Track", matching: .equal("plays", .int(7)))) == 1)
            return tracks[7].objectID
        }
        #expect(throws: StoreError.self) {
            try container.coordinator.store.snapshot().value(id.entity, key: id.key, column: Music.column("Track", "title"))
        }
    }

    @Test(arguments: Combination.rooted)
    func S022_aFaultWhoseRecordIsGoneReadsAsNothingAndCountsAsDeleted(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a", plays: 3).objectID }
        try await worker.save()
        let reader = await container.newBackgroundContext()
        try await worker.perform { $0.delete(try $0.existingObject(with: id)) }
        try await worker.save()
        await reader.perform { context in
            let track = context.object(with: id)
            #expect(track["title"] == .string("a"), "S023: the reader's snapshot still has it")
            context.refreshAllObjects()
            #expect(track["title"] == .string(""))
            #expect(track["isrc"] == .null)
            #expect(track["plays"] == .int(0))
            #expect(track.isDeleted)
        }
        let other = await container.newBackgroundContext()
        await other.perform { #expect($0.object(with: id).isDeleted, "a fault that is made after the deletion") }
    }

    @Test(arguments: Combination.all)
    func S023_aPinnedContextNeverMeetsAnInaccessibleFault(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in for i in 0..<200 { context.makeTrack("t\(i)", plays: i) } }
        try await worker.save(through: .store)
        let pinned = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
        let faults = try await pinned.perform { try $0.objects("Track").map(\.objectID) }
        let killer = await container.newBackgroundContext()
        try await killer.perform { context in for track in try context.objects("Track") { context.delete(track) } }
        try await killer.save(through: .store)
        let sum = try await pinned.perform { context in
            try faults.reduce(0) { sum, id in
                guard case .int(let plays) = try context.existingObject(with: id)["plays"] else { return -1_000_000 }
                return sum + Int(plays)
            }
        }
        #expect(sum == 199 * 100)
        let late = container.coordinator.newBackgroundContext()
        #expect(try await late.perform { try $0.objects("Track").isEmpty })
    }

    @Test(arguments: StoreKind.allCases)
    func S024_refreshDropsOrKeepsLocalChanges(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let first = container.coordinator.newBackgroundContext()
        let second = container.coordinator.newBackgroundContext()
        let id = await first.perform { $0.makeTrack("a", plays: 1).objectID }
        try await first.save()
        await second.perform { $0.refreshAllObjects() }
        try await first.perform { try $0.existingObject(with: id)["title"] = .string("b") }
        try await first.save()
        try await second.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track["title"] == .string("a"))
            track["plays"] = .int(5)
            context.refresh(track, mergeChanges: true)
            #expect(track["title"] == .string("b"), "the store's latest")
            #expect(track["plays"] == .int(5), "the local change")
            context.refresh(track, mergeChanges: false)
            #expect(track["plays"] == .int(1))
            #expect(!context.hasChanges && track.isFault)
            track["plays"] = .int(6)
            context.refreshAllObjects()
            #expect(track["plays"] == .int(6), "refreshAllObjects keeps dirty changes")
        }
    }
}
