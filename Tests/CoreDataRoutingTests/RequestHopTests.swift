import CoreDataRouting
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// How many requests the routing `ancestors` sends from a context to its parent.
@Suite(.timeLimit(.minutes(10))) struct RequestHopTests {
    /// A file with one album of two tracks, one of them in a playlist, opened anew: no context has kept a row.
    private struct Library {
        let bed: TestBed
        let container: PersistentContainer
        let requests = RequestHops()
        var album: ObjectID
        var track: ObjectID
        var playlist: ObjectID

        init(_ stack: ContextStack) async throws {
            bed = try TestBed(.sqlite)
            let writing = try await bed.container()
            let background = writing.newBatchOperationContext()
            (album, track, playlist) = await background.perform { context in
                let album = context.insert("Album")
                album["title"] = .string("first")
                let track = context.makeTrack("a", plays: 3)
                track.setRelatedObject("album", to: album)
                context.makeTrack("b", plays: 4).setRelatedObject("album", to: album)
                let playlist = context.insert("Playlist")
                playlist["name"] = .string("all")
                playlist.add(track, to: "tracks")
                return (album.objectID, track.objectID, playlist.objectID)
            }
            try await background.save()
            try await writing.close()
            container = try await bed.container(stack, routing: .ancestors, hops: requests)
        }

        func worker() async -> BackgroundContext { await container.newBackgroundContext() }

        /// The hops of a piece of work, by kind and level.
        func hops(
            _ worker: BackgroundContext, _ work: @Sendable (ManagedObjectContext) throws -> Void
        ) async throws -> [RequestHop: Int] {
            let before = requests.counts
            try await worker.perform(work)
            return requests.counts.merging(before) { $0 - $1 }.filter { $0.value != 0 }
        }
    }

    /// One hop at each level that a worker of the stack has above it.
    private static func once(_ kind: RequestHop.Kind, _ stack: ContextStack) -> [RequestHop: Int] {
        let levels = stack == .nested ? 1...1 : 1...2
        return Dictionary(uniqueKeysWithValues: levels.map { (RequestHop(kind, level: $0), 1) })
    }

    private static func read(_ id: ObjectID) -> @Sendable (ManagedObjectContext) -> Void {
        { context in
            let track = context.object(with: id)
            #expect(track["title"] == .string("a"))
            #expect(track["plays"] == .int(3))
            #expect(track["rating"] == .double(2.5))
            #expect(track["isrc"] == .null)
            #expect(track.relatedObject("album") != nil)
        }
    }

    /// A benchmark adds work there.
    @Test func `requests are served on the executor of the level that is asked, with the number of their objects`() async throws {
        let library = try await Library(.nested)
        let worker = await library.worker()
        let served = Mutex<[RequestHop: Int]>([:])
        library.requests.onServing { hop, objects in
            MainActor.assumeIsolated { served.withLock { $0[hop, default: 0] += objects } }
        }
        let id = library.track
        await worker.perform { context in
            _ = context.object(with: id)["title"]
            for number in 0..<3 { context.makeTrack("new \(number)") }
        }
        try await worker.save(through: .store)
        let expected = [RequestHop(.fault, level: 1): 1, RequestHop(.save, level: 1): 3, RequestHop(.save, level: 0): 3]
        #expect(served.withLock { $0 } == expected)
    }

    @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `a fault is one hop per level, however many columns it has`(_ stack: ContextStack) async throws {
        let library = try await Library(stack)
        let worker = await library.worker()
        let id = library.track
        #expect(try await library.hops(worker) { _ = $0.object(with: id)["title"] } == Self.once(.fault, stack))
        #expect(try await library.hops(worker) { _ = $0.object(with: id)["plays"] } == [:])
        // The album is another object.
        #expect(try await library.hops(worker, Self.read(id)) == Self.once(.fault, stack))
        #expect(try await library.hops(worker, Self.read(id)) == [:])
    }

    @Test func `a second request stops at the nearest ancestor that keeps the row`() async throws {
        let library = try await Library(.masterMainWorker)
        let id = library.track
        _ = try await library.hops(library.worker(), Self.read(id))
        let second = try await library.hops(library.worker()) { _ = $0.object(with: id)["title"] }
        #expect(second == [RequestHop(.fault, level: 2): 1])
    }

    @Test func `a parent keeps the rows that its children save`() async throws {
        let library = try await Library(.masterMainWorker)
        let worker = await library.worker()
        let id = await worker.perform { $0.makeTrack("new", plays: 1).objectID }
        try await worker.save(through: .store)
        #expect(try await library.hops(worker) { _ = $0.object(with: id)["title"] } == [RequestHop(.fault, level: 2): 1])
        try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        try await worker.save(through: .store)
        let second = try await library.hops(library.worker()) { context in
            #expect(context.object(with: id)["plays"] == .int(2))
        }
        #expect(second == [RequestHop(.fault, level: 2): 1])
    }

    @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `a relationship is one hop per level`(_ stack: ContextStack) async throws {
        let library = try await Library(stack)
        let worker = await library.worker()
        let (album, playlist) = (library.album, library.playlist)
        for id in [album, playlist] {
            let count = id == album ? 2 : 1
            let read: @Sendable (ManagedObjectContext) -> Void = { context in
                #expect(context.object(with: id).relatedObjects("tracks").count == count)
            }
            #expect(try await library.hops(worker, read) == Self.once(.relationship, stack))
            #expect(try await library.hops(worker, read) == [:])
        }
        let second = try await library.hops(library.worker()) { _ = $0.object(with: album).relatedObjects("tracks") }
        #expect(second == [RequestHop(.relationship, level: stack == .nested ? 1 : 2): 1])
    }

    @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `a fetch and a count are one hop per level, with unsaved changes too`(_ stack: ContextStack) async throws {
        let library = try await Library(stack)
        let worker = await library.worker()
        let all = EntityFetchRequest("Track")
        for count in 2...3 {
            let fetching = try await library.hops(worker) { context in
                let found = try context.fetch(all).count
                #expect(found == count)
            }
            #expect(fetching == Self.once(.fetch, stack))
            let counting = try await library.hops(worker) { context in
                let found = try context.count(all)
                #expect(found == count)
            }
            #expect(counting == Self.once(.fetch, stack))
            await worker.perform { _ = $0.makeTrack("unsaved", plays: 9) }
        }
    }

    @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `a save through to the store is one hop per level`(_ stack: ContextStack) async throws {
        let library = try await Library(stack)
        let worker = await library.worker()
        let before = library.requests.counts
        await worker.perform { for number in 0..<100 { $0.makeTrack("new \(number)", plays: 1) } }
        try await worker.save(through: .store)
        #expect(library.requests.counts.merging(before) { $0 - $1 } == Self.once(.save, stack))
    }

    @Test(arguments: ContextStack.allCases)
    func `the routing snapshot sends no request`(_ stack: ContextStack) async throws {
        let bed = try TestBed(.sqlite)
        let requests = RequestHops()
        let container = try await bed.container(stack, routing: .snapshot, hops: requests)
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a", plays: 1).objectID }
        try await worker.save(through: .store)
        await worker.perform { #expect($0.object(with: id)["plays"] == .int(1)) }
        #expect(requests.counts == [:])
    }
}
