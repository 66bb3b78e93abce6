import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The record of a collection's types, which the context that writes first makes, and which undo and rollback take back.
@Suite struct KeyedTypesTests {
    private static func names(_ container: PersistentContainer) async throws -> [String] {
        try await container.coordinator.refresh()
        return try await container.coordinator.newBackgroundContext().perform { context throws in
            let numbers = try context.collection("numbers", of: Int.self)
            return try context.storedCollections().map(\.name) + numbers.keys
        }
    }

    /// Turns undo on, and sets the first value of the collection.
    private static func setFirstValue(in context: BackgroundContext) async throws {
        try await context.perform { context throws in
            context.undoHistory = UndoHistory()
            try context.collection("numbers", of: Int.self)["a"] = 1
        }
    }

    /// Catches: types that are compared only before a collection has its first value.
    @Test(arguments: StoreKind.allCases)
    func `S190: a collection that was opened with two types before its first value takes values of the first one`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        try await context.perform { context throws in
            let numbers = try context.collection("numbers", of: Int.self)
            let texts = try context.collection("numbers", of: String.self)
            try numbers.setValue(1, forKey: "a")
            for key in ["a", "b"] {
                #expect(throws: CollectionError.self) { try texts.setValue("text", forKey: key) }
            }
            #expect(try numbers.all.entries().map(\.value) == [1])
        }
        try await context.save()
        #expect(try await Self.names(container) == ["numbers", "a"])
    }

    /// Catches: names that are compared as texts, so that the second collection gets no record of its types.
    @Test(arguments: StoreKind.allCases)
    func `S190: collections whose names look alike, but have other bytes, are different ones`(_ kind: StoreKind) async throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        try await context.perform { context throws in
            try context.collection(composed, of: Int.self).setValue(1, forKey: "a")
            try context.collection(decomposed, of: Int.self).setValue(2, forKey: "a")
        }
        try await context.save()
        try await container.coordinator.refresh()
        try await container.coordinator.newBackgroundContext().perform { context throws in
            let stored = try context.storedCollections()
            #expect(stored.map { Array($0.name.utf8) } == [Array(decomposed.utf8), Array(composed.utf8)])
            #expect(Set(stored).count == 2)
            let values = try [composed, decomposed].map { try context.collection($0, of: Int.self).values }
            #expect(values == [[1], [2]])
        }
        // The two collections have different types.
        try await context.perform { context throws in
            try context.collection("\u{E9}", of: Int.self).setValue(1, forKey: "a")
            try context.collection("e\u{301}", of: String.self).setValue("text", forKey: "a")
        }
        try await context.save()
        let text = try await container.read { try $0.collection("e\u{301}", of: String.self)["a"] }
        #expect(text == "text")
        #expect(try await container.coordinator.verify() == [])
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S190: a child records the types of a collection that its parent has rolled back`(
        _ kind: StoreKind, _ refreshes: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        try await parent.perform { try $0.collection("numbers", of: Int.self)["a"] = 1 }
        let child = await parent.newBackgroundChild()
        try await child.perform { try $0.collection("numbers", of: Int.self)["b"] = 2 }
        await parent.perform { $0.rollback() }
        if refreshes { try await child.refreshFromParent() }
        try await child.save()
        try await parent.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
        await #expect(throws: CollectionError.self) {
            try await parent.perform { _ = try $0.collection("numbers", of: String.self) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S190: a child records the types of a collection whose first write its parent has undone`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        try await Self.setFirstValue(in: parent)
        try await parent.save()
        let child = await parent.newBackgroundChild()
        try await child.perform { try $0.collection("numbers", of: Int.self)["b"] = 2 }
        _ = try await parent.perform { try $0.undoHistory?.undo() }
        try await child.save()
        try await parent.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
        #expect(try await container.coordinator.verify() == [])
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S162: undoing the first write of a collection keeps its types if it has entries of others`(
        _ kind: StoreKind, _ merges: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (first, second) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await Self.write(first, second)
        try await second.save()
        if merges { await first.perform { $0.refreshAllObjects() } }
        _ = try await first.perform { try $0.undoHistory?.undo() }
        try await first.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
        // Without other entries, nothing is left.
        try await second.perform { context throws in
            context.refreshAllObjects()
            context.undoHistory = UndoHistory()
            try context.collection("others", of: Int.self)["c"] = 3
        }
        try await second.save()
        _ = try await second.perform { try $0.undoHistory?.undo() }
        try await second.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: an entry that is saved after another context undid the first write has its types`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (first, second) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await Self.write(first, second)
        _ = try await first.perform { try $0.undoHistory?.undo() }
        try await first.save()
        try await second.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
    }

    /// Catches: a record of types that a save makes, and that takes a step of undo.
    @Test(arguments: StoreKind.allCases)
    func `S162: a save that records the types of a collection again adds nothing to undo`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (first, second) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        await second.perform { $0.undoHistory = UndoHistory() }
        try await Self.write(first, second)
        _ = try await first.perform { try $0.undoHistory?.undo() }
        try await first.save()
        await second.perform { $0.refreshAllObjects() }
        try await second.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
        try await second.perform { context throws in
            let history = try #require(context.undoHistory)
            try history.undo()
            let keys = try context.collection("numbers", of: Int.self).keys
            #expect(keys == [])
            #expect(!history.canUndo)
        }
        try await second.save()
        #expect(try await container.coordinator.verify() == [])
    }

    /// Catches: an undo that gives the type of values its former name back, under which the program cannot open the collection.
    @Test(arguments: StoreKind.allCases)
    func `S162: undoing the write that renamed the type of values keeps the new name`(_ kind: StoreKind) async throws {
        typealias Draft = KeyedUseTests.First.Draft
        typealias Post = KeyedUseTests.Second.Post
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.write { try $0.collection("drafts", of: Draft.self).setValue(Draft(title: "A"), forKey: "a") }
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            context.undoHistory = UndoHistory()
            let posts = try context.collection("drafts", of: Post.self, renamedFrom: "Draft")
            try posts.setValue(Post(title: "B"), forKey: "b")
        }
        try await worker.save()
        try await worker.perform { context throws in
            let history = try #require(context.undoHistory)
            try history.undo()
            let keys = try context.collection("drafts", of: Post.self).keys
            #expect(keys == ["a"])
            try history.redo()
            let titles = try context.collection("drafts", of: Post.self).values.map(\.title)
            #expect(titles == ["A", "B"])
            try history.undo()
            #expect(!history.canUndo)
        }
        try await worker.save()
        #expect(try await container.read { try $0.collection("drafts", of: Post.self).keys } == ["a"])
        #expect(try await container.coordinator.verify() == [])
    }

    /// Saves two entries by two contexts, and undoes both, so that the collection is gone. The second context can redo its entry.
    ///
    /// - Parameter saves: Whether the first context saves the undo.
    private static func writeAndUndo(_ first: BackgroundContext, _ second: BackgroundContext, saves: Bool) async throws {
        await second.perform { $0.undoHistory = UndoHistory() }
        try await write(first, second)
        try await second.save()
        _ = try await second.perform { try $0.undoHistory?.undo() }
        try await second.save()
        await first.perform { $0.refreshAllObjects() }
        _ = try await first.perform { try $0.undoHistory?.undo() }
        if saves { try await first.save() }
    }

    /// Catches: bytes of the former type in a collection that has other types now.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S162: a redo in a collection that has got other types is a conflict, and is skipped`(
        _ kind: StoreKind, _ saves: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (first, second) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await Self.writeAndUndo(first, second, saves: saves)
        try await first.perform { try $0.collection("numbers", of: String.self)["x"] = "text" }
        try await first.save()
        await second.perform { $0.refreshAllObjects() }
        try await second.perform { context throws in
            let history = try #require(context.undoHistory)
            let error = #expect(throws: UndoError.self) { try history.redo() }
            #expect(error?.description.contains("numbers") == true)
            #expect(error?.description.contains("String") == true)
            let conflicts = try history.redo(onConflict: .force)
            #expect(conflicts.map(\.property) == ["types"])
            #expect(!context.hasChanges)
        }
        try await second.save()
        let values = try await container.read { try $0.collection("numbers", of: String.self).all.entries().map(\.value) }
        #expect(values == ["text"])
        #expect(try await container.coordinator.verify() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: a redo records the types of a collection that is gone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (first, second) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await Self.writeAndUndo(first, second, saves: true)
        await second.perform { $0.refreshAllObjects() }
        _ = try await second.perform { try $0.undoHistory?.redo() }
        try await second.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
        _ = try await second.perform { try $0.undoHistory?.undo() }
        try await second.save()
        #expect(try await Self.names(container) == [])
        #expect(try await container.coordinator.verify() == [])
    }

    /// Catches: a redo of values whose types another context had replaced before they were undone.
    @Test(arguments: StoreKind.allCases)
    func `S162: values that were undone because of other types are not redone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        try await Self.setFirstValue(in: context)
        try await container.write { try $0.collection("numbers", of: String.self).setValue("text", forKey: "x") }
        await context.perform { $0.refreshAllObjects() }
        try await context.perform { context throws in
            let history = try #require(context.undoHistory)
            try history.undo()
            #expect(throws: UndoError.self) { try history.redo() }
            let keys = try context.collection("numbers", of: String.self).keys
            #expect(keys == ["x"])
        }
        try await context.save()
        #expect(try await container.coordinator.verify() == [])
    }

    /// Catches: bytes of the former type that undoing an author writes into a collection with other types.
    @Test(arguments: StoreKind.allCases, [UndoPolicy.error, .skip, .force])
    func `S162: undoing an author writes nothing into a collection that has got other types`(
        _ kind: StoreKind, _ policy: UndoPolicy
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let author = container.coordinator.newBackgroundContext()
        try await author.perform { context throws in
            context.transactionAuthor = "a"
            context.undoHistory = UndoHistory()
            try context.collection("numbers", of: Int.self)["a"] = 1
        }
        try await author.save()
        let before = try container.coordinator.snapshot(owner: "before")
        _ = try await author.perform { try $0.undoHistory?.undo() }
        try await author.save()
        try await container.write { try $0.collection("numbers", of: String.self).setValue("text", forKey: "x") }
        if policy == .error {
            let error = await #expect(throws: UndoError.self) { try await container.undoChanges(by: "a", since: before) }
            #expect(error?.description.contains("numbers") == true)
        } else {
            let conflicts = try await container.undoChanges(by: "a", since: before, onConflict: policy)
            #expect(conflicts.map(\.property) == ["types"])
        }
        let values = try await container.read { try $0.collection("numbers", of: String.self).all.entries().map(\.value) }
        #expect(values == ["text"])
        #expect(try await container.coordinator.verify() == [])
    }

    /// Catches: an entry that comes back without the types of its collection, which are gone meanwhile.
    @Test(arguments: StoreKind.allCases)
    func `S162: undoing an author records the types of a collection that is gone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (first, author) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await Self.write(first, author)
        await author.perform { $0.transactionAuthor = "a" }
        try await author.save()
        let before = try container.coordinator.snapshot(owner: "before")
        _ = try await author.perform { try $0.collection("numbers", of: Int.self).removeValue(forKey: "b") }
        try await author.save()
        await first.perform { $0.refreshAllObjects() }
        _ = try await first.perform { try $0.undoHistory?.undo() }
        try await first.save()
        #expect(try await Self.names(container) == [])
        #expect(try await container.undoChanges(by: "a", since: before) == [])
        #expect(try await Self.names(container) == ["numbers", "b"])
        #expect(try await container.coordinator.verify() == [])
    }

    /// Saves the first entry of a collection, which can be undone, and adds an entry in another context.
    private static func write(_ first: BackgroundContext, _ second: BackgroundContext) async throws {
        try await Self.setFirstValue(in: first)
        try await first.save()
        await second.perform { $0.refreshAllObjects() }
        try await second.perform { try $0.collection("numbers", of: Int.self)["b"] = 2 }
    }

    /// Catches: bytes of one type that are read as another one.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S190: entries are refused after a collection has got other types`(_ kind: StoreKind, _ isChild: Bool) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let first = container.coordinator.newBackgroundContext()
        await first.perform { $0.undoHistory = UndoHistory() }
        try await first.perform { try $0.collection("numbers", of: Int.self)["a"] = 1 }
        if !isChild { try await first.save() }
        let writer = isChild ? await first.newBackgroundChild() : container.coordinator.newBackgroundContext()
        try await writer.perform { context throws in
            context.automaticallyMergesChanges = false
            try context.collection("numbers", of: Int.self)["b"] = 2
        }
        try await first.perform { context throws in
            if isChild { context.rollback() } else { try context.undoHistory?.undo() }
        }
        if !isChild { try await first.save() }
        try await first.perform { try $0.collection("numbers", of: String.self)["x"] = "text" }
        if !isChild { try await first.save() }
        await #expect(throws: CollectionError.self) { try await writer.save() }
        if isChild { try await first.save() }
        let values = try await container.read { try $0.collection("numbers", of: String.self).all.entries().map(\.value) }
        #expect(values == ["text"])
    }

    private struct Refused: Codable, Sendable {
        struct Reason: Error {}
        init() {}
        init(from decoder: any Decoder) throws { throw Reason() }
        func encode(to encoder: any Encoder) throws { throw Reason() }
    }

    /// Catches: a save that succeeds without a value that an observer of its beginning has set.
    @Test(arguments: StoreKind.allCases)
    func `S060, S191: a value that is set while a save begins and cannot be stored fails that save`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        try await context.perform { context throws in
            _ = context.addObserver { [weak context] notice in
                if notice.kind == .willSave { try? context?.collection("values", of: Refused.self)["a"] = Refused() }
            }
            context.makeTrack("a")
        }
        await #expect(throws: CollectionError.self) { try await context.save() }
        #expect(try await container.read { try $0.trackTitles() } == [])
    }

    /// Catches: entries without a record of their types, because the record was undone before the save in whose beginning they are set.
    @Test(arguments: StoreKind.allCases)
    func `S060, S190: a collection that is written while a save begins has its types`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        try await Self.setFirstValue(in: context)
        try await context.perform { context throws in
            _ = try context.undoHistory?.undo()
            _ = context.addObserver { [weak context] notice in
                if notice.kind == .willSave { try? context?.collection("numbers", of: Int.self)["b"] = 2 }
            }
            context.makeTrack("a")
        }
        try await context.save()
        #expect(try await Self.names(container) == ["numbers", "b"])
    }
}
