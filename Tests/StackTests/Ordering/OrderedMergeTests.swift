import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Merges of ordered relationships that two contexts have changed (S107).
@Suite struct OrderedMergeTests {
    /// Two root contexts that show the same book with chapters.
    private struct Sides {
        let bed: TestBed
        var container: PersistentContainer
        var ours: BackgroundContext
        var theirs: BackgroundContext
        var book: ObjectID

        init(
            _ bed: TestBed, stack: ContextStack = .siblings, _ chapters: String, _ policy: MergePolicy,
            rule: DeleteRule = .cascade
        ) async throws {
            self.bed = bed
            container = try await bed.container(stack, model: try Books.model(rule: rule))
            ours = container.newBatchOperationContext(name: "ours")
            theirs = container.newBatchOperationContext(name: "theirs")
            await ours.perform { $0.mergePolicy = policy }
            book = try await Books.make(chapters.map(String.init), in: ours)
            await theirs.perform { $0.refreshAllObjects() }
        }

        /// Saves their order, then ours, and returns the titles that every context shows afterwards.
        func merge(theirs their: String, ours our: String) async throws -> String {
            try await Books.arrange(book, their, in: theirs)
            try await Books.arrange(book, our, in: ours)
            return try await save()
        }

        func save() async throws -> String {
            try await theirs.save()
            try await ours.save()
            return try await settled()
        }

        /// Lets their context put a chapter into another book and take it out again, each in a save.
        func lend(_ chapter: ObjectID, to other: ObjectID) async throws {
            for list in [other, nil] {
                await theirs.perform { context in
                    context.refreshAllObjects()
                    context.object(with: chapter).setRelatedObject("book", to: list.map { context.object(with: $0) })
                }
                try await theirs.save()
            }
        }

        func settled() async throws -> String {
            for context in [ours, theirs] { await context.perform { $0.refreshAllObjects() } }
            let stored = try await Books.stored(book, in: container)
            for context in [ours, theirs] { #expect(try await Books.titles(book, in: context) == stored) }
            #expect(try container.coordinator.store.verify() == [])
            return stored.joined()
        }
    }

    private static let policies: [MergePolicy] = [.error, .storeTrump, .objectTrump, .overwrite, .rollback]

    @Test(arguments: Combination.all)
    func `S107: two orders that do not contradict each other are both kept`(_ combination: Combination) async throws {
        for (number, policy) in Self.policies.enumerated() {
            let bed = try TestBed(combination.store)
            let sides = try await Sides(bed, stack: combination.stack, "abcdefgh", policy)
            // Different objects are moved, so no policy has a conflict.
            let merged = try await sides.merge(theirs: "bcdefgha", ours: "habcdefg")
            #expect(merged == "hbcdefga", "policy \(number)")
            let again = try await sides.merge(theirs: "hxbcdefga", ours: "hbdefcyga")
            #expect(again == "hxbdefcyga", "policy \(number)")
            try await sides.container.close()
            guard combination.store != .memory else { continue }
            try await bed.closed()
            let reopened = try await bed.container(combination.stack, model: try Books.model())
            #expect(try await Books.stored(sides.book, in: reopened).joined() == again)
            try await reopened.close()
        }
    }

    @Test(arguments: Combination.all)
    func `S046: a merge that moves an object to another list drops its unsaved position in the old one`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let sides = try await Sides(bed, stack: combination.stack, "abc", .error)
        let other = try await Books.make(["x", "y", "z"], in: sides.ours)
        await sides.theirs.perform { $0.refreshAllObjects() }
        try await Books.arrange(sides.book, "cab", in: sides.ours)
        try await Books.move("c", of: sides.book, to: other, in: sides.theirs)
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        #expect(try await Books.titles(other, in: sides.ours).joined() == "xyzc")
        #expect(await sides.ours.perform { !$0.hasChanges }, "the position was the only change")
        try await sides.ours.save()
        #expect(try await Books.stored(other, in: sides.container).joined() == "xyzc")
        try await sides.container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S046: a child's position in a list that its parent took the object out of is left out`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let sides = try await Sides(bed, "abc", .error)
        let other = try await Books.make(["x", "y", "z"], in: sides.ours)
        let child = await sides.ours.perform { $0.newBackgroundChild() }
        try await Books.arrange(sides.book, "cab", in: child)
        try await Books.move("c", of: sides.book, to: other, in: sides.ours)
        try await child.save()
        #expect(try await Books.titles(other, in: sides.ours).joined() == "xyzc")
        try await sides.ours.save()
        #expect(try await Books.stored(other, in: sides.container).joined() == "xyzc")
        try await sides.container.close()
    }

