import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The reads through the store's snapshots fail one by one: in each run another one, once.
///
/// No context has registered objects that other saves change. Such an object is read without a way to throw, and a read that fails then
/// stops the program, as it does for a property.
@Suite struct FailingReadTests {
    /// A call that may throw, and what it changes if it returns.
    fileprivate struct Step: Sendable {
        var name: String
        /// The plays of new and updated tracks, by title.
        var plays: [String: Int] = [:]
        var deleted: String?
        var body: @Sendable () async throws -> Void
    }

    /// Saves of several contexts, whose changes are made before the first read can fail.
    private final class Run: Sendable {
        let store: FaultyStore
        private let clock: SteppedClock
        private let coordinator: PersistentStoreCoordinator
        private let editor: BackgroundContext
        private let importer: BackgroundContext
        private let parent: BackgroundContext
        private let child: BackgroundContext
        private let reader: BackgroundContext
        private let follower: BackgroundContext
        /// The plays of all tracks that must be in the store, by title.
        private let expected = Mutex(["a": 1, "b": 2, "c": 3, "d": 4])

        init() async throws {
            let (store, clock) = (FaultyStore(schema: Music.model.storeSchema), SteppedClock())
            let coordinator = try PersistentStoreCoordinator.music(store, clock)
            let ids = try await Self.fill(coordinator)
            let editor = coordinator.newBackgroundContext(name: "editor")
            let importer = coordinator.newBackgroundContext(name: "importer")
            let parent = coordinator.newBackgroundContext(name: "parent")
            let child = await parent.newBackgroundChild(name: "child")
            let follower = coordinator.newBackgroundContext(name: "follower")
            await follower.perform { $0.automaticallyMergesChanges = true }
            try await Self.change(editor, ids["a"], plays: 10, adding: "durable")
            try await Self.change(importer, ids["d"], plays: 40, adding: "deferred")
            await child.perform { $0.makeUniqueTrack("pushed") }
            (self.store, self.clock, self.coordinator) = (store, clock, coordinator)
            (self.editor, self.importer, self.parent, self.child) = (editor, importer, parent, child)
            (self.follower, reader) = (follower, coordinator.newBackgroundContext(name: "reader"))
        }

        /// Saves the first tracks, which are in a playlist, and returns their ids by title.
        private static func fill(_ coordinator: PersistentStoreCoordinator) async throws -> [String: ObjectID] {
            try await coordinator.newBackgroundContext(name: "first").perform(andSave: .durable) { context in
                let list = context.insert("Playlist")
                list["name"] = .string("list")
                var ids: [String: ObjectID] = [:]
                for (number, title) in ["a", "b", "c", "d"].enumerated() {
                    let track = context.makeTrack(title, plays: number + 1)
                    track["isrc"] = .string(title)
                    track.add(list, to: "playlists")
                    ids[title] = track.objectID
                }
                return ids
            }
        }

        /// Updates a track and inserts another one, without saving.
        private static func change(
            _ context: BackgroundContext, _ id: ObjectID?, plays: Int64, adding title: String
        ) async throws {
            let id = try #require(id)
            try await context.perform { context in
                try context.existingObject(with: id)["plays"] = .int(plays)
                context.makeUniqueTrack(title)
            }
        }

        // MARK: Steps

        private var saves: [Step] {
            let (b, c) = (Self.track("b"), Self.track("c"))
            return [
                Step(name: "a durable save", plays: ["a": 10, "durable": 0]) { try await self.editor.save(.durable) },
                Step(name: "a child's save", plays: ["pushed": 0]) { try await self.child.save(through: .store) },
                Step(name: "a batch update", plays: ["b": 5]) {
                    try await self.coordinator.batchUpdate(b, set: ["plays": .int(5)])
                },
                Step(name: "a batch deletion", deleted: "c") { try await self.coordinator.batchDelete(c) },
                Step(name: "a deferred save", plays: ["d": 40, "deferred": 0]) {
                    try await self.importer.save(.deferred(within: .seconds(60)))
                },
                Step(name: "a fetch") { try await self.expectShown(in: self.reader, refreshing: true) },
                Step(name: "a fetch after merges") { try await self.expectShown(in: self.follower) },
            ]
        }

        private var flush: Step { Step(name: "a flush") { try await self.coordinator.flush() } }

        private static func track(_ title: String) -> EntityFetchRequest {
            EntityFetchRequest("Track", matching: .compare("title", .equal, to: .string(title)))
        }

        /// Takes all steps, and returns those that have thrown. Before the flush, another connection saves, so that the flush checks the
        /// deferred save again.
        func takeSteps() async throws -> [Step] {
            var refused: [Step] = []
            for step in saves {
                if await !takes(step) { refused.append(step) }
            }
            try saveElsewhere("elsewhere")
            if await !takes(flush) { refused.append(flush) }
            return refused
        }

