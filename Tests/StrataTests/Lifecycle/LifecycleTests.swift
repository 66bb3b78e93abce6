import Strata
import Synchronization
import Testing

/// The hooks that were called, by the title of the song, because tests run in parallel.
private enum Calls {
    private static let made = Mutex<[String: [String]]>([:])

    static func note(_ call: String, of title: String) { made.withLock { $0[title, default: []].append(call) } }

    static func of(_ title: String) -> [String] { made.withLock { $0[title] ?? [] } }
}

// Sources/Strata/Macros.swift
@Model final class Choir {
    var name: String
    @Relationship(deleteRule: .nullify, inverse: \Melody.band) var songs: [Melody]
}

@Model final class Melody {
    var title: String
    var plays = 0
    @Transient var isPlaying = false
    @Relationship var band: Choir?
}
// end

extension Melody: ManagedObjectLifecycle {
    struct Unplayable: Error {}

    func awakeFromInsert() { Calls.note("awakeFromInsert", of: title) }
    func awakeFromFetch() {
        Calls.note("awakeFromFetch", of: title)
        isPlaying = true
        plays = 7
    }
    func didSave() { Calls.note("didSave", of: title) }
    func prepareForDeletion() { Calls.note("prepareForDeletion with \(band?.name ?? "no band")", of: title) }

    func willSave() {
        Calls.note("willSave", of: title)
        if plays == 1 { plays = 2 }
    }

    func validateForInsert() throws { if plays < 0 { throw Unplayable() } }
    func validateForUpdate() throws { if plays < -1 { throw Unplayable() } }
}

@Model private final class Invoice {
    var saves = 0
    @Relationship(deleteRule: .nullify, inverse: \InvoiceLine.invoice) var lines: [InvoiceLine]
}

@Model private final class InvoiceLine {
    @Relationship var invoice: Invoice?
}

extension Invoice: ManagedObjectLifecycle {
    func didSave() { if saves == 0 { saves = 1 } }
    func prepareForDeletion() { for line in lines { managedObject.managedObjectContext?.delete(line) } }
}

extension InvoiceLine: ManagedObjectLifecycle {
    func prepareForDeletion() {
        if let invoice, invoice.lines.count == 1 { managedObject.managedObjectContext?.delete(invoice) }
    }
}

@Model private final class Recital {
    var title: String
    @Relationship(.ordered, inverse: \Etude.recitals) var etudes: [Etude]
}

@Model private final class Etude {
    var title: String
    @Relationship var recitals: [Recital]
}

extension Recital: ManagedObjectLifecycle {
    func willSave() { Calls.note("willSave", of: title) }
    func didSave() { Calls.note("didSave", of: title) }
}

@Suite struct LifecycleTests {
    private func container(_ stack: ContextStack) async throws -> PersistentContainer {
        try await PersistentContainer(for: Choir.self, Melody.self, store: .memory, stack: stack)
    }

    @Test(arguments: ContextStack.allCases)
    func S040_awakeFromInsertRunsOnceInAnObjectsLife(_ stack: ContextStack) async throws {
        let container = try await container(stack)
        let title = "S040 \(stack)"
        let worker = await container.newBackgroundContext()
        await worker.perform { context in context.insert(Melody(title: title, band: nil)) }
        try await worker.save(through: .store)
        let titles = try await MainActor.run { () throws in try container.mainContext.fetch(FetchRequest<Melody>()).map(\.title) }
        #expect(titles == [title])
        #expect(Calls.of(title).filter { $0 == "awakeFromInsert" }.count == 1)
    }

    @Test func S040_anObjectInsertedByNameAwakesToo() async throws {
        let container = try await container(.siblings)
        await container.coordinator.newBackgroundContext().perform { context in _ = context.insert("Melody") }
        // Its title is empty at that time, as in no other test.
        #expect(Calls.of("") == ["awakeFromInsert"])
    }

    @Test func S021_awakeFromFetchRunsOnceAndMakesNothingDirty() async throws {
        let container = try await container(.siblings)
        let writer = container.coordinator.newBackgroundContext()
        await writer.perform { context in context.insert(Melody(title: "S021", band: nil)) }
        try await writer.save()
        let reader = container.coordinator.newBackgroundContext()
        try await reader.perform { context throws in
            let song = try #require(try context.fetch(FetchRequest<Melody>()).first)
            #expect(song.title == "S021")
            #expect(song.plays == 0 && song.isPlaying)
            #expect(!context.hasChanges)
        }
        #expect(Calls.of("S021").filter { $0 == "awakeFromFetch" }.count == 1)
    }