    /// Catches: layers that are folded by the dropped position, after which the next changes are not recorded.
    @Test(arguments: StoreKind.allCases)
    func `S162: what follows a merge that drops a position can be undone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let sides = try await Sides(bed, "abc", .error)
        let other = try await Books.make(["x"], in: sides.ours)
        await sides.theirs.perform { $0.refreshAllObjects() }
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Books.arrange(sides.book, "cab", in: sides.ours)
        try await sides.ours.perform { try $0.existingObject(with: other)["title"] = .string("one") }
        try await Books.move("c", of: sides.book, to: other, in: sides.theirs)
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        try await sides.ours.perform { try $0.existingObject(with: other)["title"] = .string("two") }
        try await sides.ours.perform { context in
            try context.undoHistory?.undo()
            #expect(try context.existingObject(with: other)["title"] == .string("one"))
            #expect(try context.existingObject(with: other).chapterTitles == ["x", "c"])
        }
        try await sides.container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S107: a policy decides where an object goes that both contexts moved`(_ kind: StoreKind) async throws {
        let custom = MergePolicy.custom { conflicts in
            var resolutions: [ObjectID: ConflictResolution] = [:]
            for conflict in conflicts { resolutions[conflict.objectID] = .objectTrump }
            return resolutions
        }
        let cases: [(MergePolicy, String)] = [
            (.storeTrump, "bcdea"), (.rollback, "bcdea"), (.objectTrump, "bcade"), (.overwrite, "bcade"), (custom, "bcade"),
        ]
        for (policy, expected) in cases {
            let bed = try TestBed(kind)
            let sides = try await Sides(bed, "abcde", policy)
            #expect(try await sides.merge(theirs: "bcdea", ours: "bcade") == expected, "\(policy)")
            try await sides.container.close()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S101: two moves of one object are a conflict that names the position`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let sides = try await Sides(bed, "abcde", .error)
        try await Books.arrange(sides.book, "bcdea", in: sides.theirs)
        try await Books.arrange(sides.book, "bcade", in: sides.ours)
        try await sides.theirs.save()
        let error = await #expect(throws: SaveError.self) { try await sides.ours.save() }
        var names: [[String]] = []
        if case .conflicts(let conflicts)? = error { names = conflicts.map { $0.properties.map { $0.name } } }
        #expect(names == [["position in book"]])
        #expect(error?.message.contains("(position in book: here moved, in the store moved)") == true, "\(error as Any)")
        #expect(try await Books.titles(sides.book, in: sides.ours).joined() == "bcade", "S062: the order is still unsaved")
        await sides.ours.perform { $0.mergePolicy = .objectTrump }
        try await sides.ours.save()
        #expect(try await sides.settled() == "bcade")
        try await sides.container.close()
    }

    @Test(arguments: Combination.all)
    func `S107: objects that two contexts append stay together`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let sides = try await Sides(bed, stack: combination.stack, "ab", .error)
        for (context, titles) in [(sides.theirs, "uvw"), (sides.ours, "xyz")] {
            let id = sides.book
            await context.perform { context in
                for title in titles { context.makeChapter("\(title)").setRelatedObject("book", to: context.object(with: id)) }
            }
        }
        let merged = try await sides.save()
        #expect(merged == "abuvwxyz" || merged == "abxyzuvw")
        // The next objects come after all of them, in every context.
        let id = sides.book
        for context in [sides.ours, sides.theirs] {
            await context.perform { context in
                context.refreshAllObjects()
                let count = context.object(with: id).chapters.count
                context.makeChapter("\(count)").setRelatedObject("book", to: context.object(with: id))
            }
            try await context.save()
        }
        #expect(try await sides.settled() == merged + "89")
        try await sides.container.close()
    }

    /// Catches: a position in the list that a dropped move has not reached.
    @Test(arguments: StoreKind.allCases)
    func `S046, S108: an object whose move a unique constraint takes back stays at its place`(_ kind: StoreKind) async throws {
        let model = try Model([
            EntityDescription(
                name: "Book",
                properties: [
                    .relationship(
                        .init(name: "chapters", destination: "Chapter", inverse: "book", cardinality: .toMany, isOrdered: true))
                ]),
            EntityDescription(
                name: "Chapter",
                properties: [
                    .attribute(.init(name: "title", type: .string)), .attribute(.init(name: "number", type: .int64)),
                    .relationship(.init(name: "book", destination: "Book", inverse: "chapters", cardinality: .toOne)),
                ], indexes: [.unique("book", "number")]),
        ])
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: model)
        let context = container.coordinator.newBackgroundContext()
        let books = await context.perform { context in
            context.mergePolicy = .storeTrump
            return [["a", "b", "c"], ["p", "q", "r"]].map { titles in
                let book = context.insert("Book")
                book.chapters = titles.enumerated().map { number, title in
                    let chapter = context.makeChapter(title)
                    chapter["number"] = .int(Int64(number))
                    return chapter
                }
                return book.objectID
            }
        }
        try await context.save()
        try await Books.move("a", of: books[0], to: books[1], in: context)
        try await context.save()
        #expect(try await Books.stored(books[0], in: container) == ["a", "b", "c"])
        #expect(try await Books.stored(books[1], in: container) == ["p", "q", "r"])
        // A new place in the list of before is no part of the constraint.
        try await Books.arrange(books[0], "bca", in: context)
        try await context.perform { context in
            for chapter in try context.existingObject(with: books[0]).chapters where chapter.title == "a" {
                chapter["number"] = 1
            }
        }
        try await context.save()
        #expect(try await Books.stored(books[0], in: container) == ["b", "c", "a"])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// The place of chapter "c" after their context moved it to another book and ours moved it within its book, or the reverse.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S107: a position goes with the list that it belongs to`(_ kind: StoreKind, _ theyLeave: Bool) async throws {
        let cases: [(MergePolicy, Bool)] = [
            (.storeTrump, true), (.objectTrump, true), (.rollback, theyLeave), (.overwrite, !theyLeave),
        ]
        for (policy, leaves) in cases {
            let bed = try TestBed(kind)
            let sides = try await Sides(bed, "abcd", policy)
            let other = try await Books.make(["x", "y", "z"], in: sides.theirs)
            await sides.ours.perform { $0.refreshAllObjects() }
            let (leaver, stayer) = theyLeave ? (sides.theirs, sides.ours) : (sides.ours, sides.theirs)
            let id = sides.book
            try await leaver.perform { context throws in
                let chapter = context.object(with: id).chapters[2]
                context.object(with: other).chapters.insert(chapter, at: 1)
            }
            try await Books.arrange(sides.book, "cabd", in: stayer)
            let merged = try await sides.save()
            let moved = try await Books.stored(other, in: sides.container).joined()
            #expect(merged == (leaves ? "abd" : "cabd") && moved == (leaves ? "xcyz" : "xyz"), "\(policy), \(theyLeave)")
            try await sides.container.close()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S106: a moved object that another context deleted follows the policy`(_ kind: StoreKind) async throws {
        for (policy, expected) in [(MergePolicy.storeTrump, "acd"), (.objectTrump, "acdb")] {
            let bed = try TestBed(kind)
            let sides = try await Sides(bed, "abcd", policy)
            let id = sides.book
            await sides.theirs.perform { context in context.delete(context.object(with: id).chapters[1]) }
            try await Books.arrange(id, "acdb", in: sides.ours)
            #expect(try await sides.save() == expected, "\(policy)")
            try await sides.container.close()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S091: a merge keeps an unsaved order and adds the members of other contexts`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let sides = try await Sides(bed, "abcd", .error)
        try await Books.arrange(sides.book, "dabc", in: sides.ours)
        try await Books.arrange(sides.book, "axbcd", in: sides.theirs)
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        #expect(try await Books.titles(sides.book, in: sides.ours).joined() == "daxbc")
        try await sides.ours.save()
        #expect(try await sides.settled() == "daxbc")
        try await sides.container.close()
    }

    /// Catches: a position of our list in theirs, if the check knows their save only as one that the context has not merged.
    @Test(arguments: StoreKind.allCases)
    func `S103, S107: a member stays at its place in the list into which an unmerged save has moved it`(_ kind: StoreKind)
        async throws
    {
        let sides = try await Sides(try TestBed(kind), "abc", .storeTrump)
        let other = try await Books.make(["x", "y", "z"], in: sides.theirs)
        let third = try await Books.make(["p", "q", "r"], in: sides.theirs)
        await sides.ours.perform { context in
            context.automaticallyMergesChanges = false
            context.refreshAllObjects()
        }
        let child = await sides.ours.newBackgroundChild()
        await child.perform { $0.automaticallyMergesChanges = false }
        #expect(try await Books.titles(sides.book, in: child) == ["a", "b", "c"])
        let id = sides.book
        await sides.theirs.perform { context in
            let chapter = context.object(with: id).chapters[2]
            context.object(with: other).chapters.insert(chapter, at: 0)
        }
        try await sides.theirs.save()
        // The own save moves the context past theirs without a merge.
        await sides.ours.perform { _ = $0.insert("Note") }
        try await sides.ours.save()
        try await Books.move("c", of: id, to: third, in: child)
        try await child.save()
        try await sides.ours.save()
        #expect(try await Books.stored(other, in: sides.container).joined() == "cxyz")
    }

    /// Catches: a position without its list after an undo, which a merge then shows in another list.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: a position that undo leaves without its list goes with it in a merge`(_ kind: StoreKind) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let other = try await Books.make(["x", "y", "z"], in: sides.ours)
        await sides.theirs.perform { $0.refreshAllObjects() }
        let id = sides.book
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        let chapter = await sides.ours.perform { context in
            let book = context.object(with: id)
            let first = book.chapters[0]
            book.remove(first, from: "chapters")
            book.add(first, to: "chapters")
            return first.objectID
        }
        await sides.ours.perform { $0.object(with: chapter)["pages"] = 5 }
        try await sides.ours.perform { context throws in _ = try context.undoHistory?.undo() }
        await sides.theirs.perform { context in
            let first = context.object(with: id).chapters[0]
            context.object(with: other).chapters.insert(first, at: 0)
        }
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        try await sides.ours.save()
        #expect(try await Books.stored(other, in: sides.container).joined() == "axyz")
    }

    /// Catches: a list that a custom policy sets, with a position of another list.
    @Test(arguments: StoreKind.allCases)
    func `S046, S109: a member that a custom policy puts into our list keeps our place`(_ kind: StoreKind) async throws {
        let policy = MergePolicy.custom { conflicts in
            conflicts.reduce(into: [:]) { answers, conflict in
                if let book = conflict.properties.first(where: { $0.name == "book" })?.ours {
                    answers[conflict.objectID] = .values(["book": book])
                }
            }
        }
        let sides = try await Sides(try TestBed(kind), "abcd", policy)
        let other = try await Books.make(["x", "y"], in: sides.theirs)
        let third = try await Books.make(["p", "q"], in: sides.theirs)
        await sides.ours.perform { $0.refreshAllObjects() }
        let id = sides.book
        await sides.theirs.perform { context in
            let chapter = context.object(with: id).chapters[1]
            context.object(with: other).chapters.insert(chapter, at: 0)
        }
        try await Books.move("b", of: id, to: third, in: sides.ours)
        _ = try await sides.save()
        #expect(try await Books.stored(third, in: sides.container).joined() == "pqb")
    }

    /// Catches: "position in book was changed since: it is data of 4 bytes instead of data of 4 bytes".
    @Test(arguments: StoreKind.allCases)
    func `S162, S172: a conflict of an undo names the position of a member without its bytes`(_ kind: StoreKind) async throws {
        let sides = try await Sides(try TestBed(kind), "abcde", .error)
        let book = sides.book
        let chapter = try await sides.ours.perform { try $0.existingObject(with: book).chapters[0].objectID }
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Books.arrange(book, "bcade", in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        try await Books.arrange(book, "bcdea", in: sides.theirs)
        try await sides.theirs.save()
        let conflicts = try await sides.container.conflicts(undoing: sides.ours, since: nil)
        #expect(conflicts.map(\.description) == ["Chapter(id: \(chapter.key)).position in book was changed since"])
        try await sides.container.close()
    }

    /// Catches: a member that returns to its list with its position in the other one.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: undo returns a member to its place although another context has moved it since`(_ kind: StoreKind)
        async throws
    {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let other = try await Books.make(["x", "y", "z"], in: sides.ours)
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Books.move("b", of: sides.book, to: other, in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        try await Books.arrange(other, "bxyz", in: sides.theirs)
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        try await sides.ours.perform { context throws in _ = try context.undoHistory?.undo(onConflict: .skip) }
        #expect(try await Books.titles(sides.book, in: sides.ours).joined() == "abc")
    }

    /// Catches: a member that returns to its list with its position in another one, because a removal does not change the position.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S046, S162: an undone removal returns a member to its place although it has been in another list since`(
        _ kind: StoreKind, _ isListDeleted: Bool
    ) async throws {
        for isInOther in [false, true] {
            let expected: [String?] = isInOther ? ["book"] : []
            let sides = try await Sides(try TestBed(kind), "abc", .error, rule: .nullify)
            let (id, other) = (sides.book, try await Books.make(["x", "y", "z"], in: sides.ours))
            await sides.ours.perform { $0.undoHistory = UndoHistory() }
            let chapter = await sides.ours.perform { context in
                let first = context.object(with: id).chapters[0]
                if isListDeleted { context.delete(context.object(with: id)) } else { first.setRelatedObject("book", to: nil) }
                return first.objectID
            }
            try await sides.ours.save()
            await sides.theirs.perform { context in
                context.refreshAllObjects()
                context.object(with: other).add(context.object(with: chapter), to: "chapters")
            }
            try await sides.theirs.save()
            if !isInOther {
                await sides.theirs.perform { $0.object(with: chapter).setRelatedObject("book", to: nil) }
                try await sides.theirs.save()
            }
            try await sides.ours.perform { context throws in
                context.refreshAllObjects()
                let conflicts = try context.undoHistory?.undo(onConflict: isInOther ? .force : .error)
                #expect(conflicts?.map(\.property) == expected)
            }
            try await sides.ours.save()
            #expect(try await Books.stored(id, in: sides.container).joined() == "abc", "in the other list: \(isInOther)")
            #expect(try await Books.stored(other, in: sides.container).joined() == "xyz")
            // A redo and its undo know the place too.
            try await sides.ours.perform { context throws in
                let redone = try context.undoHistory?.redo()
                let undone = try context.undoHistory?.undo()
                #expect(redone == [] && undone == [])
            }
            #expect(try await Books.titles(id, in: sides.ours).joined() == "abc")
            #expect(try sides.container.coordinator.store.verify() == [])
            try await sides.container.close()
        }
    }

    /// Catches: a position that is noted only for a removal, and lost when the group changes the member again.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: a group that removes a member in one of several blocks returns it to its place`(
        _ kind: StoreKind
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let (id, other) = (sides.book, try await Books.make(["x", "y", "z"], in: sides.ours))
        let chapter = await sides.ours.perform { context in
            let first = context.object(with: id).chapters[0]
            context.undoHistory = UndoHistory()
            context.undoHistory?.beginGroup()
            first["pages"] = 1
            return first.objectID
        }
        await sides.ours.perform { $0.object(with: chapter).setRelatedObject("book", to: nil) }
        await sides.ours.perform { context in
            context.object(with: chapter)["pages"] = 2
            context.undoHistory?.endGroup()
        }
        try await sides.ours.save()
        try await sides.lend(chapter, to: other)
        try await sides.ours.perform { context throws in
            context.refreshAllObjects()
            let conflicts = try context.undoHistory?.undo()
            #expect(conflicts == [] && context.object(with: chapter)["pages"] == 0)
        }
        #expect(try await Books.titles(id, in: sides.ours).joined() == "abc")
        try await sides.container.close()
    }

    /// Catches: a conflict about the position to which the group had moved the member before it removed it.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: a group that moves a member and then removes it returns it to its place`(_ kind: StoreKind) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let (id, other) = (sides.book, try await Books.make(["x", "y", "z"], in: sides.ours))
        let chapter = await sides.ours.perform { context in
            context.undoHistory = UndoHistory()
            context.undoHistory?.beginGroup()
            return context.object(with: id).chapters[0].objectID
        }
        try await Books.arrange(id, "bca", in: sides.ours)
        await sides.ours.perform { context in
            context.object(with: chapter).setRelatedObject("book", to: nil)
            context.undoHistory?.endGroup()
        }
        try await sides.ours.save()
        try await sides.lend(chapter, to: other)
        try await sides.ours.perform { context throws in
            context.refreshAllObjects()
            let conflicts = try context.undoHistory?.undo()
            #expect(conflicts == [])
        }
        #expect(try await Books.titles(id, in: sides.ours).joined() == "abc")
        try await sides.container.close()
    }

    /// Catches: the place of before the removal, which takes back without a conflict what another context has saved in the same list.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: an undone removal that was not saved leaves a member where another context has moved it`(
        _ kind: StoreKind
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let id = sides.book
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        await sides.ours.perform { $0.object(with: id).chapters[0].setRelatedObject("book", to: nil) }
        try await Books.arrange(id, "bca", in: sides.theirs)
        try await sides.theirs.save()
        try await sides.ours.perform { context throws in
            context.refreshAllObjects()
            let conflicts = try context.undoHistory?.undo()
            #expect(conflicts == [] && !context.hasChanges)
        }
        #expect(try await Books.titles(id, in: sides.ours).joined() == "bca")
        try await sides.container.close()
    }

