import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Ordered relationships in one context, its children and its saves (S046).
@Suite struct OrderedRelationshipTests {
    @Test(arguments: Combination.all)
    func `S046: an order is kept across save, merge and reopen`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let worker = await container.newBackgroundContext()
        let id = try await Books.make(["d", "a", "c", "b"], in: worker)
        let other = await container.newBackgroundContext()
        #expect(try await Books.titles(id, in: other) == ["d", "a", "c", "b"])
        try await worker.perform { context throws in
            let book = try context.existingObject(with: id)
            book.chapters.insert(context.makeChapter("x"), at: 1)
            book.chapters.append(book.chapters.remove(at: 0))
            book.chapters.removeAll { $0.title == "c" }
            #expect(book.chapterTitles == ["x", "a", "b", "d"])
        }
        #expect(try await Books.titles(id, in: other) == ["d", "a", "c", "b"])
        try await worker.save(through: .store)
        let expected = ["x", "a", "b", "d"]
        #expect(try await Books.titles(id, in: worker) == expected)
        await other.perform { $0.refreshAllObjects() }
        try await container.coordinator.refresh()
        #expect(try await Books.stored(id, in: container) == expected)
        try await MainActor.run { () throws in
            container.mainContext.refreshAllObjects()
            #expect(try container.mainContext.existingObject(with: id).chapterTitles == expected)
        }
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
        guard combination.store != .memory else { return }
        try await bed.closed()
        let reopened = try await bed.container(combination.stack, model: try Books.model())
        #expect(try await Books.stored(id, in: reopened) == expected)
        try await reopened.close()
    }

    @Test(arguments: Combination.all)
    func `S046: moving one of many objects changes one`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let worker = await container.newBackgroundContext()
        let count = Rounds.of(100, long: 10_000)
        var titles = (0..<count).map(String.init)
        let id = try await Books.make(titles, in: worker)
        for (from, to) in [(0, count - 1), (count - 1, 0), (50, 3), (7, 8), (40, 60)] {
            titles.insert(titles.remove(at: from), at: to)
            let order = titles
            let moved = try await worker.perform { context throws in
                let book = try context.existingObject(with: id)
                var chapters = book.chapters
                chapters.insert(chapters.remove(at: from), at: to)
                book.chapters = chapters
                #expect(book.chapterTitles == order)
                return context.updatedObjects.map(\.title)
            }
            #expect(moved.count == 1, "from \(from) to \(to): \(moved)")
            try await worker.save(through: .store)
            let changes = try await container.coordinator.history().last?.changes
            #expect(changes?.map(\.updatedProperties) == [["position in book"]], "one row from \(from) to \(to)")
        }
        #expect(try await Books.stored(id, in: container) == titles)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S032: an equal order and a repeated member are no change`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Books.model())
        let worker = container.coordinator.newBackgroundContext()
        let id = try await Books.make(["b", "a", "c"], in: worker)
        try await worker.perform { context throws in
            let book = try context.existingObject(with: id)
            let chapters = book.chapters
            book.chapters = chapters
            book.chapters = chapters + [chapters[0], chapters[2]]
            book.add(chapters[0], to: "chapters")
            chapters[1].setRelatedObject("book", to: book)
            #expect(!context.hasChanges)
            #expect(chapters[1].changedValues.isEmpty)
            book.chapters = [chapters[2], chapters[0], chapters[2], chapters[1]]
            #expect(book.chapterTitles == ["c", "b", "a"])
            #expect(chapters[2].changedValues.isEmpty, "positions are no property")
            #expect(context.updatedObjects == [chapters[2]])
        }
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S046: setting the inverse appends, also when an object returns`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let worker = await container.newBackgroundContext()
        let (first, second) = (try await Books.make(["b", "a"], in: worker), try await Books.make(["y", "x"], in: worker))
        try await worker.perform { context throws in
            let (one, two) = (try context.existingObject(with: first), try context.existingObject(with: second))
            for title in ["d", "c"] { context.makeChapter(title).setRelatedObject("book", to: one) }
            #expect(one.chapterTitles == ["b", "a", "d", "c"])
            one.chapters[0].setRelatedObject("book", to: two)
            #expect(one.chapterTitles == ["a", "d", "c"] && two.chapterTitles == ["y", "x", "b"])
            two.add(one.chapters[1], to: "chapters")
            two.remove(two.chapters[0], from: "chapters")
            #expect(one.chapterTitles == ["a", "c"] && two.chapterTitles == ["x", "b", "d"])
            two.chapters[1]["book"] = .reference(first.key)
            #expect(one.chapterTitles == ["a", "c", "b"] && two.chapterTitles == ["x", "d"])
            let lost = try #require(try context.objects("Chapter", of: context).first { $0.title == "y" })
            #expect(lost.relatedObject("book") == nil)
            two.chapters.insert(lost, at: 0)
            context.delete(two.chapters[1])
            #expect(two.chapterTitles == ["y", "d"])
        }
        try await worker.save(through: .store)
        #expect(try await Books.stored(first, in: container) == ["a", "c", "b"])
        #expect(try await Books.stored(second, in: container) == ["y", "d"])
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S048: rollback and refresh restore an order, and undo and redo follow it`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let worker = await container.newBackgroundContext()
        let id = try await Books.make(["a", "b", "c"], in: worker)
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await Books.arrange(id, "cab", in: worker)
        try await Books.arrange(id, "cxab", in: worker)
        try await worker.perform { context throws in
            let book = try context.existingObject(with: id)
            let history = try #require(context.undoHistory)
            #expect(book.chapterTitles == ["c", "x", "a", "b"])
            try history.undo()
            #expect(book.chapterTitles == ["c", "a", "b"])
            try history.undo()
            #expect(book.chapterTitles == ["a", "b", "c"] && !context.hasChanges)
            try history.redo()
            try history.redo()
            #expect(book.chapterTitles == ["c", "x", "a", "b"])
            context.makeChapter("y").setRelatedObject("book", to: book)
            #expect(book.chapterTitles == ["c", "x", "a", "b", "y"])
            context.rollback()
            #expect(book.chapterTitles == ["a", "b", "c"])
            book.chapters = book.chapters.reversed()
            for chapter in book.chapters { context.refresh(chapter, mergeChanges: false) }
            #expect(book.chapterTitles == ["a", "b", "c"] && !context.hasChanges)
        }
        try await worker.save(through: .store)
        #expect(try await Books.stored(id, in: container) == ["a", "b", "c"])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S046: an object that leaves its list and comes back by rollback stays in its place`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Books.model())
        let worker = container.coordinator.newBackgroundContext()
        let id = try await Books.make(["a", "b", "c"], in: worker)
        try await worker.perform { context throws in
            let book = try context.existingObject(with: id)
            let last = book.chapters[2]
            last.setRelatedObject("book", to: nil)
            context.makeChapter("d").setRelatedObject("book", to: book)
            #expect(book.chapterTitles == ["a", "b", "d"])
            context.refresh(last, mergeChanges: false)
            #expect(Set(book.chapterTitles) == ["a", "b", "c", "d"])
            context.makeChapter("e").setRelatedObject("book", to: book)
            #expect(book.chapterTitles.last == "e")
            context.rollback()
            #expect(book.chapterTitles == ["a", "b", "c"])
            context.makeChapter("f").setRelatedObject("book", to: book)
            #expect(book.chapterTitles == ["a", "b", "c", "f"])
        }
        try await container.close()
    }

    @Test(arguments: Combination.all) @MainActor
    func `S075: a child's order and its parent's changes meet in the parent`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let main = container.mainContext
        let book = main.insert("Book")
        book.arrangeChapters(["a", "b", "c", "d"])
        try await container.saveMain()
        // The parent has unsaved changes that the child sees, and then makes more.
        book.arrangeChapters(["a", "b", "c", "d", "e"])
        let child = main.newChild()
        let id = book.objectID
        let copy = try child.existingObject(with: id)
        #expect(copy.chapterTitles == ["a", "b", "c", "d", "e"])
        copy.arrangeChapters(["d", "a", "b", "c", "x", "e"])
        let grandchild = child.newChild()
        try grandchild.existingObject(with: id).arrangeChapters(["d", "a", "b", "c", "x", "y", "e"])
        book.arrangeChapters(["a", "c", "b", "d", "e", "f"])
        #expect(copy.chapterTitles == ["d", "a", "b", "c", "x", "e"], "S071: nothing changes under a child")
        try await grandchild.save()
        try await child.save()
        let titles = book.chapterTitles
        #expect(Set(titles) == ["a", "b", "c", "d", "e", "f", "x", "y"])
        #expect(titles.first == "d" && titles.last == "f", "the moves of both")
        #expect(titles.filter("xye".contains) == ["x", "y", "e"])
        try await container.saveMain()
        #expect(try await Books.stored(id, in: container) == titles)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: Combination.all) @MainActor
    func `S145: results sorted by position show moves, saved or not`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let main = container.mainContext
        let book = main.insert("Book")
        book.arrangeChapters(["a", "b", "c"])
        let id = book.objectID
        let request = EntityFetchRequest(
            "Chapter", matching: .compare("book", .equal, to: .reference(id.key)), sortBy: [AttributeSort("position in book")])
        let results = try Results(request, context: main)
        #expect(results.map(\.title) == ["a", "b", "c"])
        book.arrangeChapters(["c", "a", "x", "b"])
        main.processPendingChanges()
        #expect(results.map(\.title) == ["c", "a", "x", "b"])
        try await container.saveMain()
        let worker = container.newBackgroundContext()
        try await Books.arrange(id, "xbca", in: worker)
        try await worker.save(through: .store)
        main.refreshAllObjects()
        try await until("the saved order is shown") { results.map(\.title) == ["x", "b", "c", "a"] }
        #expect(try main.fetch(request).map(\.title) == ["x", "b", "c", "a"])
        #expect(book.chapterTitles == ["x", "b", "c", "a"])
        try await container.close()
    }

    @Test(arguments: Combination.all) @MainActor
    func `S146: observers of a relationship are notified of a new order once`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let main = container.mainContext
        let (book, other) = (main.insert("Book"), main.insert("Book"))
        book.arrangeChapters(["a", "b", "c"])
        let watches = [book, other].map { book in Watch { _ = book.chapters } }
        book.arrangeChapters(["a", "b", "c"])
        #expect(watches.map { $0.take() } == [0, 0])
        book.arrangeChapters(["c", "a", "b"])
        #expect(watches.map { $0.take() } == [1, 0])
        book.arrangeChapters(["b", "x", "a"])
        #expect(watches.map { $0.take() } == [1, 0])
        try await container.saveMain()
        _ = watches.map { $0.take() }
        let id = book.objectID
        let worker = container.newBackgroundContext()
        try await Books.arrange(id, "axb", in: worker)
        try await worker.save(through: .store)
        main.refreshAllObjects()
        try await until("the order of another context is shown") { book.chapterTitles == ["a", "x", "b"] }
        #expect(watches.map { $0.take() } == [1, 0])
        try await container.close()
    }

    @Test(arguments: Combination.all) @MainActor
    func `S080: a live result updates if only the order of a relationship changed`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let main = container.mainContext
        let (book, other) = (main.insert("Book"), main.insert("Book"))
        book["title"] = "one"
        other["title"] = "two"
        book.arrangeChapters(["a", "b", "c"])
        try await container.saveMain()
        let results = try Results(EntityFetchRequest("Book", sortBy: [AttributeSort("title")]), context: main)
        var iterator = results.updates.makeAsyncIterator()
        let id = book.objectID
        let worker = container.newBackgroundContext()
        try await Books.arrange(id, "bca", in: worker)
        try await worker.save(through: .store)
        main.refreshAllObjects()
        let update = try #require(await iterator.next())
        #expect(update.difference.updates.map { update.snapshot.ids[$0] } == [id])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S137: batches, imports and values append to a list`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Books.model())
        let coordinator = container.coordinator
        let worker = coordinator.newBackgroundContext()
        let (id, other) = (try await Books.make(["b", "a"], in: worker), try await Books.make(["z"], in: worker))
        var options = BatchOptions()
        options.rowsPerSave = 2
        let rows: [[Value]] = ["e", "d", "c"].map { [.string($0), .reference(id.key)] }
        try await coordinator.insert(into: "Chapter", ["title", "book"], rows: rows, options: options)
        #expect(try await Books.stored(id, in: container) == ["b", "a", "e", "d", "c"])
        try await coordinator.batchUpdate(
            EntityFetchRequest("Chapter", matching: .isIn("title", ["z", "b"])), set: ["book": .reference(id.key)])
        #expect(try await Books.stored(id, in: container) == ["b", "a", "e", "d", "c", "z"])
        #expect(try await Books.stored(other, in: container) == [])
        await worker.perform { $0.refreshAllObjects() }
        try await worker.perform { context throws in
            let entity = try #require(context.model.entity(named: "Chapter"))
            context.insert(entity, values: ["y", .reference(id.key), 1])
            #expect(try context.existingObject(with: id).chapterTitles == ["b", "a", "e", "d", "c", "z", "y"])
        }
        try await worker.save()
        #expect(try await Books.stored(id, in: container) == ["b", "a", "e", "d", "c", "z", "y"])
        struct Imported: Decodable {
            var title: String
            var chapters: [String]
        }
        let imported = try await worker.perform { context throws in
            let values = [Imported(title: "new", chapters: ["z", "a", "y"])]
            return try context.insert(contentsOf: values, into: "Book")[0].objectID
        }
        try await worker.save()
        #expect(try await Books.stored(imported, in: container) == ["z", "a", "y"])
        #expect(try await Books.stored(id, in: container) == ["b", "e", "d", "c"])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func `S046: a child that reads through its parents keeps orders`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.nested, model: try Books.model(), routing: .ancestors)
        let main = container.mainContext
        let book = main.insert("Book")
        book.arrangeChapters(["c", "a", "b"])
        let id = book.objectID
        let worker = container.newBackgroundContext()
        try await Books.arrange(id, ["b", "c", "x", "a"], in: worker)
        #expect(try await Books.titles(id, in: worker) == ["b", "c", "x", "a"])
        main.makeChapter("d").setRelatedObject("book", to: book)
        #expect(book.chapterTitles == ["c", "a", "b", "d"])
        try await worker.perform { context throws in
            let book = try context.existingObject(with: id)
            context.makeChapter("e").setRelatedObject("book", to: book)
            #expect(book.chapterTitles.filter { $0 != "d" } == ["b", "c", "x", "a", "e"])
        }
        try await worker.save()
        let titles = book.chapterTitles
        #expect(titles.prefix(4) == ["b", "c", "x", "a"] && Set(titles.dropFirst(4)) == ["d", "e"])
        try await container.saveMain()
        #expect(try await Books.stored(id, in: container) == titles)
        try await container.close()
    }
}

extension ManagedObjectContext {
    fileprivate func objects(_ entity: String, of context: ManagedObjectContext) throws -> [ManagedObject] {
        try fetch(EntityFetchRequest(entity))
    }
}