    @Test func S042_anObjectStillHasItsRelationshipsWhenItPreparesForItsDeletion() async throws {
        let container = try await container(.siblings)
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in
            let song = Melody(title: "S042", band: Choir(name: "The Band", songs: []))
            context.insert(song)
            context.delete(song)
        }
        #expect(Calls.of("S042").contains("prepareForDeletion with The Band"))
    }

    @Test func S060_willSaveRunsUntilNothingChangesThenDidSave() async throws {
        let container = try await container(.siblings)
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in context.insert(Melody(title: "S060", plays: 1, band: nil)) }
        try await context.save()
        #expect(Calls.of("S060").drop { $0 == "awakeFromInsert" } == ["willSave", "willSave", "didSave"])
        let plays = try await context.perform { context throws in try context.fetch(FetchRequest<Melody>()).map(\.plays) }
        #expect(plays == [2])
    }

    /// Catches: a hook that runs once per layer.
    @Test func `S060: didSave runs once per save, also of an object that was changed in two layers`() async throws {
        let context = try await container(.siblings).coordinator.newBackgroundContext()
        let child = await context.perform { context in
            let song = Melody(title: "S060 twice", band: nil)
            context.insert(song)
            let gone = Melody(title: "S060 gone", band: nil)
            context.insert(gone)
            // A child reads the insertion, which is then no longer changed in place.
            let child = context.newBackgroundChild()
            song.plays = 5
            context.delete(gone)
            return child
        }
        try await context.save()
        #expect(Calls.of("S060 twice").filter { $0 == "didSave" }.count == 1)
        #expect(!Calls.of("S060 gone").contains("didSave"))
        withExtendedLifetime(child) {}
    }

    /// Catches: an object without a row in the save, for which `willSave` is called and `didSave` is not.
    @Test func `S060: didSave is called for an object of which only the members or the order of a list are saved`() async throws {
        let context = try await PersistentContainer(for: Recital.self, Etude.self, store: .memory).coordinator
            .newBackgroundContext()
        await context.perform { context in
            context.insert(Recital(title: "S060 list", etudes: [Etude(title: "a", recitals: [])]))
            context.insert(Etude(title: "b", recitals: []))
        }
        try await context.save()
        try await context.perform { context throws in
            let recital = try #require(try context.fetch(FetchRequest<Recital>()).first)
            let etudes = try context.fetch(FetchRequest<Etude>(sortBy: [.init(\.title)]))
            recital.etudes.append(etudes[1])
        }
        try await context.save()
        try await context.perform { context throws in
            let recital = try #require(try context.fetch(FetchRequest<Recital>()).first)
            recital.etudes.reverse()
            #expect(recital.etudes.map(\.title) == ["b", "a"])
        }
        try await context.save()
        let expected = Array(repeating: ["willSave", "didSave"], count: 3).flatMap { $0 }
        #expect(Calls.of("S060 list") == expected)
    }

    /// Catches: an object that is released with the change that its own hook has made.
    @Test func `S006: an object that its didSave changes stays in memory`() async throws {
        let context = try await PersistentContainer(for: Invoice.self, InvoiceLine.self, store: .memory).coordinator
            .newBackgroundContext()
        await context.perform { $0.insert(Invoice(lines: [])) }
        try await context.save()
        try await context.perform { context throws in
            #expect(context.updatedObjects.map { $0["saves"] } == [1])
            #expect(try context.fetch(FetchRequest<Invoice>()).first?.managedObject === context.updatedObjects.first)
        }
    }

    /// Catches: hooks that call each other until the stack overflows.
    @Test func `S042: hooks of a deletion may delete each other's objects`() async throws {
        let context = try await PersistentContainer(for: Invoice.self, InvoiceLine.self, store: .memory).coordinator
            .newBackgroundContext()
        await context.perform { $0.insert(Invoice(lines: [InvoiceLine(invoice: nil)])) }
        try await context.save()
        try await context.perform { context throws in
            let invoice = try #require(try context.fetch(FetchRequest<Invoice>()).first)
            context.delete(invoice)
            #expect(context.deletedObjects.count == 2)
        }
        try await context.save()
    }

    /// Returns a context that records changes, with a saved melody of five plays.
    private func contextWithUndo(_ container: PersistentContainer) async throws -> BackgroundContext {
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in
            context.undoHistory = UndoHistory()
            context.insert(Melody(title: "S162", plays: 5, band: nil))
        }
        try await context.save()
        return context
    }

    @Test func `S162: changes of willSave are undone with the group that the save completes`() async throws {
        let container = try await container(.siblings)
        let context = try await contextWithUndo(container)
        try await context.perform { try $0.fetch(FetchRequest<Melody>())[0].plays = 1 }
        try await context.save()
        try await context.perform { context in
            let song = try context.fetch(FetchRequest<Melody>())[0]
            #expect(song.plays == 2, "willSave has changed it")
            try context.undoHistory?.undo()
            #expect(song.plays == 5)
        }
    }

    /// Catches: a group without changes, to which later names and the changes of hooks belong.
    @Test @MainActor func `S162: a group without changes does not part a save's hooks from their group`() async throws {
        let container = try await container(.siblings)
        let main = container.mainContext
        let song = Melody(title: "S162", plays: 5, band: nil)
        main.insert(song)
        try await main.save()
        let history = UndoHistory()
        main.undoHistory = history
        history.group("Play") { song.plays = 1 }
        main.processPendingChanges()
        history.group("Drag") {}
        #expect(history.undoActionName == "Play")
        try await main.save()
        #expect(song.plays == 2, "willSave has changed it")
        try history.undo()
        #expect(song.plays == 5)
    }

    /// Catches: a hook whose changes drop what was undone before the save.
    @Test func `S162: after a save whose willSave changes an object, what was undone before can be redone`() async throws {
        let container = try await container(.siblings)
        let context = try await contextWithUndo(container)
        try await context.perform { try $0.fetch(FetchRequest<Melody>())[0].plays = 1 }
        try await context.perform { try $0.fetch(FetchRequest<Melody>())[0].title = "new" }
        _ = try await context.perform { try $0.undoHistory?.undo() }
        try await context.save()
        try await context.perform { context in
            let song = try context.fetch(FetchRequest<Melody>())[0]
            #expect(song.title == "S162" && song.plays == 2, "willSave has changed it")
            try context.undoHistory?.redo()
            #expect(song.title == "new" && song.plays == 2)
            for _ in 0..<2 { try context.undoHistory?.undo() }
            #expect(song.title == "S162" && song.plays == 5)
        }
    }

    /// Catches: a change of a hook that is a conflict for an older group, because only the newest group knows of it.
    @Test func `S162: what willSave changes after an undo is no conflict for older groups`() async throws {
        let container = try await container(.siblings)
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in
            context.undoHistory = UndoHistory()
            context.insert(Melody(title: "older", plays: 1, band: nil))
        }
        await context.perform { $0.insert(Melody(title: "newer", plays: 5, band: nil)) }
        try await context.perform { context in
            try context.fetch(FetchRequest<Melody>()).first { $0.plays == 5 }?.title = "renamed"
        }
        _ = try await context.perform { try $0.undoHistory?.undo() }
        try await context.save()
        try await context.perform { context in
            #expect(try context.fetch(FetchRequest<Melody>()).map(\.plays).sorted() == [2, 5], "willSave has changed one")
            for _ in 0..<2 { try context.undoHistory?.undo() }
            #expect(try context.fetch(FetchRequest<Melody>()).isEmpty)
            for _ in 0..<3 { try context.undoHistory?.redo() }
            let all = try context.fetch(FetchRequest<Melody>(sortBy: [.init(\.plays)]))
            #expect(all.map(\.title) == ["older", "renamed"] && all.map(\.plays) == [2, 5])
        }
    }

    @Test func S061_everyObjectThatRefusesIsInOneError() async throws {
        let container = try await container(.siblings)
        let context = container.coordinator.newBackgroundContext()
        let wrong = await context.perform { context in
            let songs = (0..<3).map { Melody(title: "S061 \($0)", plays: $0 - 2, band: nil) }
            for song in songs { context.insert(song) }
            return songs.filter { $0.plays < 0 }.map(\.id)
        }
        let error = await #expect(throws: SaveError.self) { try await context.save() }
        guard case .validation(let failures) = error else {
            Issue.record("not a validation error: \(String(describing: error))")
            return
        }
        #expect(Set(failures.map(\.0)) == Set(wrong))
        #expect(await context.perform { $0.hasChanges }, "S062")
    }

    @Test func S033_aTransientPropertyIsNoChange() async throws {
        let container = try await container(.siblings)
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in context.insert(Melody(title: "S033", band: nil)) }
        try await context.save()
        try await context.perform { context in
            let melody = try #require(try context.fetch(FetchRequest<Melody>()).first)
            melody.isPlaying = true
            #expect(melody.managedObject.changedValues.isEmpty)
            #expect(!context.hasChanges)
        }
    }
}
