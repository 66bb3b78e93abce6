import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct NoticeTests {
    @Test(arguments: Combination.all)
    func S120_noticesComeAsASequenceToo(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let notices = await worker.perform { $0.notices }
        let id = await worker.perform { $0.makeTrack("a").objectID }
        try await worker.save(through: .store)
        try await worker.perform { $0.delete(try $0.existingObject(with: id)) }
        try await worker.save(through: .store)
        var seen: [ContextNotice] = []
        for await notice in notices {
            seen.append(notice)
            if seen.count == 6 { break }
        }
        #expect(seen.map(\.kind) == [.objectsDidChange, .willSave, .didSave, .objectsDidChange, .willSave, .didSave])
        let store = container.coordinator.store.identity
        #expect(seen.prefix(3).allSatisfy { $0.changes.insertedIDs(in: store) == [id] })
        #expect(seen.suffix(3).allSatisfy { $0.changes.deletedIDs(in: store) == [id] })
    }

    /// Catches: an observer that mirrors a context by notices, and keeps an object that is gone.
    @Test(arguments: Combination.all)
    func `S041, S120: a notice names the deletion of a new object whose insertion an earlier notice has named`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let counter = Counter()
        let worker = await container.newBackgroundContext()
        let store = container.coordinator.store.identity
        let id = await worker.perform { context in
            _ = context.addObserver { counter.note($0) }
            return context.makeTrack("draft").objectID
        }
        await worker.perform { $0.delete($0.object(with: id)) }
        let changes = counter.all.filter { $0.kind == .objectsDidChange }.map(\.changes)
        #expect(changes.map { $0.insertedIDs(in: store) } == [[id], []])
        #expect(changes.map { $0.deletedIDs(in: store) } == [[], [id]])
        #expect(changes.allSatisfy { !$0.updatedIDs(in: store).contains(id) })
        try await worker.save(through: .store)
        #expect(try await container.read { try $0.trackTitles() } == [])
    }

    /// Catches: a rollback whose notice names an object as updated that was deleted before it, so that no notice names the deletion.
    @Test(arguments: Combination.all)
    func `S041, S048, S120: a rollback names the deletion of a new object that was deleted before it`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let counter = Counter()
        let store = container.coordinator.store.identity
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { context in
            _ = context.addObserver { counter.note($0) }
            return ["a", "b"].map { context.makeTrack($0).objectID }
        }
        let brief = await worker.perform { context in
            context.delete(context.object(with: ids[0]))
            let brief = context.makeTrack("brief")
            context.delete(brief)
            context.rollback()
            return brief.objectID
        }
        let changes = counter.all.filter { $0.kind == .objectsDidChange }.map(\.changes)
        #expect(Set(changes.flatMap { $0.deletedIDs(in: store) }) == Set(ids))
        #expect(changes.allSatisfy { $0.updatedIDs(in: store).isEmpty })
        #expect(!changes.contains { $0.insertedIDs(in: store).contains(brief) })
    }

    /// Catches: a notice that names the deletion of an object which was inserted before the first observer.
    @Test(arguments: Combination.all)
    func `S041, S120: no notice names the deletion of a new object that was inserted before the first observer was added`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let counter = Counter()
        let worker = await container.newBackgroundContext()
        let store = container.coordinator.store.identity
        let ids = await worker.perform { context in ["deleted", "updated", "saved"].map { context.makeTrack($0).objectID } }
        await worker.perform { context in
            _ = context.addObserver { counter.note($0) }
            context.delete(context.object(with: ids[0]))
            context.object(with: ids[1])["plays"] = .int(1)
        }
        await worker.perform { $0.delete($0.object(with: ids[1])) }
        try await worker.save(through: .store)
        await worker.perform { $0.delete($0.object(with: ids[2])) }
        let changes = counter.all.filter { $0.kind == .objectsDidChange }.map(\.changes)
        #expect(changes.map { $0.insertedIDs(in: store) } == [[ids[1]], [], []])
        #expect(changes.map { $0.deletedIDs(in: store) } == [[], [ids[1]], [ids[2]]])
        #expect(changes.allSatisfy { $0.updatedIDs(in: store).isEmpty })
    }

    /// Catches: a rollback that names the deletion of every new object.
    @Test(arguments: Combination.all, [true, false])
    func `S041, S048, S120: a rollback does not name a new object that no notice has named`(
        _ combination: Combination, isObservedFirst: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let counter = Counter()
        let store = container.coordinator.store.identity
        let worker = await container.newBackgroundContext()
        let saved = await worker.perform { $0.makeTrack("saved").objectID }
        try await worker.save(through: .store)
        await worker.perform { context in
            if isObservedFirst { _ = context.addObserver { counter.note($0) } }
            context.makeTrack("brief")
            if !isObservedFirst { _ = context.addObserver { counter.note($0) } }
            context.rollback()
        }
        #expect(counter.all.isEmpty)
        // The other changes of the rollback are named.
        let named = await worker.perform { $0.makeTrack("named").objectID }
        await worker.perform { context in
            context.makeTrack("brief")
            context.object(with: saved)["plays"] = .int(1)
            context.rollback()
        }
        let changes = counter.all.map(\.changes)
        #expect(changes.map { $0.insertedIDs(in: store) } == [[named], []])
        #expect(changes.map { $0.updatedIDs(in: store) } == [[], [saved]])
        #expect(changes.map { $0.deletedIDs(in: store) } == [[], [named]])
    }

    @Test(arguments: StoreKind.allCases)
    func S121_oneTypeCarriesNoticesHistoryAndPushes(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext(name: "importer")
        let counter = Counter()
        _ = await worker.perform { $0.addObserver { counter.note($0) } }
        await worker.perform { context in
            let list = context.insert("Playlist")
            list.add(context.makeTrack("a"), to: "tracks")
        }
        try await worker.save()
        let notice = try #require(counter.all.last { $0.kind == .didSave }).changes
        let history = try #require(try container.coordinator.store.changes(after: 0)).last
        #expect(history == notice)
        #expect(notice.metadata.contextName == "importer")
        #expect(notice.links.count == 1)
        let coded = try JSONDecoder().decode(ChangeSet.self, from: JSONEncoder().encode(notice))
        #expect(coded == notice)
    }

    @Test(arguments: StoreKind.allCases)
    func S120_movingToAnotherStateTellsOfTheRefreshedObjects(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a", plays: 1).objectID }
        try await worker.save()
        let before = try container.coordinator.snapshot()
        try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        try await worker.save()
        let counter = Counter()
        try await worker.perform { context throws in
            let track = try context.existingObject(with: id)
            #expect(track["plays"] == .int(2))
            _ = context.addObserver { counter.note($0) }
            context.read(from: before)
            #expect(track["plays"] == .int(1))
        }
        #expect(counter.all.map(\.kind) == [.objectsDidChange])
        #expect(counter.all.first?.refreshed == [id])
        #expect(counter.all.first?.changes.isEmpty == true)
    }

    @Test(.timeLimit(.minutes(10)), arguments: Combination.all)
    func S120_theSequenceOfNoticesEndsWithItsContext(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        var worker: BackgroundContext? = await container.newBackgroundContext()
        let notices = try #require(await worker?.perform { $0.notices })
        await worker?.perform { context in _ = context.makeTrack("a") }
        worker = nil
        var seen: [ContextNotice.Kind] = []
        for await notice in notices { seen.append(notice.kind) }
        #expect(seen == [.objectsDidChange])
    }

    @Test func S171_usingAContextOffItsExecutorStopsWithItsName() async throws {
        await #expect(processExitsWith: .failure) {
            let bed = try TestBed(.memory)
            let container = try await bed.container()
            let smuggled = await MainActor.run { Smuggled(context: container.mainContext) }
            await Task.detached { _ = smuggled.context.insert("Track") }.value
        }
    }

    /// Catches: a registry that two threads change. The compiler permits a class on the main actor to be released anywhere.
    @Test func S171_lettingGoOfAnObjectOffItsExecutorStopsWithItsContextsName() async throws {
        await #expect(processExitsWith: .failure) {
            let bed = try TestBed(.memory)
            let container = try await bed.container()
            let worker = await container.newBackgroundContext()
            let id = await worker.perform { $0.makeTrack("t").objectID }
            try await worker.save(through: .store)
            nonisolated(unsafe) var holder: Holder? = await MainActor.run {
                Holder(object: container.mainContext.object(with: id))
            }
            await Task.detached {
                #expect(holder != nil)
                holder = nil
            }.value
        }
    }
}

@MainActor private final class Holder {
    let object: ManagedObject

    init(object: ManagedObject) { self.object = object }
}

/// Hides the context from the compiler's checks.
private struct Smuggled: @unchecked Sendable {
    // Wrong on purpose: the test is that the run-time check catches it.
    let context: ManagedObjectContext
}
