import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ConfinedContextTests {
    @Test(arguments: StoreKind.allCases)
    func `a confined context without changes sees each save at its next fetch, on whatever thread`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let reader = Carrier(container, "reader")
        let writer = Carrier(container, "writer")
        for number in 0..<5 {
            try await writer.onThread { context in
                context.makeTrack("\(number)")
                try context.saveNow()
            }
            #expect(try await reader.onThread { try $0.trackTitles().count } == number + 1)
            #expect(try await reader.onThread { try $0.count(EntityFetchRequest("Track")) } == number + 1)
        }
        // Saves of contexts with an executor, too.
        try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("batch") }
        #expect(try await reader.onThread { try $0.trackTitles().contains("batch") })
        await reader.release()
        await writer.release()
    }

    @Test(arguments: StoreKind.allCases)
    func `between two requests a confined context reads one state`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container)
        let id = try await confined.onThread { context in
            let track = context.makeTrack("old")
            try context.saveNow()
            return track.objectID
        }
        let other = Carrier(container, "other")
        try await confined.onThread { context in
            let track = try context.existingObject(with: id)
            #expect(track["title"] == "old")
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                do {
                    let context = try #require(other.context)
                    try context.existingObject(with: id)["title"] = "new"
                    try context.saveNow()
                } catch { Issue.record(error) }
                done.signal()
            }
            done.wait()
            #expect(track["title"] == "old")
            _ = try context.fetch(EntityFetchRequest("Track"))
            #expect(track["title"] == "new")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes keep the state, unless the context merges automatically`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let writer = Carrier(container, "writer")
        let plain = Carrier(container, "plain")
        let merging = Carrier(container, "merging", merging: true)
        for reader in [plain, merging] { try await reader.onThread { context in _ = context.makeTrack("own") } }
        try await writer.onThread { context in
            context.makeTrack("other")
            try context.saveNow()
        }
        #expect(try await plain.onThread { try $0.trackTitles() } == ["own"])
        #expect(try await merging.onThread { try $0.trackTitles() } == ["other", "own"])
        try await plain.onThread { $0.rollback() }
        #expect(try await plain.onThread { try $0.trackTitles() } == ["other"])
        try await merging.onThread { context in
            try context.saveNow()
            #expect(!context.hasChanges)
        }
        #expect(try await plain.onThread { try $0.trackTitles() } == ["other", "own"])
        // A pinned context stays at its snapshot.
        let snapshot = try container.coordinator.snapshot()
        try await plain.onThread { $0.read(from: snapshot) }
        try await writer.onThread { context in
            context.makeTrack("later")
            try context.saveNow()
        }
        #expect(try await plain.onThread { try $0.trackTitles() } == ["other", "own"])
    }

    @Test(arguments: StoreKind.allCases)
    func `notices and the end of observations reach a confined context`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let confined = Carrier(try await bed.container())
        let seen = Counter()
        let token = try await confined.onThread { $0.observe { seen.note($0) } }
        try await confined.onThread { context in
            context.makeTrack("a")
            try context.saveNow()
            #expect(seen.count(.didSave) == 1)
        }
        token.cancel()
        try await confined.onThread { context in
            context.makeTrack("b")
            try context.saveNow()
            #expect(seen.count(.didSave) == 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an asynchronous save of a confined context works, and a synchronous one during it throws`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await Self.saveTwice(in: container)
    }

    @MainActor private static func saveTwice(in container: PersistentContainer) async throws {
        let context = container.makeConfinedContext()
        context.makeTrack("a")
        // The task runs while the save waits for the writer.
        let second = Task { @MainActor in
            do {
                try context.saveNow()
                return false
            } catch let error as StoreError { return error.code == .unsupported && error.message.contains("confined") }
        }
        try await context.save(.durable)
        // The second save may also have come first, or after the end of the first.
        _ = try await second.value
        #expect(!context.hasChanges)
        #expect(try context.trackTitles() == ["a"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a confined context of a closed container throws at its next request, and keeps its changes`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let used = Carrier(container, "used")
        try await used.onThread { context in _ = context.makeTrack("unsaved") }
        try await container.close()
        await #expect(throws: StoreError.self) { try await used.onThread { try $0.saveNow() } }
        try await used.onThread { context in
            #expect(context.hasChanges)
            #expect(context.insertedObjects.first?["title"] == "unsaved")
        }
        let late = Carrier(container, "late")
        await #expect(throws: StoreError.self) { try await late.onThread { _ = try $0.fetch(EntityFetchRequest("Track")) } }
    }

    @Test func `using a confined context on two threads at one time stops the program`() async throws {
        await #expect(processExitsWith: .failure) {
            let container = try await TestBed(.memory).container()
            let carrier = Carrier(container)
            try await carrier.onThread { context in
                context.makeTrack("a")
                // The observer runs during the save, which uses the context.
                _ = context.addObserver { _ in
                    let hasUsed = Flag()
                    Thread.detachNewThread {
                        _ = try? carrier.context?.trackTitles()
                        hasUsed.set()
                    }
                    _ = hasUsed.wait(atMost: .seconds(600))
                }
                try context.saveNow()
            }
        }
    }

    @Test func `a confined context refuses children`() async throws {
        await #expect(processExitsWith: .failure) {
            let context = try await TestBed(.memory).container().makeConfinedContext()
            _ = context.newBackgroundChild()
        }
    }

    /// Catches: unsaved changes that are left out because preparing the request has merged a save.
    @Test(arguments: StoreKind.allCases)
    func `S130, S136: an iteration shows unsaved changes after it has merged a key that both contexts set`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let merging = Carrier(container, "merging", merging: true)
        try await merging.onThread { context in
            context.makeTrack("own")
            try context.collection("names", of: String.self).setValue("ours", forKey: "key")
        }
        _ = try await container.write { try $0.collection("names", of: String.self).setValue("theirs", forKey: "key") }
        let titles = try await merging.onThread { context in
            var titles: [Value] = []
            try context.forEachBatch(of: EntityFetchRequest("Track")) { titles += $0.map { $0["title"] } }
            return titles
        }
        #expect(titles == ["own"])
        await merging.release()
    }

    /// Catches: an object that is looked for in the newest state, and whose value is then read in the state before.
    @Test(arguments: StoreKind.allCases)
    func `S139: an upsert finds an object that another context has saved since the last request`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (mine, other) = (Carrier(container), Carrier(container, "other"))
        #expect(try await mine.onThread { try $0.trackTitles() } == [])
        try await other.onThread { context in
            context.makeTrack("Baguette")["isrc"] = "a"
            try context.saveNow()
        }
        try await mine.onThread { context in
            let track = try context.upsert("Track", unique: "isrc", "a")
            #expect(track["title"] == "Baguette" && !context.hasChanges)
        }
    }
}