    /// Catches: a member that returns to its list with its position in the other one, which is a conflict of its own and skipped.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: undoing an author's move returns a member to its place although another context has moved it since`(
        _ kind: StoreKind
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let other = try await Books.make(["x", "y", "z"], in: sides.ours)
        let before = try sides.container.coordinator.snapshot(owner: "before the move")
        await sides.ours.perform { $0.transactionAuthor = "mover" }
        try await Books.move("b", of: sides.book, to: other, in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        try await Books.arrange(other, "bxyz", in: sides.theirs)
        try await sides.theirs.save()
        try await sides.container.undoChanges(by: "mover", since: before, onConflict: .skip)
        #expect(try await Books.stored(sides.book, in: sides.container).joined() == "abc")
        #expect(try await Books.stored(other, in: sides.container).joined() == "xyz")
        #expect(try sides.container.coordinator.store.verify() == [])
    }

    /// Catches: the position in the list of before the deletion, in the list into which others have moved the member.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S046, S162: an undone deletion leaves a member at its place in the list into which others have moved it`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        let other = try await Books.make(["x", "y"], in: sides.ours)
        await sides.theirs.perform { $0.refreshAllObjects() }
        let id = sides.book
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Books.arrange(id, "cab", in: sides.ours)
        await sides.ours.perform { $0.delete($0.object(with: id).chapters[0]) }
        try await Books.move("c", of: id, to: other, in: sides.theirs)
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        try await sides.ours.perform { context throws in _ = try context.undoHistory?.undo() }
        if isSaved { try await sides.ours.save() }
        #expect(try await Books.titles(other, in: sides.ours).joined() == "xyc")
    }

    /// Catches: a member that comes back at the end of its list.
    @Test(arguments: StoreKind.allCases)
    func `S106, S109: a member that a custom policy restores keeps its place`(_ kind: StoreKind) async throws {
        let policy = MergePolicy.custom { conflicts in
            conflicts.reduce(into: [:]) { answers, conflict in
                let book = conflict.properties.first { $0.name == "book" }
                answers[conflict.objectID] = .values(["pages": 5, "book": book?.ours ?? book?.base ?? .null])
            }
        }
        let sides = try await Sides(try TestBed(kind), "abc", policy)
        let id = sides.book
        await sides.theirs.perform { context in context.delete(context.object(with: id).chapters[1]) }
        await sides.ours.perform { context in context.object(with: id).chapters[1]["pages"] = 5 }
        #expect(try await sides.save() == "abc")
    }
}
