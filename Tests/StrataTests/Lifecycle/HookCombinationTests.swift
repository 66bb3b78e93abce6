import Strata
import Synchronization
import TestSupport
import Testing

@Model final class Ledger {
    var title: String
    @Relationship(deleteRule: .nullify, inverse: \LedgerEntry.ledger) var entries: [LedgerEntry]
}

@Model final class LedgerEntry {
    var text: String
    @Relationship var ledger: Ledger?
}

extension Ledger: ManagedObjectLifecycle {
    func prepareForDeletion() { _ = LedgerEntry(text: "deleted \(title)", ledger: self) }
}

@Model private final class Meter { var value = 0 }

extension Meter: ManagedObjectLifecycle { func didSave() { if value == 3 { value = 4 } } }

@Model private final class Gauge {
    var value = 0
    var note = ""
}

extension Gauge: ManagedObjectLifecycle { func didSave() { if value == 3 { value = 4 } } }

@Model private final class Ballad {
    var title: String
    @Transient var isPlaying = false
}

extension Ballad: ManagedObjectLifecycle { func awakeFromFetch() { isPlaying = true } }

/// Hooks that change objects while something else happens to them.
@Suite struct HookCombinationTests {
    /// Catches: a relationship that the hook sets, and that the delete rules do not see.
    @Test(arguments: ContextStack.allCases)
    func `S042, S175: an object that prepareForDeletion relates loses its reference by the delete rule`(
        _ stack: ContextStack
    ) async throws {
        let container = try await PersistentContainer(for: Ledger.self, LedgerEntry.self, store: .memory, stack: stack)
        let context = await container.makeBackgroundContext()
        await context.perform { $0.insert(Ledger(title: "a", entries: [])) }
        try await context.save(through: .store)
        try await context.perform { context in
            context.delete(try #require(try context.fetch(FetchRequest<Ledger>()).first))
        }
        try await context.save(through: .store)
        let left = try await context.perform { try $0.fetch(FetchRequest<LedgerEntry>()).map { $0.ledger == nil } }
        #expect(left == [true])
    }

    /// Catches: changes after a save that undo does not know, and that are in conflict with it.
    @Test func `S162: what didSave changes is undone with the group that was saved`() async throws {
        let container = try await PersistentContainer(for: Meter.self, store: .memory)
        let context = container.coordinator.newBackgroundContext()
        await context.perform { $0.insert(Meter()) }
        try await context.save()
        try await context.perform { context in
            context.undoHistory = UndoHistory()
            try context.fetch(FetchRequest<Meter>())[0].value = 3
        }
        try await context.save()
        try await context.perform { context in
            let meter = try context.fetch(FetchRequest<Meter>())[0]
            #expect(meter.value == 4)
            try context.undoHistory?.undo()
            #expect(meter.value == 0)
            try context.undoHistory?.redo()
            #expect(meter.value == 4)
        }
    }

    /// Catches: transient properties that are never set in the parent of the context that inserted the object.
    @MainActor @Test func `S021: an object that a child has inserted awakes from its fetch in the parent`() async throws {
        let container = try await PersistentContainer(for: Ballad.self, store: .memory, stack: .nested)
        let child = container.newBackgroundContext()
        await child.perform { context in
            let song = Ballad(title: "a")
            context.insert(song)
            #expect(!song.isPlaying)
        }
        try await child.save()
        let song = try #require(try container.mainContext.fetch(FetchRequest<Ballad>()).first)
        #expect(song.title == "a")
        #expect(song.isPlaying)
    }

    /// Catches: a group of a child's save that is recorded after the hook's changes, and is in conflict with them.
    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker])
    func `S162: what didSave changes after a child's save is undone with that save`(_ stack: ContextStack) async throws {
        let container = try await PersistentContainer(for: Gauge.self, store: .memory, stack: stack)
        let main = container.mainContext
        let gauge = Gauge()
        main.insert(gauge)
        try await main.save(through: .store)
        let worker = container.newBackgroundContext()
        try await worker.perform { try $0.fetch(FetchRequest<Gauge>())[0].value = 3 }
        main.undoHistory = UndoHistory()
        // With an unsaved change of main, `didSave` is called on main's object.
        gauge.note = "a"
        try await worker.save(through: .store)
        #expect(gauge.value == 4)
        try main.undoHistory?.undo()
        #expect(gauge.value == 0 && gauge.note == "a")
        try main.undoHistory?.undo()
        #expect(gauge.note == "")
    }
}
