import Observation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Observers that roll back or reset a context inside the notification of changes that the context is about to show.
@Suite @MainActor struct RollingBackObserverTests {
    /// Runs `note` inside the first notification of what `read` reads.
    private static func onChange(of read: () -> Void, _ note: @escaping @MainActor () -> Void) {
        withObservationTracking {
            read()
        } onChange: {
            MainActor.assumeIsolated { note() }
        }
    }

    /// Returns a child of main that has edited an unsaved track of main.
    private static func editor(of draft: ManagedObject, in main: ManagedObjectContext) async -> BackgroundContext {
        let id = draft.objectID
        let child = main.newBackgroundChild(name: "child")
        await child.perform { $0.object(with: id)["title"] = .string("edited") }
        return child
    }

    /// Catches: a push that was prepared before its observers rolled back, and updates an object that is gone.
    @Test(arguments: Combination.all)
    func `S056, S146: an observer that rolls back while a child's save is shown leaves no change of the gone object`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let draft = main.makeTrack("draft")
        let child = await Self.editor(of: draft, in: main)
        let notified = Flag()
        Self.onChange(of: { _ = draft["title"] }) {
            notified.set()
            main.rollback()
        }
        try await child.save()
        #expect(notified.wait(atMost: .zero))
        #expect(!main.hasChanges && main.updatedObjects.isEmpty && main.insertedObjects.isEmpty)
        #expect(try main.trackTitles() == [])
        main.makeTrack("later")
        try await container.saveMain()
        #expect(try await container.read { try $0.trackTitles() } == ["later"])
        try await container.close()
    }

    /// Catches: a push into a context that was reset meanwhile, which keeps changes of objects from before.
    @Test(arguments: Combination.all)
    func `S078, S146: a child's save throws if an observer resets the parent while it is shown`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let draft = main.makeTrack("draft")
        let child = await Self.editor(of: draft, in: main)
        Self.onChange(of: { _ = draft["title"] }) { main.reset() }
        do {
            try await child.save()
            Issue.record("the save has reached a parent that was reset")
        } catch SaveError.parentGone {
            #expect(await child.perform { $0.hasChanges })
        }
        #expect(!main.hasChanges)
        #expect(try main.trackTitles() == [])
        try await container.close()
    }

    /// Catches: an undo that was planned before its observers rolled back, and updates an object that is gone.
    @Test(arguments: Combination.all)
    func `S146, S162: an observer that rolls back while an undo is shown leaves no change of the gone object`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let history = UndoHistory()
        main.undoHistory = history
        let draft = main.makeTrack("draft")
        main.processPendingChanges()
        draft["title"] = .string("edited")
        main.processPendingChanges()
        let notified = Flag()
        Self.onChange(of: { _ = draft["title"] }) {
            notified.set()
            main.rollback()
        }
        // Whether the undo throws, because the object is gone, is left open.
        _ = try? history.undo()
        #expect(notified.wait(atMost: .zero))
        #expect(!main.hasChanges && main.updatedObjects.isEmpty && main.insertedObjects.isEmpty)
        #expect(try main.trackTitles() == [])
        try await container.close()
    }

    /// Catches: an observer that is notified of an object that must not be read any more, and ends the program by reading it.
    @Test(arguments: Combination.all)
    func `S049, S146: observers are not notified after another one has reset the context`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let draft = main.makeTrack("draft")
        let id = draft.objectID
        let child = main.newBackgroundChild(name: "child")
        await child.perform { context in
            let track = context.object(with: id)
            track["title"] = .string("edited")
            track["plays"] = .int(3)
        }
        var notified = 0
        for property in ["title", "plays"] {
            Self.onChange(of: { _ = draft[property] }) {
                notified += 1
                if notified == 1 { main.reset() } else { _ = draft[property] }
            }
        }
        await #expect(throws: SaveError.self) { try await child.save() }
        #expect(notified == 1)
        try await container.close()
    }

    private final class Token {}

    /// Catches: an observer that keeps its object, and is kept by it, although it is not notified any more.
    @Test(arguments: Combination.all)
    func `S049, S146: a reset releases the observers of objects`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        weak var token: Token?
        do {
            let (draft, captured) = (main.makeTrack("draft"), Token())
            token = captured
            Self.onChange(of: { _ = draft["title"] }) { withExtendedLifetime((draft, captured, main)) {} }
        }
        #expect(token != nil)
        main.reset()
        #expect(token == nil)
        try await container.close()
    }

    /// Catches: a save through a parent that was reset before the child's changes were taken.
    @Test(arguments: Combination.all)
    func `S078, S120: a child's save through throws if an observer of will-save resets the parent`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.makeTrack("dropped")
        let child = main.newChild()
        child.makeTrack("y")
        let token = main.observe { if $0.kind == .willSave { main.reset() } }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        #expect(child.hasChanges)
        #expect(try await container.read { try $0.trackTitles() } == [])
        withExtendedLifetime(token) {}
        try await container.close()
    }

    /// Catches: positions of a list that a rollback has dropped, written to members that are back in their former list.
    @Test(arguments: Combination.all)
    func `S046, S048, S146: an observer that rolls back while an order is shown leaves no positions`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let main = container.mainContext
        let old = main.insert("Book")
        old.arrangeChapters(["a", "b", "c"])
        try await container.saveMain()
        let new = main.insert("Book")
        let members = Array(old.relatedObjects("chapters").prefix(2))
        new.setRelatedObjects("chapters", to: members)
        main.processPendingChanges()
        Self.onChange(of: { _ = new.relatedObjects("chapters") }) { main.rollback() }
        new.setRelatedObjects("chapters", to: members.reversed())
        #expect(!main.hasChanges && main.updatedObjects.isEmpty)
        #expect(old.chapterTitles == ["a", "b", "c"])
        try await container.close()
    }
}
