import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Keyed collections as dictionaries and sequences, their streams, and renamed types of values.
@Suite struct KeyedUseTests {
    enum First {
        struct Draft: Codable, Sendable, Equatable { var title: String }
    }
    enum Second {
        struct Post: Codable, Sendable, Equatable {
            var title: String
            var words: Int?
        }
    }
    enum Third {
        struct Post: Codable, Sendable, Equatable { var words: Int }
    }

    struct Unstorable: Codable, Sendable {
        struct Refusal: Error {}

        func encode(to encoder: any Encoder) throws { throw Refusal() }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S191: a default value is changed in place`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let counts = try container.collection("counts", of: Int.self)
        for word in ["a", "b", "a"] { counts[word, default: 0] += 1 }
        try await container.saveMain()
        counts["a", default: 0] += 40
        counts["c", default: 7] -= 7
        counts["d", default: 1] = 5
        #expect(counts["e", default: 9] == 9 && counts["e"] == nil)
        #expect(try counts.keys == ["a", "b", "c", "d"] && counts.values == [42, 1, 0, 5])
        #expect(counts.map { "\($0.key)\($0.value)" } == ["a42", "b1", "c0", "d5"])
        var total = 0
        for (word, count) in counts where word < "d" { total += count }
        #expect(total == 43)
        #expect(Array(counts["b"..<"d"]).map(\.key) == ["b", "c"])
        #expect(try counts.removeAll() == 4 && counts.isEmpty && !counts.makeIterator().hasNext)
        try await container.saveMain()
        #expect(try await container.read { try $0.collection("counts", of: Int.self).count } == 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `S191: removing a range forgets the values in it that cannot be stored`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let values = try context.collection("values", of: Unstorable.self)
            values["a"] = Unstorable()
            values["b"] = Unstorable()
            #expect(try values["a"..<"b"].removeAll() == 0)
        }
        await #expect(throws: CollectionError.self) { try await worker.save() }
        try await worker.perform { _ = try $0.collection("values", of: Unstorable.self).removeAll() }
        try await worker.save()
    }

    /// Catches: a stop of the program, because the value before a change is read for undo after the store was closed.
    @Test(arguments: StoreKind.allCases)
    func `S162, S190: a container can be closed in a block that has changed a keyed value with undo`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform(andSave: .durable) { try $0.collection("counts", of: Int.self)["a"] = 1 }
        try await worker.perform { _, context in
            context.undoHistory = UndoHistory()
            try context.collection("counts", of: Int.self)["a"] = 2
            try await container.close()
        }
        try await worker.perform { context throws in
            let history = try #require(context.undoHistory)
            #expect(history.canUndo && context.hasChanges)
            history.group("Empty") {}
            let error = #expect(throws: StoreError.self) { try history.undo() }
            #expect(error?.code == .closed)
        }
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S191: data keys have prefixes, and object ids are keys`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let blobs = try container.collection("blobs", of: Int.self, key: Data.self)
        for (number, bytes) in ([[1], [1, 0], [1, 255], [1, 255, 255], [2], [255, 255]] as [[UInt8]]).enumerated() {
            blobs[Data(bytes)] = number
        }
        #expect(try blobs.range(withPrefix: Data([1])).entries().map(\.value) == [0, 1, 2, 3])
        #expect(try blobs.range(withPrefix: Data([1, 255])).entries().map(\.value) == [2, 3])
        #expect(try blobs.range(withPrefix: Data([255])).entries().map(\.value) == [5])
        #expect(try blobs.range(withPrefix: Data()).count == 6)
        let notes = try container.collection("notes", of: String.self, key: ObjectID.self)
        let tracks = (0..<3).map { container.mainContext.makeTrack("track \($0)") }
        try await container.saveMain()
        for track in tracks.reversed() { notes[track.objectID] = "about \(track.objectID.key)" }
        try await container.saveMain()
        #expect(try notes.keys == tracks.map(\.objectID).sorted { $0.key < $1.key })
        #expect(notes[tracks[1].objectID] == "about \(tracks[1].objectID.key)")
        // Sources/ObjectGraph/ObjectGraph.docc/KeyedCollections.md
        let log = try container.collection("log", of: String.self, key: (String, Int).self)
        log[("ann", 3)] = "opened"
        let all = try log.range(withPrefix: "ann").entries()
        let some = try log.range(from: ("ann", 2), upTo: ("ann", 5)).keys()
        // end
        #expect(all.map(\.value) == ["opened"] && some.map(\.1) == [3])
    }

