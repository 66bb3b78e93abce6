import Foundation
import Strata
import TestSupport
import Testing

private enum LevelsBefore {
    enum Level: Int, Codable { case low, medium, high }

    @Model final class Errand {
        @Attribute(.unique) var name: String
        var level: Level?
        var rank = Level.medium
        var reading = Reading(value: 0)

        init(name: String) { self.name = name }
    }

    struct Reading: CodableAttribute { var value: Double }
}

private enum LevelsAfter {
    enum Level: Int, Codable { case low, medium }

    @Model final class Errand {
        @Attribute(.unique) var name: String
        var level: Level?
        var rank = Level.medium
        var reading = Reading(unit: "", value: 0)

        init(name: String) { self.name = name }
    }

    struct Reading: CodableAttribute {
        var unit: String
        var value: Double
    }
}

private struct ImportedErrand: Codable {
    var name: String
    var level: Int
}

/// Stored values that the type of their property cannot decode.
@Suite @MainActor struct UndecodableTests {
    private nonisolated static let place = TripAfter.Place(name: "Oslo", zip: "0150")
    private nonisolated static let properties = ["places", "home", "base", "mood", "nextMood"]

    /// Writes a trip with the former types, and opens the store with the present ones.
    private func use(
        _ store: TestStore, _ body: @MainActor (PersistentContainer, TripAfter.Trip, [Value]) async throws -> Void
    ) async throws {
        try await store.use { description in
            // Kept until the end for the sake of the store in memory.
            let before = try await PersistentContainer(model: Model(TripBefore.Trip.self), store: description)
            let old = TripBefore.Place(name: "Bergen")
            let trip = TripBefore.Trip(
                name: "north", places: [old, old], home: old, base: old, mood: .wild, nextMood: .wild)
            before.mainContext.insert(trip)
            try await before.mainContext.save()
            let container = try await PersistentContainer(model: Model(TripAfter.Trip.self), store: description)
            let found = try #require(try container.mainContext.fetch(FetchRequest<TripAfter.Trip>()).first)
            try await body(container, found, Self.properties.map { found.managedObject[$0] })
            withExtendedLifetime(before) {}
        }
    }

    private func stored(_ container: PersistentContainer) async throws -> [Value] {
        try await container.newBatchOperationContext().perform { context throws in
            let trip = try context.fetch(FetchRequest<TripAfter.Trip>()).first
            return Self.properties.compactMap { trip?.managedObject[$0] }
        }
    }

