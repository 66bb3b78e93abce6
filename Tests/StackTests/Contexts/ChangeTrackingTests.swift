import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ChangeTrackingTests {
    @Test(arguments: StoreKind.allCases)
    func S030_changedValuesHoldNewValuesAndCommittedOnesTheOld(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a", plays: 1).objectID }
        try await worker.save()
        try await worker.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track.changedValues.isEmpty)
            track["plays"] = .int(2)
            #expect(track.changedValues == ["plays": .int(2)])
            #expect(track.committedValues(for: ["plays", "title"]) == ["plays": .int(1), "title": .string("a")])
            _ = context.newBackgroundChild()
            track["title"] = .string("b")
            #expect(track.changedValues == ["plays": .int(2), "title": .string("b")], "also across a sealed layer")
        }
        try await worker.save()
        try await worker.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track.changedValues.isEmpty, "S031")
            #expect(track.committedValues(for: ["plays"]) == ["plays": .int(2)], "S031")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S032_assigningAnEqualValueIsNotAChange(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a", plays: 1).objectID }
        try await worker.save()
        let generation = try container.coordinator.snapshot().generation
        try await worker.perform { context in
            let track = try context.existingObject(with: id)
            track["title"] = .string("a")
            track["plays"] = .int(1)
            track.setRelatedObject("album", to: nil)
            #expect(track.changedValues.isEmpty && !track.hasChanges && !context.hasChanges)
        }
        try await worker.save()
        #expect(try container.coordinator.snapshot().generation == generation, "S063: nothing was written")
    }

    @Test(arguments: StoreKind.allCases)
    func `S032: setting NaN over NaN is not a change`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let counter = Counter()
        _ = await worker.perform { $0.addObserver { notice in counter.note(notice) } }
        let id = await worker.perform { context in
            let track = context.makeTrack("a")
            track["rating"] = .double(.nan)
            return track.objectID
        }
        try await worker.save()
        let notices = counter.count(.objectsDidChange)
        let generation = try container.coordinator.snapshot().generation
        try await worker.perform { context in
            let track = try context.existingObject(with: id)
            track["rating"] = .double(.nan)
            track["rating"] = .double(Double(-Float.nan))
            #expect(track.changedValues.isEmpty && !track.hasChanges && !context.hasChanges)
        }
        try await worker.save()
        #expect(counter.count(.objectsDidChange) == notices)
        #expect(try container.coordinator.snapshot().generation == generation, "S063: nothing was written")
        // A number and NaN differ, in both directions, also in an object with unsaved changes.
        try await worker.perform { context in
            let track = try context.existingObject(with: id)
            track["rating"] = .double(1)
            track["rating"] = .double(.nan)
            #expect(track.hasChanges)
            if case .double(let rating) = track["rating"] { #expect(rating.isNaN) } else { Issue.record("no number") }
        }
        let changes = counter.count(.objectsDidChange)
        try await worker.perform { try $0.existingObject(with: id)["rating"] = .double(.nan) }
        #expect(counter.count(.objectsDidChange) == changes)
    }

    @Test func S034_modelDefaultsAreReadableAfterInsert() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let track = context.insert("Track")
            #expect(track["rating"] == .double(2.5))
            #expect(track["title"] == .string(""))
            #expect(track["isrc"] == .null)
        }
    }

    @Test(arguments: Combination.all)
    func S035_oneNoticePerPerformBlock(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let counter = Counter()
        _ = await worker.perform { $0.addObserver { notice in counter.note(notice) } }
        let id = await worker.perform { context in
            let track = context.makeTrack("a")
            for plays in 1...10 { track["plays"] = .int(Int64(plays)) }
            return track.objectID
        }
        #expect(counter.count(.objectsDidChange) == 1)
        try await worker.perform { context in
            let track = try context.existingObject(with: id)
            track["plays"] = .int(11)
            context.processPendingChanges()
            track["plays"] = .int(12)
        }
        #expect(counter.count(.objectsDidChange) == 3)
        await worker.perform { _ in }
        #expect(counter.count(.objectsDidChange) == 3, "nothing changed, nothing said")
    }
}