        private func takes(_ step: Step) async -> Bool {
            do { try await take(step) } catch {
                #expect((error as? StoreError)?.code == .inputOutput, "\(step.name): \(error)")
                return false
            }
            return true
        }

        private func take(_ step: Step) async throws {
            try await step.body()
            expected.withLock { expected in
                expected.merge(step.plays) { $1 }
                if let title = step.deleted { expected[title] = nil }
            }
        }

        /// Saves a track by a connection that does not wait for the deferred saves of this one.
        private func saveElsewhere(_ title: String) throws {
            let layer = Layer(schema: Music.model.storeSchema)
            let entity = try #require(Music.model.entity(named: "Track"))
            let row = Row.make(kind: .insert, layer: layer.id, columnCount: entity.columns.count)
            row.fill(with: entity.defaults)
            row[Music.column("Track", "title")] = .string(title)
            row[Music.column("Track", "plays")] = .int(0)
            layer.put(row, entity: entity.number, key: ObjectKey(1 << 30))
            try store.saveElsewhere(layer)
            expected.withLock { $0[title] = 0 }
        }

        // MARK: Checks

        /// Checks that the store has the saves that have returned, repeats the steps that have thrown, and saves once more in each context.
        /// Call this when no read fails any more.
        func check(repeating refused: [Step], _ message: Comment) async throws {
            try await coordinator.flush()
            try await expectAgreement(message)
            for step in refused { try await take(step) }
            for (number, context) in [editor, importer, child].enumerated() {
                let again = "again \(number)"
                await context.perform { $0.makeUniqueTrack(again) }
                try await context.save(through: .store)
                expected.withLock { $0[again] = 0 }
            }
            try await coordinator.flush()
            try await coordinator.writer.onQueue { $0.finishFlush() }
            try await expectAgreement(message)
            #expect(try store.verify() == [], message)
            #expect(store.heldClaims == 0, message)
        }

        private func expectAgreement(_ message: Comment) async throws {
            try await coordinator.refresh()
            try await expectShown(in: reader, refreshing: true, message)
            try await expectShown(in: follower, message)
            try await expectShown(in: coordinator.newBackgroundContext(name: "new"), message)
            let other = try PersistentStoreCoordinator(
                model: Music.model, store: FaultyStore(sharing: store), name: "other")
            try await expectShown(in: other.newBackgroundContext(name: "other"), message)
        }

        /// Reads the tracks by requests that throw if a read fails.
        private func expectShown(
            in context: BackgroundContext, refreshing: Bool = false, _ message: Comment = "of the fetch"
        ) async throws {
            if refreshing { await context.perform { $0.refreshAllObjects() } }
            let played = EntityFetchRequest("Track", matching: .compare("plays", .greater, to: .int(0)))
            let shown = try await context.perform { try $0.playsByTitle() }
            let count = try await context.perform { try $0.count(played) }
            let found = try await context.perform { try $0.fetchIDs(Self.track("b")).count }
            let expected = expected.withLock { $0 }
            #expect(shown == expected.map { "\($0.key): \($0.value)" }.sorted(), message)
            #expect(count == expected.values.count { $0 > 0 } && found == 1, message)
        }
    }

    /// Catches: a read whose error is lost, so that a save or fetch returns as if there were no such object; an acknowledged save that is
    /// dropped because it could not be checked again; a save that throws after it was committed; a context that cannot save any more.
    @Test(arguments: FaultyStore.Call.reads)
    func `S062, S067: whichever read of the store fails, saves that have returned stay, and the others can be repeated`(
        _ call: FaultyStore.Call
    ) async throws {
        var number = 0
        while true {
            number += 1
            let run = try await Run()
            let before = run.store.count(call)
            let failing = before + number
            run.store.fail { $0 == call && $1 == failing ? StoreError(.inputOutput, "the test lets the read fail") : nil }
            let refused = try await run.takeSteps()
            let calls = run.store.count(call) - before
            run.store.fail(nil)
            let names = refused.map(\.name).joined(separator: ", ")
            try await run.check(
                repeating: refused, Comment(rawValue: "\(call) \(number) of \(calls), refused: \(names)"))
            if number > calls { break }
        }
        #expect(number > 1, "no step calls this read")
    }
}

extension ManagedObjectContext {
    /// Inserts a track whose unique value is its title.
    fileprivate func makeUniqueTrack(_ title: String) {
        let track = makeTrack(title)
        track["isrc"] = .string(title)
    }

    /// Returns the title and the plays of each track, ascending, by a request that throws if a read fails.
    fileprivate func playsByTitle() throws -> [String] {
        let request = EntityValueRequest("Track", fetching: [.property("title"), .property("plays")])
        return try fetch(request).map { row in
            "\(row["title", as: String.self] ?? "none"): \(row["plays", as: Int.self] ?? -1)"
        }.sorted()
    }
}
