import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import SQLiteStore

/// The history through the public interface.
@Suite struct HistoryTests {
    @Test(arguments: Combination.all)
    func S160_aSaveIsRecordedWithItsAuthorTimeProcessAndObjects(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let start = Date()
        let worker = await container.newBackgroundContext(name: "importer")
        let (track, other) = await worker.perform { context in
            context.transactionAuthor = "sync"
            return (context.makeTrack("a").objectID, context.makeTrack("b").objectID)
        }
        try await worker.save(through: .store)
        let token = container.coordinator.currentHistoryToken
        let list = try await worker.perform { context in
            try context.existingObject(with: track)["plays"] = .int(9)
            try context.existingObject(with: other)["title"] = .string("c")
            let list = context.insert("Playlist")
            list.add(try context.existingObject(with: track), to: "tracks")
            return list.objectID
        }
        try await worker.save(through: .store)
        let history = try await container.coordinator.history(.init(after: token))
        try #require(history.count == 1)
        let save = history[0]
        #expect(save.author == "sync" && save.contextName == "importer")
        #expect(save.processID == ProcessInfo.processInfo.processIdentifier)
        #expect(save.date >= start.addingTimeInterval(-0.001) && save.date <= Date().addingTimeInterval(0.001))
        #expect(save.token > token && save.token == container.coordinator.currentHistoryToken)
        let changes = Dictionary(uniqueKeysWithValues: save.changes.map { ($0.objectID, $0) })
        #expect(changes.count == 3)
        #expect(changes[track]?.kind == .update && changes[track]?.updatedProperties == ["plays", "playlists"])
        #expect(changes[other]?.updatedProperties == ["title"])
        #expect(changes[list]?.kind == .insert && changes[list]?.entityName == "Playlist")
    }

    @Test(arguments: StoreKind.allCases) func S160_theHistoryIsFilteredByAuthorAndEntity(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        for (author, entity) in [("a", "Track"), ("b", "Artist"), (nil, "Track")] {
            let worker = await container.newBackgroundContext()
            await worker.perform { context in
                context.transactionAuthor = author
                if entity == "Track" { context.makeTrack("t") } else { context.makeArtist("n") }
            }
            try await worker.save()
        }
        #expect(try await coordinator.history().map(\.author) == ["a", "b", nil])
        #expect(try await coordinator.history(.init(authors: ["b", ""])).map(\.author) == ["b", nil])
        #expect(try await coordinator.history(.init(excludingAuthors: ["b"])).map(\.author) == ["a", nil])
        #expect(try await coordinator.history(.init(entities: ["Artist"])).map(\.author) == ["b"])
        #expect(try await coordinator.history(.init(entities: ["Nobody"])).isEmpty)
        #expect(try await coordinator.history(.init(limit: 2)).count == 2)
    }

    @Test(arguments: StoreKind.allCases) func S160_deletedObjectsLeaveTombstones(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { context in
            (0..<3).map { number in
                let note = context.insert("Note")
                note["remote"] = .string("r\(number)")
                note["text"] = .string("t\(number)")
                return note.objectID
            }
        }
        // Deferred, so that the value is found in memory and not on disk.
        try await worker.save(.deferred)
        let before = await worker.perform { $0.snapshot.generation }
        try await worker.perform { context in
            let changed = try context.existingObject(with: ids[0])
            changed["remote"] = .string("unsaved")
            for id in ids.prefix(2) { context.delete(try context.existingObject(with: id)) }
        }
        try await worker.save()
        let token = HistoryToken(store: container.coordinator.store.identity.uuid, generation: before)
        let save = try #require(try await container.coordinator.history(.init(after: token)).first)
        #expect(save.changes.map(\.kind) == [.delete, .delete])
        #expect(save.changes.map(\.tombstone) == [["remote": .string("r0")], ["remote": .string("r1")]])
    }

