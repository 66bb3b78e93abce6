import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Groups, names and limits of an undo history (S162).
@Suite struct UndoGroupTests {
    @Test(arguments: StoreKind.allCases)
    func `S162: nested groups are part of their block, and are undone alone while it is open`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory()
            context.undoHistory = history
            context.makeTrack("a")
            history.beginGroup("Outer")
            context.makeTrack("b")
            history.group("Inner") { context.makeTrack("c") }
            #expect(history.groupingLevel == 1)
            try history.undoNestedGroup()
            #expect(try context.trackTitles() == ["a", "b"])
            #expect(throws: UndoError.self) { try history.undo() }
            history.endGroup()
            try history.redo()
            #expect(try context.trackTitles() == ["a", "b", "c"])
            #expect(history.undoActionName == "Inner")
            try history.undo()
            #expect(history.redoActionName == "Inner" && history.undoActionName == "Outer")
            try history.undo()
            #expect(try context.trackTitles() == [])
            #expect(history.redoActionName == "Outer")
            try history.redo()
            #expect(try context.trackTitles() == ["a", "b"])
            history.setActionName("Insert")
            #expect(history.undoActionName == "Insert")
        }
    }

    /// Catches: an undo of an empty group that undoes an older one, and a stop of the program at a group that is too large.
    @Test(arguments: StoreKind.allCases)
    func `S162: undoing an empty nested group changes nothing, and undoing one beyond the bound throws`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory(byteLimit: 20_000)
            context.undoHistory = history
            func expect(_ wanted: [String]) throws {
                let titles = try context.trackTitles()
                #expect(titles == wanted)
            }
            history.beginGroup("Outer")
            context.makeTrack("a")
            history.group("Empty") {}
            try history.undoNestedGroup()
            try expect(["a"])
            history.group("Inner") { context.makeTrack("b") }
            history.group("Empty") {}
            try history.undoNestedGroup()
            try expect(["a", "b"])
            try history.undoNestedGroup()
            try expect(["a"])
            history.group("Large") { for number in 0..<200 { context.makeTrack("\(number)") } }
            #expect(throws: UndoError.groupTooLarge(context: context.name, limit: 20_000)) { try history.undoNestedGroup() }
            history.endGroup()
        }
    }

    /// Catches: groups of several jobs in one if changes are unprocessed when undo begins.
    @Test(arguments: Combination.all, [false, true]) @MainActor
    func `S162: on the main actor, a group ends with the job that made its changes`(
        _ combination: Combination, _ hasUnprocessedChanges: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("a")
        try await container.saveMain()
        let token = hasUnprocessedChanges ? main.observe { _ in } : nil
        if hasUnprocessedChanges { main.makeTrack("before") }
        let history = UndoHistory()
        main.undoHistory = history
        track["plays"] = 1
        // Jobs of the main actor run in their order, so the one that ends the group runs before the last of these.
        for _ in 0..<3 { await Task { @MainActor in }.value }
        (track["title"], track["plays"]) = ("b", 2)
        try history.undo()
        #expect([track["title"], track["plays"]] == ["a", 1])
        try history.undo()
        #expect(track["plays"] == 0 && !history.canUndo && main.hasChanges == hasUnprocessedChanges)
        withExtendedLifetime(token) {}
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: an open group joins the changes of several blocks`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { context in
            context.undoHistory = UndoHistory()
            context.undoHistory?.beginGroup("Import")
        }
        // More blocks than layers that are kept apart, so that layers are folded.
        for number in 0..<20 {
            await worker.perform { _ = $0.makeTrack("\(number)") }
            try await worker.perform { try $0.objects("Track")[0]["plays"] = .int(Int64(number)) }
        }
        try await worker.save()
        try await worker.perform { context throws in
            let history = try #require(context.undoHistory)
            history.endGroup()
            context.processPendingChanges()
            #expect(history.undoActionName == "Import")
            try history.undo()
            #expect(try context.trackTitles() == [] && !history.canUndo)
            try history.redo()
            #expect(try context.trackTitles().count == 20)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: new changes end redo, and unregistered changes are not undone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory()
            context.undoHistory = history
            let track = context.makeTrack("t")
            context.processPendingChanges()
            history.withoutRegistration { track["plays"] = 5 }
            context.processPendingChanges()
            track["rating"] = 1.5
            context.processPendingChanges()
            try history.undo()
            #expect(history.canRedo && track["plays"] == 5 && track["rating"] == 2.5)
            context.makeTrack("new")
            #expect(!history.canRedo)
            try history.undo()
            #expect(track["plays"] == 5)
            #expect(throws: UndoError.self, "the insertion left plays at 0") { try history.undo() }
            try history.undo(onConflict: .force)
            #expect(try context.trackTitles() == [])
            context.undoHistory = nil
            #expect(throws: UndoError.noContext) { try history.undo() }
        }
    }

    /// Catches: an event that counts as a group, and ends redo, although its changes have cancelled each other.
    @Test(arguments: StoreKind.allCases)
    func `S162: changes that cancel each other within one event are no group and do not end redo`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory()
            let track = context.makeTrack("t")
            context.undoHistory = history
            track["plays"] = 1
            #expect(history.canUndo)
            track["plays"] = 0
            #expect(!history.canUndo && !history.canRedo)
            context.processPendingChanges()
            history.group("Title") { track["title"] = "new" }
            context.processPendingChanges()
            try history.undo()
            for isNested in [false, true] {
                track["plays"] = 2
                #expect(history.canUndo && !history.canRedo)
                if isNested { history.group { track["plays"] = 0 } } else { track["plays"] = 0 }
                #expect(!history.canUndo && history.canRedo && history.undoActionName == nil, "nested: \(isNested)")
            }
            try history.redo()
            #expect(track["title"] == "new" && !history.canRedo && history.undoActionName == "Title")
            try history.undo()
            track["plays"] = 3
            context.processPendingChanges()
            #expect(history.canUndo && !history.canRedo)
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: levels and bytes bound the history, and a group beyond the bound is refused as a whole`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory(levels: 3)
            context.undoHistory = history
            for number in 0..<5 {
                context.makeTrack("\(number)")
                context.processPendingChanges()
            }
            while history.canUndo { try history.undo() }
            #expect(try context.trackTitles() == ["0", "1"])

            history.removeAllActions()
            history.byteLimit = 20_000
            for number in 0..<200 {
                context.makeTrack("\(number)")
                context.processPendingChanges()
                #expect(history.byteCount <= 20_000)
            }
            #expect(history.canUndo && history.byteCount > 0)
            for number in 0..<200 { context.makeTrack("large \(number)") }
            context.processPendingChanges()
            #expect(!history.canUndo && history.byteCount == 0)
            #expect(throws: UndoError.groupTooLarge(context: context.name, limit: 20_000)) { try history.undo() }
            context.makeTrack("small")
            context.processPendingChanges()
            try history.undo()
            #expect(try context.trackTitles().count == 402)
            #expect(!history.canUndo)
        }
    }

    /// Catches: a small group that is refused, with the loss of all older groups, because each of its changes of one value counts.
    @Test(arguments: StoreKind.allCases)
    func `S162: an open group that changes a value in many blocks needs the memory of one change`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let id = await worker.perform { context in
            context.undoHistory = UndoHistory(byteLimit: 20_000)
            return context.makeTrack("t").objectID
        }
        await worker.perform { $0.undoHistory?.beginGroup("Drag") }
        for number in 1...300 {
            try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(Int64(number)) }
        }
        try await worker.perform { context throws in
            let track = try context.existingObject(with: id)
            let history = try #require(context.undoHistory)
            #expect(history.byteCount < 5_000)
            history.group("Inner") {
                for number in 1...20 { history.group { track["plays"] = .int(Int64(-number)) } }
            }
            #expect(history.byteCount < 5_000, "the closed groups are one")
            try history.undoNestedGroup()
            #expect(track["plays"] == 300 && history.byteCount > 0 && history.byteCount < 5_000)
            history.endGroup()
            #expect(history.canUndo && history.undoActionName == "Drag")
            try history.undo()
            #expect(track["plays"] == 0 && history.canUndo, "the insertion")
            try history.undo()
            #expect(try context.trackTitles() == [] && !history.canUndo)
        }
        try await container.close()
    }

    /// Catches: an Undo command that is enabled although it fails, until the group ends.
    @Test(arguments: StoreKind.allCases)
    func `S162: changes beyond the bound cannot be undone before their group has ended either`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory(byteLimit: 20_000)
            context.undoHistory = history
            context.makeTrack("older")
            context.processPendingChanges()
            context.makeTrack("small")
            #expect(history.canUndo)
            for number in 0..<200 { context.makeTrack("\(number)") }
            #expect(!history.canUndo)
            #expect(throws: UndoError.groupTooLarge(context: context.name, limit: 20_000)) { try history.undo() }
            #expect(!history.canUndo)
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: deleting a value beyond the bound reads none of its bytes and cannot be undone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let model = try Model([
            EntityDescription(
                name: "Photo", properties: [.attribute(.init(name: "payload", type: .data, isOptional: true))])
        ])
        let container = try await bed.container(model: model)
        let worker = container.coordinator.newBackgroundContext()
        let id = await worker.perform { context in
            let photo = context.insert("Photo")
            photo["payload"] = .data(Data(count: 100_000))
            return photo.objectID
        }
        try await worker.save()
        try await worker.perform { context throws in
            context.undoHistory = UndoHistory(byteLimit: 50_000)
            context.delete(try context.existingObject(with: id))
            context.processPendingChanges()
            #expect(throws: UndoError.self) { try context.undoHistory?.undo() }
        }
    }

    /// Counts what a group of many changes retains: its memory does not depend on the other objects.
    @Test(arguments: StoreKind.allCases)
    func `S162: many changes are one group, undone and redone as a whole`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let count = Rounds.of(1_000, long: 100_000)
        await worker.perform { context in
            for number in 0..<count { context.makeTrack("t", plays: number) }
        }
        try await worker.save()
        try await worker.perform { context throws in
            let history = UndoHistory(byteLimit: 1 << 30)
            context.undoHistory = history
            let clock = ContinuousClock()
            for track in try context.objects("Track") { track["plays"] = -1 }
            let recording = clock.measure { context.processPendingChanges() }
            #expect(history.byteCount > count * 100 && history.byteCount < count * 1_000)
            let plays = Music.column("Track", "plays")
            func changed() throws -> Int {
                try context.keys(matching: Music.query("Track", .compare(plays, .equal, to: -1))).count
            }
            let undoing = try clock.measure { try history.undo() }
            #expect(try changed() == 0 && !context.hasChanges)
            let redoing = try clock.measure { try history.redo() }
            #expect(try changed() == count)
            if count == 100_000 {
                print("undo of \(count) changes, \(kind): recorded \(recording), undone \(undoing), redone \(redoing)")
            }
        }
    }

    // MARK: Cascades

    /// Shelves delete their books and loans. A book with loans cannot be deleted.
    private static func library() throws -> Model {
        func toMany(_ name: String, _ destination: String, _ inverse: String, _ rule: DeleteRule) -> PropertyDescription {
            .relationship(.init(name: name, destination: destination, inverse: inverse, cardinality: .toMany, deleteRule: rule))
        }
        func toOne(_ name: String, _ destination: String, _ inverse: String) -> PropertyDescription {
            .relationship(
                .init(name: name, destination: destination, inverse: inverse, cardinality: .toOne, deleteRule: .nullify))
        }
        return try Model([
            EntityDescription(
                name: "Shelf",
                properties: [toMany("books", "Book", "shelf", .cascade), toMany("loans", "Loan", "shelf", .cascade)]),
            EntityDescription(
                name: "Book", properties: [toOne("shelf", "Shelf", "books"), toMany("loans", "Loan", "book", .deny)]),
            EntityDescription(
                name: "Loan", properties: [toOne("book", "Book", "loans"), toOne("shelf", "Shelf", "loans")]),
        ])
    }

    /// Catches: an undo that never ends, because a cascade reaches an object that a rule keeps; and one that keeps objects although the cascade
    /// deletes what forbids their deletion.
    @Test(arguments: Combination.all, [false, true])
    func `S162, S050: a forced undo keeps what cascades to an object that may not be deleted`(
        _ combination: Combination, _ isLoanOnShelf: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.library())
        let worker = await container.newBackgroundContext()
        await worker.perform { $0.undoHistory = UndoHistory() }
        let (shelf, book) = await worker.perform { context in
            let (shelf, book) = (context.insert("Shelf"), context.insert("Book"))
            book.setRelatedObject("shelf", to: shelf)
            return (shelf.objectID, book.objectID)
        }
        try await worker.perform { context throws in
            let history = try #require(context.undoHistory)
            try history.withoutRegistration {
                let loan = context.insert("Loan")
                loan.setRelatedObject("book", to: try context.existingObject(with: book))
                if isLoanOnShelf { loan.setRelatedObject("shelf", to: try context.existingObject(with: shelf)) }
            }
            let conflicts = try history.undo(onConflict: .force)
            #expect(Set(conflicts.map(\.objectID)) == [shelf, book] && conflicts.allSatisfy { $0.kind == .referenced })
            let counts = try ["Shelf", "Book", "Loan"].map { try context.fetch(EntityFetchRequest($0)).count }
            #expect(counts == (isLoanOnShelf ? [0, 0, 0] : [1, 1, 1]))
        }
        try await worker.save(through: .store)
        let left = try await container.read { context in
            try ["Shelf", "Book", "Loan"].map { try context.fetch(EntityFetchRequest($0)).count }
        }
        #expect(left == (isLoanOnShelf ? [0, 0, 0] : [1, 1, 1]))
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }
}