    @MainActor @Test(arguments: Combination.all)
    func `S193: the bytes of a large value are read in a closure and as a stream`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let cover = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        try container.collection("photos", of: Data.self)["cover"] = cover
        for _ in 0..<2 {
            var received = Data()
            // Sources/ObjectGraph/ObjectGraph.docc/KeyedCollections.md
            let photos = try container.collection("photos", of: Data.self)
            let size = try photos.withBytes(forKey: "cover") { $0.count }
            if let stream = try photos.stream(forKey: "cover") {
                for try await part in stream { received.append(part) }
            }
            // end
            #expect(size == cover.count && received == cover)
            try await container.saveMain()
        }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S190: a renamed type of values keeps them, and its first write records the name`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        try container.collection("drafts", of: First.Draft.self)["a"] = First.Draft(title: "A")
        try await container.saveMain()
        let error = #expect(throws: CollectionError.self) { try container.collection("drafts", of: Second.Post.self) }
        #expect(error?.description.contains("renamedFrom") == true)
        #expect(throws: CollectionError.self) { try container.collection("drafts", of: Second.Post.self, renamedFrom: "Note") }
        typealias Post = Second.Post
        // Sources/ObjectGraph/ObjectGraph.docc/KeyedCollections.md
        let posts = try container.collection("drafts", of: Post.self, renamedFrom: "Draft")
        // end
        #expect(posts["a"]?.title == "A")
        #expect(!container.mainContext.hasChanges)
        posts["b"] = Second.Post(title: "B", words: 2)
        container.mainContext.rollback()
        #expect(try container.collection("drafts", of: First.Draft.self)["a"]?.title == "A")
        posts["b"] = Second.Post(title: "B", words: 2)
        #expect(throws: CollectionError.self) { try container.collection("drafts", of: First.Draft.self) }
        try await container.saveMain()
        let worker = container.newBackgroundContext()
        try await worker.perform { context throws in
            #expect(try context.collection("drafts", of: Second.Post.self).values.map(\.title) == ["A", "B"])
            #expect(try context.collection("drafts", of: Second.Post?.self, renamedFrom: "Post")["b"]??.words == 2)
            #expect(try context.collection("drafts", of: Second.Post.self, renamedFrom: "Draft").in(context).count == 2)
        }
        let lists = try container.collection("lists", of: [String].self)
        lists["a"] = ["x", "x"]
        try await container.saveMain()
        let sets = try container.collection("lists", of: Set<String>.self, renamedFrom: "Array<String>")
        #expect(sets["a"] == ["x"])
    }

    @Test(arguments: Combination.rooted)
    func `S190: two contexts rename one type, and a child renames for its parent`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        try await container.write { try $0.collection("drafts", of: First.Draft.self).setValue(.init(title: "A"), forKey: "a") }
        let workers = await [container.makeBackgroundContext(), container.makeBackgroundContext()]
        for (number, worker) in workers.enumerated() {
            try await worker.perform { context throws in
                context.mergePolicy = .objectTrump
                try context.collection("drafts", of: Second.Post.self, renamedFrom: "Draft")
                    .setValue(.init(title: "B"), forKey: "\(number)")
            }
        }
        for worker in workers { try await worker.save() }
        #expect(try await container.read { try $0.collection("drafts", of: Second.Post.self).keys } == ["0", "1", "a"])
        let parent = await container.makeBackgroundContext()
        let child = await parent.newBackgroundChild()
        try await child.perform { context throws in
            try context.collection("drafts", of: Second.Post?.self, renamedFrom: "Post").setValue(.some(nil), forKey: "c")
        }
        try await child.save()
        try await parent.save()
        #expect(try await container.read { try $0.collection("drafts", of: Second.Post?.self).keys } == ["0", "1", "a", "c"])
        #expect(try await container.coordinator.verify().isEmpty)
    }

    enum Season: String, CollectionKey { case spring }

    /// Catches: an error that calls the file damaged and advises to restore a backup, because the program lacks a case.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S190: a key that is no case of its enumeration is an error that advises to add the case`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let counts = try container.collection("counts", of: Int.self)
        counts["spring"] = 1
        counts["winter"] = 2
        try await container.saveMain()
        let seasons = try container.collection("counts", of: Int.self, key: Season.self)
        #expect(seasons[.spring] == 1)
        let error = #expect(throws: CollectionError.self) { try seasons.keys }
        #expect(error == .unreadableKey(collection: "counts"))
        let text = try #require(error).description
        #expect(text.contains("add the missing case") && text.contains("storedEntries(of:)"), "\(text)")
        #expect(!text.contains("damaged") && !text.contains("backup"), "\(text)")
        // The remedy for a program that does not have the case.
        let stored = try #require(try container.mainContext.storedCollections().first)
        let entries = try container.mainContext.storedEntries(of: stored)
        #expect(entries.map { stored.texts(ofKey: $0.key) } == [["spring"], ["winter"]])
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S194: a value that does not decode is overwritten by no change in place`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try container.collection("posts", of: Second.Post.self)["a"] = Second.Post(title: "A")
        try await container.saveMain()
        let posts = try container.collection("posts", of: Third.Post.self)
        let bytes = try posts.bytes(forKey: "a")
        posts["a"]?.words = 3
        #expect(!container.mainContext.hasChanges)
        #expect(try posts.bytes(forKey: "a") == bytes)
        try await container.saveMain()
        posts["b"] = Third.Post(words: 1)
        posts["a", default: Third.Post(words: 0)].words += 1
        #expect(try posts.bytes(forKey: "a") == bytes)
        await #expect(throws: CollectionError.self) { try await container.saveMain() }
        #expect(posts.map(\.key) == ["b"])
        container.mainContext.rollback()
        try await container.saveMain()
        #expect(try posts.bytes(forKey: "a") == bytes)
        posts["a"] = Third.Post(words: 3)
        try await container.saveMain()
        #expect(posts["a"] == Third.Post(words: 3))
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S193: a large value is streamed in parts from the state of its context`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let blobs = try container.collection("blobs", of: Data.self)
        let large = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
        func read(_ key: String) async throws -> Data? {
            guard let stream = try blobs.stream(forKey: key) else { return nil }
            var bytes = Data()
            for try await part in stream {
                #expect(part.count <= 1 << 16)
                bytes.append(part)
            }
            #expect(bytes.count == stream.byteCount)
            return bytes
        }
        blobs["large"] = large
        #expect(try await read("large") == large)
        blobs["small"] = Data([1, 2])
        blobs["empty"] = Data()
        try await container.saveMain()
        let before = try #require(try blobs.stream(forKey: "large"))
        #expect(try await read("large") == large)
        blobs["large"] = Data([9])
        try await container.saveMain()
        #expect(try await read("large") == Data([9]))
        #expect(try await read("small") == Data([1, 2]))
        #expect(try await read("empty") == Data())
        #expect(try await read("none") == nil)
        var bytes = Data()
        for try await part in before { bytes.append(part) }
        #expect(bytes == large)
    }
}

extension IteratorProtocol {
    /// Whether there is a further element.
    fileprivate var hasNext: Bool {
        var copy = self
        return copy.next() != nil
    }
}