    private func refusal(_ body: () async throws -> Void) async -> [UndecodableAttribute] {
        do {
            try await body()
            return []
        } catch SaveError.validation(let errors) {
            return errors.compactMap { $0.1 as? UndecodableAttribute }
        } catch {
            Issue.record(error)
            return []
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: a read of an undecodable value gives the fallback, and a save of other properties keeps the value`(
        _ store: TestStore
    ) async throws {
        try await use(store) { container, trip, bytes in
            #expect(trip.places == [] && trip.home == nil && trip.mood == .calm && trip.nextMood == nil)
            #expect(trip.managedObject["home"] == .data(Data(#"{"name":"Bergen"}"#.utf8)) && trip.managedObject["mood"] == "wild")
            trip.name = "south"
            try await container.mainContext.save()
            #expect(try await stored(container) == bytes)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: assigning a property whose stored value cannot be decoded fails the save`(_ store: TestStore) async throws {
        try await use(store) { container, trip, bytes in
            let context = container.mainContext
            trip.places.append(Self.place)
            trip.home = Self.place
            trip.base = Self.place
            trip.mood = .calm
            trip.nextMood = .calm
            let errors = await refusal { try await context.save() }
            #expect(errors.map(\.property) == ["base", "home", "mood", "nextMood", "places"])
            #expect(errors.allSatisfy { $0.objectID == trip.persistentModelID && $0.entity == "Trip" })
            #expect(
                errors.map(\.reason) == [
                    "Place (zip: the stored value does not have it)", "Optional<Place> (zip: the stored value does not have it)",
                    "Mood (\"wild\" is no value of it)", "Mood (\"wild\" is no value of it)",
                    "Array<Place> (0.zip: the stored value does not have it)",
                ])
            #expect("\(errors[0])".contains("Trip(id: \(trip.persistentModelID.key)).base"))
            #expect(trip.validationErrors().count == 5)
            #expect(try await stored(container) == bytes)
            context.rollback()
            #expect(trip.validationErrors().isEmpty && !context.hasChanges)
            trip.name = "south"
            try await context.save()
            #expect(try await stored(container) == bytes)
        }
    }

    /// Catches: a refused assignment that is forgotten when it is undone, so that a redo writes the fallback over the stored value.
    @Test(arguments: TestStore.allCases)
    func `S179: an assignment that was undone is refused again after a redo`(_ store: TestStore) async throws {
        try await use(store) { container, trip, bytes in
            let context = container.mainContext
            let history = UndoHistory()
            context.undoHistory = history
            trip.places = []
            #expect(await refusal { try await context.save() }.map(\.property) == ["places"])
            try history.undo()
            try await context.save()
            try history.redo()
            #expect(trip.managedObject["places"] != bytes[0])
            #expect(await refusal { try await context.save() }.map(\.property) == ["places"])
            #expect(try await stored(container) == bytes)
            trip.allowOverwriting(\.places)
            try await context.save()
            let after = try await stored(container)
            #expect(after.dropFirst() == bytes.dropFirst() && after[0] != bytes[0])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: a child's save refuses to destroy an undecodable value`(_ store: TestStore) async throws {
        try await use(store) { container, trip, bytes in
            let child = container.mainContext.newChild()
            let edited = child.object(TripAfter.Trip.self, with: trip.managedObject.objectID)
            edited.places.append(Self.place)
            #expect(await refusal { try await child.save() }.map(\.property) == ["places"])
            #expect(await refusal { try await child.save(through: .store) }.map(\.property) == ["places"])
            #expect(try await stored(container) == bytes)
            edited.allowOverwriting(\.places)
            try await child.save(through: .store)
            #expect(trip.places == [Self.place])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: a permitted assignment replaces an undecodable value, and deleting its object needs nothing`(_ store: TestStore)
        async throws
    {
        try await use(store) { container, trip, bytes in
            let context = container.mainContext
            trip.home = Self.place
            #expect(await refusal { try await context.save() }.map(\.property) == ["home"])
            trip.allowOverwriting(\.home)
            trip.home = nil
            trip.allowOverwriting(\.mood)
            trip.mood = .calm
            trip.allowOverwriting(\.base)
            trip.base = Self.place
            // The unsaved value can be decoded, so that it is a property like any other.
            trip.base.zip = "5003"
            try await context.save()
            let now = try await stored(container)
            #expect(now[1] == .null && now[3] == "calm" && now[0] == bytes[0] && now[4] == bytes[4])
            #expect(trip.base == TripAfter.Place(name: "Oslo", zip: "5003"))
            trip.base.zip = "0001"
            try await context.save()
            trip.mood = .calm
            trip.places.append(Self.place)
            context.delete(trip)
            try await context.save()
            #expect(try await stored(container).isEmpty)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: a permission to overwrite holds until a save has saved something`(_ store: TestStore) async throws {
        try await use(store) { container, trip, _ in
            let context = container.mainContext
            trip.allowOverwriting(\.places)
            _ = await context.previewSave()
            try await context.save()
            trip.places = []
            try await context.save()
            #expect(trip.places.isEmpty)
        }
    }

    /// Catches: a permission that the save of a child ends, which has no assignment of its parent.
    @Test(arguments: TestStore.allCases)
    func `S179: a permission to overwrite outlives the save of a child`(_ store: TestStore) async throws {
        try await use(store) { container, trip, _ in
            let context = container.mainContext
            trip.allowOverwriting(\.places)
            let child = context.newChild()
            child.object(TripAfter.Trip.self, with: trip.managedObject.objectID).name = "south"
            try await child.save(through: .store)
            trip.places = []
            try await context.save()
            #expect(trip.places.isEmpty)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: an assignment is no loss once another context has replaced the value`(_ store: TestStore) async throws {
        try await use(store) { container, trip, _ in
            let context = container.mainContext
            trip.home = Self.place
            let other = container.newBatchOperationContext()
            try await other.perform { context throws in
                for trip in try context.fetch(FetchRequest<TripAfter.Trip>()) {
                    trip.allowOverwriting(\.home)
                    trip.home = nil
                }
            }
            try await other.save()
            context.mergePolicy = .objectTrump
            context.refreshAllObjects()
            try await context.save()
            #expect(trip.home == Self.place)
        }
    }

    @Test func `S179: an example of a permitted assignment`() async throws {
        try await use(.memory) { container, trip, _ in
            // Sources/ObjectGraph/Objects/ManagedObject+Undecodable.swift
            trip.allowOverwriting(\.places)
            trip.places = []
            // end
            try await container.mainContext.save()
            #expect(trip.managedObject["places"] == .data(Data("[]".utf8)))
        }
    }

    @Test func `S179: a required value without a fallback stops the program with the reason`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await UndecodableTests().use(.memory) { _, trip, _ in print(trip.base) }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("base: its stored value does not decode as Place (zip: the stored value does not have it)"))
        #expect(text.contains("managedObject[\"base\"]"))
    }

    /// Catches: a refusal that outlives the rollback of the assignment which it is for.
    @Test(arguments: TestStore.allCases)
    func `S179: after a rollback a value that is set by name, or permitted in a child, replaces the stored one`(
        _ store: TestStore
    ) async throws {
        try await use(store) { container, trip, _ in
            let context = container.mainContext
            trip.places = []
            #expect(await refusal { try await context.save() }.count == 1)
            context.rollback()
            trip.managedObject["places"] = .data(Data(#"[{"name":"Bergen","zip":"5003"}]"#.utf8))
            try await context.save()
            trip.home = Self.place
            #expect(await refusal { try await context.save() }.count == 1)
            context.rollback()
            let child = context.newChild()
            let edited = child.object(TripAfter.Trip.self, with: trip.managedObject.objectID)
            edited.allowOverwriting(\.home)
            edited.home = Self.place
            try await child.save()
            try await context.save()
            #expect(trip.places.map(\.name) == ["Bergen"] && trip.home == Self.place)
        }
    }

    /// Catches: a refusal that outlives the assignment which it is for, because the assignment was dropped and may be redone.
    @Test(arguments: TestStore.allCases)
    func `S179: a value that is set by name replaces the stored one after an assignment was dropped`(_ store: TestStore)
        async throws
    {
        try await use(store) { container, trip, _ in
            let context = container.mainContext
            trip.places = []
            #expect(await refusal { try await context.save() }.count == 1)
            context.refresh(trip.managedObject, mergeChanges: false)
            trip.managedObject["places"] = .data(Data(#"[{"name":"Bergen","zip":"5003"}]"#.utf8))
            try await context.save()
            #expect(trip.places.map(\.name) == ["Bergen"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S179: an imported value replaces the stored one after an assignment was dropped`(_ store: TestStore) async throws {
        try await store.use { description in
            let before = try await PersistentContainer(model: Model(LevelsBefore.Errand.self), store: description)
            let old = LevelsBefore.Errand(name: "a")
            old.level = .high
            before.mainContext.insert(old)
            try await before.mainContext.save()
            let after = try await PersistentContainer(model: Model(LevelsAfter.Errand.self), store: description)
            let context = after.mainContext
            let errand = try #require(try context.fetch(FetchRequest<LevelsAfter.Errand>()).first)
            errand.level = .low
            #expect(await refusal { try await context.save() }.map(\.property) == ["level"])
            context.refresh(errand.managedObject, mergeChanges: false)
            try context.upsert(contentsOf: [ImportedErrand(name: "a", level: 1)], unique: \LevelsAfter.Errand.name)
            try await context.save()
            #expect(errand.level == .medium)
            withExtendedLifetime(before) {}
        }
    }

    /// Catches: an undo that returns to a refused assignment, which the next save writes over the stored value.
    @Test(arguments: TestStore.allCases)
    func `S179: an assignment is refused again after the undo of a value that was set by name`(_ store: TestStore) async throws {
        try await use(store) { container, trip, bytes in
            let (context, history) = (container.mainContext, UndoHistory())
            context.undoHistory = history
            trip.places = []
            context.processPendingChanges()
            trip.managedObject["places"] = .data(Data(#"[{"name":"Bergen","zip":"5003"}]"#.utf8))
            context.processPendingChanges()
            try history.undo()
            #expect(await refusal { try await context.save() }.map(\.property) == ["places"])
            #expect(try await stored(container) == bytes)
            try history.redo()
            // Made from a value that the program has seen.
            trip.places.append(Self.place)
            try await context.save()
            #expect(trip.places.map(\.name) == ["Bergen", "Oslo"])
        }
    }

    /// Catches: an object that counts as new after the undo of its deletion, so that an assignment destroys its values.
    @Test(arguments: TestStore.allCases)
    func `S179, S162: an object that an undo has brought back keeps its undecodable values`(_ store: TestStore) async throws {
        try await use(store) { container, trip, bytes in
            let (context, history) = (container.mainContext, UndoHistory())
            context.undoHistory = history
            context.delete(trip)
            try await context.save()
            try history.undo()
            #expect(trip.managedObject["places"] == bytes[0])
            trip.places.append(Self.place)
            #expect(await refusal { try await context.save() }.map(\.property) == ["places"])
            trip.allowOverwriting(\.places)
            try await context.save()
            #expect(trip.places == [Self.place])
        }
    }

    /// Catches: zero, which is a case of most enums, in place of a value that cannot be decoded.
    @Test(arguments: TestStore.allCases)
    func `S179: an undecodable value is nil or the initial value, and not the case of zero`(_ store: TestStore) async throws {
        try await store.use { description in
            let before = try await PersistentContainer(model: Model(LevelsBefore.Errand.self), store: description)
            let old = LevelsBefore.Errand(name: "a")
            (old.level, old.rank, old.reading.value) = (.high, .high, .infinity)
            before.mainContext.insert(old)
            try await before.mainContext.save()
            let after = try await PersistentContainer(model: Model(LevelsAfter.Errand.self), store: description)
            let errand = try #require(try after.mainContext.fetch(FetchRequest<LevelsAfter.Errand>()).first)
            #expect(errand.level == nil && errand.rank == .medium)
            // An infinite number is no reason, because values are stored so.
            errand.reading = LevelsAfter.Reading(unit: "K", value: 1)
            let errors = await refusal { try await after.mainContext.save() }
            #expect(errors.map { $0.reason.contains("unit") } == [true], "\(errors)")
            withExtendedLifetime(before) {}
        }
    }
}