    @Test(arguments: StoreKind.allCases) func S160_batchesAreRecordedWithTheirAuthorAndTombstones(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let coordinator = container.coordinator
        var options = BatchOptions()
        options.author = "importer"
        let rows = (0..<100).map { [Value.string("r\($0)"), .string("t")] }
        let inserted = try await coordinator.insert(into: "Note", ["remote", "text"], rows: rows, options: options)
        try await coordinator.batchDelete(EntityFetchRequest("Note"), options: options)
        let history = try await coordinator.history(.init(authors: ["importer"]))
        #expect(history.map(\.changes.count) == [100, 100] && history.allSatisfy { $0.contextName == "batch" })
        #expect(history.first?.changes.map(\.objectID) == inserted.insertedIDs)
        #expect(history.last?.changes.map(\.tombstone) == (0..<100).map { ["remote": .string("r\($0)")] })
    }

    @Test(arguments: StoreKind.allCases) func S160_oldSavesAreDeletedByTokenAndByAge(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let worker = await container.newBackgroundContext()
        var tokens = [coordinator.currentHistoryToken]
        for number in 0..<5 {
            await worker.perform { _ = $0.makeTrack("\(number)") }
            try await worker.save()
            tokens.append(coordinator.currentHistoryToken)
        }
        let coded = try JSONDecoder().decode(HistoryToken.self, from: JSONEncoder().encode(tokens[2]))
        #expect(coded == tokens[2])
        #expect(try await coordinator.deleteHistory(before: tokens[2]) == 2)
        await #expect(throws: HistoryError.tokenExpired(tokens[1])) { try await coordinator.history(.init(after: tokens[1])) }
        #expect(try await coordinator.history(.init(after: coded)).map(\.token) == Array(tokens[3...]))
        #expect(try await coordinator.deleteHistory(before: Date(timeIntervalSinceNow: -86_400)) == 0)
        #expect(try await coordinator.deleteHistory(before: Date(timeIntervalSinceNow: 60)) == 3)
        #expect(try await coordinator.history().isEmpty)
        let foreign = HistoryToken(store: UUID(), generation: 1)
        await #expect(throws: HistoryError.tokenOfAnotherStore(foreign)) { try await coordinator.history(.init(after: foreign)) }
        // Contexts older than the remaining history still move to the newest state.
        let late = await container.newBackgroundContext()
        await worker.perform { _ = $0.makeTrack("new") }
        try await worker.save()
        try await coordinator.deleteHistory(before: coordinator.currentHistoryToken)
        #expect(
            try await late.perform { context in
                context.refreshAllObjects()
                return try context.trackTitles().count
            } == 6)
    }

    @Test(arguments: StoreKind.allCases) func S160_aSaveHasOneRowHoweverItCameToTheDisk(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("counter").objectID }
        try await worker.save()
        // The bounds are so short that deferred saves become due while others are written.
        for number in 1...400 {
            try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(Int64(number)) }
            try await worker.save(number % 7 == 0 ? .durable : .deferred(within: .microseconds(number % 5 * 200)))
        }
        try await container.flush()
        #expect(try await container.coordinator.history().map(\.id) == Array(1...401))
    }

    private static let model: Model = {
        do {
            return try Model([
                EntityDescription(
                    name: "Note",
                    properties: [
                        .attribute(.init(name: "remote", type: .string, preservesValueOnDeletion: true)),
                        .attribute(.init(name: "text", type: .string)),
                    ])
            ])
        } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    /// Catches: reading the same records again and again, with ever more memory.
    @Test func `S160: a history whose records are in a wrong order is an error`() async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container()
        try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        try await container.close()
        let connection = try SQLiteConnection(path: bed.file.path, role: .writer)
        try connection.withLock {
            try connection.runScript(
                """
                WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
                INSERT OR IGNORE INTO strata_history
                SELECT n, (SELECT changes FROM strata_history ORDER BY generation LIMIT 1) FROM numbers;
                UPDATE strata_state SET generation = 5000
                """)
        }
        let again = try await bed.container()
        let error = await #expect(throws: StoreError.self) { try await again.coordinator.history() }
        #expect(error?.code == .damaged && error?.message.contains("history") == true)
        try await again.close()
    }
}
