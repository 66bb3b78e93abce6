import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite @MainActor struct ChildExecutorTests {
    @Test(arguments: Combination.all)
    func `S081: a child on the main actor saves its edits to main, or drops them`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("a")
        let watch = Watch { _ = track["title"] }
        for isSaved in [false, true] {
            let sheet = main.newChild(name: "edit sheet")
            let draft = sheet.object(with: track.objectID)
            draft["title"] = .string("edited")
            #expect(track["title"] == .string("a") && sheet.hasChanges)
            if isSaved { try await sheet.save() }
            #expect(sheet.hasChanges == !isSaved)
        }
        #expect(track["title"] == .string("edited") && watch.count == 1)
        try await container.saveMain()
    }

    @Test(arguments: Combination.all)
    func `S081: a child on the main actor saves through to the store`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let outer = container.mainContext.newChild(name: "outer sheet")
        let sheet = outer.newChild()
        sheet.makeTrack("a")
        try await sheet.save(through: .store)
        let titles = try await container.read { try $0.trackTitles() }
        #expect(titles == ["a"] && !outer.hasChanges && !container.mainContext.hasChanges)
    }

    @Test(arguments: StoreKind.allCases)
    func `S081: a background context has children on the main actor and on its own executor`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a").objectID }
        let sheet = await worker.newMainChild(name: "sheet")
        sheet.object(with: id)["title"] = .string("b")
        try await sheet.save()
        let titles = try await worker.perform { _, context in
            let scratch = context.newChild(name: "scratch")
            let track = scratch.object(with: id)
            let before = track["title"]
            track["title"] = .string("c")
            try await scratch.save()
            return [before, context.object(with: id)["title"]]
        }
        #expect(titles == [.string("b"), .string("c")])
    }

    @Test(arguments: StoreKind.allCases)
    func `S081: a child on the main actor follows its parent if it merges automatically`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let track = main.makeTrack("a")
        try await main.save()
        let sheet = main.newChild()
        sheet.automaticallyMergesChanges = true
        let draft = sheet.object(with: track.objectID)
        let watch = Watch { _ = draft["title"] }
        track["title"] = .string("b")
        try await main.save()
        try await until("the child shows the save") { draft["title"] == .string("b") }
        #expect(watch.count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `S081: a child whose parent on the main actor was released throws at its save`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        var parent: ManagedObjectContext? = container.mainContext.newChild(name: "parent")
        weak let released = parent
        let child = try #require(parent?.newBackgroundChild())
        await child.perform { _ = $0.makeTrack("a") }
        parent = nil
        try await until("the parent is released") { released == nil }
        await #expect(throws: SaveError.self) { try await child.save() }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        await #expect(throws: SaveError.self) { try await child.refreshFromParent() }
        #expect(await child.previewSave().failure != nil)
        #expect(await child.perform { $0.hasChanges })
    }

    /// Catches: a child that moves to a save of its parent in a later job. Code that has awaited the save would read the old value.
    @Test(arguments: Combination.all)
    func `S068, S072: a child on the main actor that merges shows a save that main has awaited`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("a")
        try await container.saveMain()
        let sheet = main.newChild(name: "sheet")
        sheet.automaticallyMergesChanges = true
        let draft = sheet.object(with: track.objectID)
        let watch = Watch { _ = draft["title"] }
        for (number, title) in ["b", "c", "d"].enumerated() {
            track["title"] = .string(title)
            try await container.saveMain()
            #expect(draft["title"] == .string(title))
            // The job that comes later must not notify again: a second notice would be counted by the next round.
            #expect(watch.count == number + 1)
        }
        try await sheet.save()
    }

    /// Catches: the old value in a child that shares the executor of a background context.
    @Test(arguments: StoreKind.allCases)
    func `S068, S072: a child on its parent's executor that merges shows a save that the parent has awaited`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.newBackgroundContext()
        let id = try await worker.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        let titles = try await worker.perform { _, context in
            let scratch = context.newChild(name: "scratch")
            defer { withExtendedLifetime(scratch) {} }
            scratch.automaticallyMergesChanges = true
            let copy = scratch.object(with: id)
            var read = [copy["title"]]
            for title in ["b", "c"] {
                context.object(with: id)["title"] = .string(title)
                try await context.save()
                read.append(copy["title"])
            }
            return read
        }
        #expect(titles == [.string("a"), .string("b"), .string("c")])
    }
}
