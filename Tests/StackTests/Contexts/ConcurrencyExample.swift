import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The code of `Docs/Concurrency.md`, compiled and run. The architecture tests compare both.
@Suite struct ConcurrencyExample {
    private let bed: TestBed
    private let container: PersistentContainer
    private let importer: BackgroundContext

    init() async throws {
        bed = try TestBed(.lmdb)
        container = try await bed.container()
        importer = await container.makeBackgroundContext(name: "importer")
    }

    @Test @MainActor func `an object is found in another context by its id`() async throws {
        let main = container.mainContext
        // Docs/Concurrency.md
        let id = await importer.perform { context in
            let track = context.insert("Track")
            return track.objectID
        }
        try await importer.save()
        main.refreshAllObjects()
        let track = try main.existingObject(with: id)
        // end
        #expect(track.objectID == id)
    }

    @Test func `a process suspends its container before it is frozen`() async throws {
        // Docs/Concurrency.md
        try await container.suspend()
        // The process is frozen here, and goes on later.
        await container.resume()
        // end
        // Sources/ObjectGraph/Stacks/PersistentContainer+Suspending.swift
        try await container.suspend()
        // The process is frozen here, and goes on later.
        await container.resume()
        // end
        try await importer.perform(andSave: .durable) { _ = $0.makeTrack("after") }
        #expect(try await container.read { try $0.trackTitles() } == ["after"])
    }

    @Test func `a read and a write need no context`() async throws {
        let id = try await container.write { $0.makeTrack("Baguette", plays: 1).objectID }
        // Docs/Concurrency.md
        let titles = try await container.read { context in
            try context.fetch(EntityFetchRequest("Track")).map { $0["title"] }
        }
        // end
        #expect(titles == ["Baguette"])
        try await addOne(id)
        #expect(try await container.read { try $0.existingObject(with: id)["plays"] } == 2)
    }

    private func addOne(_ id: ObjectID) async throws {
        // Docs/Concurrency.md
        try await container.write(retrying: 5) { context in
            let track = try context.existingObject(with: id)
            guard case .int(let plays) = track["plays"] else { return }
            track["plays"] = .int(plays + 1)
        }
        // end
    }

    @Test func `a closure that waits inserts what arrives`() async throws {
        let (downloads, download) = AsyncStream<String>.makeStream()
        for title in ["a", "b"] { download.yield(title) }
        download.finish()
        // Docs/Concurrency.md
        try await importer.perform { _, context in
            for await title in downloads {
                context.insert("Track")["title"] = .string(title)
            }
            try await context.save()
        }
        // end
        #expect(try await container.read { try $0.trackTitles() } == ["a", "b"])
    }

    @Test func `a closure and its save are one step`() async throws {
        // Docs/Concurrency.md
        let id = try await importer.perform(andSave: .durable) { context in
            let track = context.insert("Track")
            track["title"] = "Baguette"
            return track.objectID
        }
        // end
        #expect(try await container.read { try $0.existingObject(with: id)["title"] } == "Baguette")
    }
}
