import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The printed text of values of public types.
@Suite struct DescriptionTests {
    private static let model: Model = {
        let album = EntityDescription(
            name: "Album",
            properties: [
                .attribute(.init(name: "title", type: .string)),
                .relationship(.init(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
            ])
        let track = EntityDescription(
            name: "Track",
            properties: [
                .attribute(.init(name: "title", type: .string, index: .unique)),
                .attribute(.init(name: "plays", type: .int64)),
                .attribute(.init(name: "added", type: .date, isOptional: true)),
                .attribute(.init(name: "sound", type: .data, isOptional: true)),
                .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
            ])
        do { return try Model([album, track]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    private static let date = Date(timeIntervalSinceReferenceDate: 778_000_000)

    /// Checks the rules for all texts: content, and no placeholder, address or name of a module.
    private static func check(_ value: Any, dumped isDumped: Bool = false, _ location: SourceLocation = #_sourceLocation) {
        var texts = ["\(value)", String(reflecting: value), "\([value])"]
        if isDumped {
            texts.append("")
            dump(value, to: &texts[3])
        }
        for text in texts {
            #expect(!text.isEmpty, sourceLocation: location)
            for wrong in [
                "0x", "(unknown", "ObjectGraph.", "StoreInterface.", "StackTests.", "LMDBStore.", "Swift.", "Foundation.",
            ] {
                #expect(!text.contains(wrong), "\(wrong) in: \(text.prefix(200))", sourceLocation: location)
            }
        }
    }

    @Test(arguments: Combination.all)
    func `S172: an object prints its entity, id and values`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Self.model)
        let context = await container.newBackgroundContext()
        let (date, model) = (Self.date, Self.model)
        let key = await context.perform { context in
            let album = context.insert("Album")
            let track = context.insert("Track")
            track["title"] = .string("Baguette")
            track["added"] = .double(date.timeIntervalSinceReferenceDate)
            track["sound"] = .data(Data(count: 70_000))
            track.setRelatedObject("album", to: album)
            return track.objectID.key
        }
        let text =
            "Track(id: \(key), title: \"Baguette\", plays: 0, added: 2025-08-27T15:06:40Z, sound: data of 70000 bytes, album: "
        let print = { @Sendable (context: ManagedObjectContext) throws -> String in
            let id = ObjectID(store: context.storeIdentity, entity: 1, key: key)
            let object = context.object(with: id)
            Self.check(object, dumped: true)
            return "\(object)"
        }
        #expect(try await context.perform(print).hasPrefix(text))
        try await context.save(through: .store)
        #expect(try await context.perform(print).hasPrefix(text))
        let reader = await container.newBackgroundContext()
        try await reader.perform { context throws in
            // A fault prints its record, stays a fault, and does not read the objects that it is related to.
            #expect(try print(context).hasPrefix(text))
            let track = context.object(with: ObjectID(store: context.storeIdentity, entity: 1, key: key))
            #expect(track.isFault && context.registeredObjects.count <= 2)
            let rows = try context.fetch(
                EntityValueRequest("Track", fetching: [.property("title"), .property("added"), .property("album")]))
            #expect("\(rows[0])".hasPrefix("(title: \"Baguette\", added: 2025-08-27T15:06:40Z, album: id "))
            rows.forEach { Self.check($0, dumped: true) }
            Self.check(context)
            Self.check(try context.fetchInBatches(EntityFetchRequest("Track")))
            context.delete(track)
            #expect("\(track)" == "Track(id: \(key), deleted)")
            context.rollback()
            let gone = context.insert("Track")
            let number = gone.objectID.key
            context.rollback()
            #expect("\(gone)" == "Object(id: \(number), no longer in a context)")
            Self.check(gone, dumped: true)
            // An object that was never stored.
            #expect(
                "\(context.object(with: ObjectID(store: context.storeIdentity, entity: 1, key: ObjectKey(1 << 40))))".hasSuffix(
                    "deleted)"))
        }
        Self.check(model)
        model.entities.forEach { entity in
            Self.check(entity)
            entity.attributes.forEach { Self.check($0) }
        }
        Self.check(context)
    }

    @Test(arguments: StoreKind.allCases)
    func `S172: a model prints as its object does, before and after its insertion`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(model: Model(Guest.self, Party.self, Badge.self))
        let context = await container.newBackgroundContext()
        await context.perform { context in
            let party = Party(title: "p")
            let guest = Guest(party: party, name: "a")
            #expect("\(guest)" == "Guest(not inserted, name: \"a\", party: Party(not inserted), badge: nil)")
            Self.check(guest, dumped: true)
            context.insert(party)
            #expect("\(party)" == "Party(id: \(party.managedObject.objectID.key), title: \"p\")")
            #expect(
                "\([guest])"
                    == "[Guest(id: \(guest.managedObject.objectID.key), name: \"a\", party: Party(id: \(party.managedObject.objectID.key)), badge: nil)]"
            )
            Self.check(guest, dumped: true)
            Self.check(guest.managedObject.objectID)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S172: conflicts, notices, changes and the history print names and values`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(model: Self.model)
        let context = container.coordinator.newBackgroundContext(name: "first")
        let counter = Counter()
        let key = try await context.perform { context throws in
            context.transactionAuthor = "Ann"
            _ = context.addObserver { counter.note($0) }
            let track = context.insert("Track")
            track["title"] = .string("a")
            return track.objectID.key
        }
        try await context.save()
        let other = container.coordinator.newBackgroundContext()
        try await other.perform { context throws in
            let track = try #require(try context.fetch(EntityFetchRequest("Track")).first)
            track["title"] = .string("c")
            track["added"] = .double(Self.date.timeIntervalSinceReferenceDate)
        }
        try await context.perform { context throws in
            let track = try #require(try context.fetch(EntityFetchRequest("Track")).first)
            track["title"] = .string("b")
        }
        try await other.save()
        let preview = await context.previewSave()
        Self.check(preview)
        let error = try #require(await #expect(throws: SaveError.self) { try await context.save() })
        Self.check(error)
        guard case .conflicts(let conflicts) = error else {
            Issue.record("another error: \(error)")
            return
        }
        conflicts.forEach { Self.check($0) }
        #expect("\(error)".contains("Track(id: \(key)): changed here and in the store"))
        #expect("\(error)".contains("title: was \"a\", here \"b\", in the store \"c\""))
        #expect("\(error)".contains("in the store 2025-08-27T15:06:40Z"))
        #expect(!counter.all.isEmpty)
        for notice in counter.all {
            Self.check(notice)
            Self.check(notice.changes)
            #expect("\(notice)".contains("first"))
        }
        let history = try await container.coordinator.history()
        #expect(history.contains { "\($0)".contains("by Ann") && "\($0)".contains("inserted Track(id: \(key))") })
        for transaction in history {
            Self.check(transaction)
            Self.check(transaction.token)
            Self.check(transaction.changeSet.metadata)
            transaction.changes.forEach { Self.check($0) }
        }
        Self.check(container.coordinator.newBackgroundContext())
        Self.check(await context.perform { $0.snapshot })
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S172: a conflict with a deletion prints the values of the side that has the object`(
        _ store: StoreKind, _ isDeletedHere: Bool
    ) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(model: Self.model)
        let context = container.coordinator.newBackgroundContext()
        let id = try await context.perform(andSave: .durable) { context in
            let track = context.insert("Track")
            track["title"] = .string("a")
            return track.objectID
        }
        let other = container.coordinator.newBackgroundContext()
        let (changing, deleting) = isDeletedHere ? (other, context) : (context, other)
        await changing.perform { context in
            let track = context.object(with: id)
            track["title"] = .string("b")
            track["added"] = .double(Self.date.timeIntervalSinceReferenceDate)
        }
        await deleting.perform { context in context.delete(context.object(with: id)) }
        try await other.save()
        let error = try #require(await #expect(throws: SaveError.self) { try await context.save() })
        guard case .conflicts(let conflicts) = error else {
            Issue.record("another error: \(error)")
            return
        }
        conflicts.forEach { Self.check($0) }
        let changes = isDeletedHere ? "deleted here, changed in the store" : "changed here, deleted in the store"
        #expect("\(error)".contains("Track(id: \(id.key)): \(changes) ("))
        let side = isDeletedHere ? "in the store" : "here"
        #expect("\(error)".contains("title: was \"a\", \(side) \"b\""))
        #expect("\(error)".contains(", \(side) 2025-08-27T15:06:40Z"))
        // The value of the other side is missing.
        #expect(!"\(error)".contains("here deleted") && !"\(error)".contains("in the store deleted"))
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func `S172: live results, collections and containers print what they have`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(.siblings, model: Self.model)
        let context = container.mainContext
        let results = try Results(EntityFetchRequest("Track"), context: context)
        Self.check(results, dumped: true)
        #expect("\(results)" == "no objects")
        let track = context.insert("Track")
        track["title"] = "Baguette"
        context.processPendingChanges()
        #expect("\(results)" == "1 object: \(track.objectID.key)")
        let drafts = try container.collection("drafts", of: String.self)
        let entries = try KeyedResults(drafts.all)
        #expect("\(entries)" == "drafts: no entries")
        drafts["spring"] = "a"
        context.processPendingChanges()
        #expect("\(entries)" == "drafts: 1 entry, \"spring\"")
        for number in 0..<9 { drafts["\(number)"] = "b" }
        context.processPendingChanges()
        #expect("\(entries)".hasPrefix("drafts: 10 entries, \"0\", \"1\", ") && "\(entries)".hasSuffix("\"7\", …"))
        #expect("\(drafts)" == "collection drafts: values of type String under keys of type String")
        #expect("\(drafts.all)" == "a range of \(drafts)")
        #expect("\(container)".hasSuffix(", siblings"))
        let values: [Any] = [results, entries, drafts, drafts.all, container, container.coordinator, context]
        for value in values { Self.check(value, dumped: true) }
        try await container.close()
    }

    @Test func `S172: requests, conditions and sorts print what they select`() {
        let title = "a"
        let typed = FetchRequest<Errand>(
            where: #Predicate { $0.days + 1 > 3 && $0.title == title }, matching: .not(.isNil("note")),
            sortBy: [.init(\.title, .descending), .init(\.owner, by: \.name)], limit: 20, offset: 4)
        #expect(
            "\(typed)"
                == "Errand where (days + 1) > 3 && title == \"a\" && !(note == nil) sorted by title descending, owner.name, at most 20, after 4"
        )
        let named = EntityFetchRequest(
            "Track",
            matching: .all([
                .any([.compare("plays", .greater, to: 3), .string("title", .hasPrefix, pattern: "b", sensitivity: .insensitive)]),
                .related("playlists", .any, where: .equal("name", "p")), .isIn("plays", [1, 2]),
            ]), sortBy: [.init("title", comparing: .caseInsensitive)])
        #expect(
            "\(named)"
                == "Track where (plays > 3 || title begins with \"b\" ignoring case) && any of playlists where name == \"p\" "
                + "&& plays is in [1, 2] sorted by title ignoring case")
        let values = ValueRequest<Errand>([.property(\.kind), .count], groupBy: [.property(\.kind)])
        #expect("\(values)" == "kind, count of Errand, grouped by kind")
        for value in [typed, named, values, named.condition, typed.sortBy[0]] as [Any] { Self.check(value) }
        #expect("\(FetchRequest<Errand>())" == "Errand")
    }

    @Test func `S172: the parts of a predicate print in words`() {
        let date = Date(timeIntervalSinceReferenceDate: 0)
        let ids = [1, 2]
        let name = "n"
        let predicates: [(Predicate<Errand>, String)] = [
            (#Predicate { $0.title.contains("x") || $0.days <= 3 }, "title contains \"x\" || days <= 3"),
            (#Predicate { !($0.isDone && $0.days > 3) }, "!(isDone && days > 3)"),
            (#Predicate { $0.owner?.name == name }, "owner.name == \"n\""),
            (#Predicate { $0.note == nil }, "note == nil"),
            (#Predicate { $0.due < date }, "due < 2001-01-01T00:00:00Z"),
            (#Predicate { ids.contains($0.days) }, "days is in [1, 2]"),
            (#Predicate { (1...5).contains($0.days) }, "days is in 1...5"),
            (
                #Predicate { $0.title.starts(with: "a") && ($0.note ?? "").isEmpty },
                "title begins with \"a\" && (note ?? \"\") is empty"
            ),
        ]
        for (predicate, text) in predicates {
            let request = FetchRequest<Errand>(where: predicate)
            #expect("\(request)" == "Errand where \(text)")
            Self.check(request)
        }
        let both = FetchRequest<Errand>(where: predicates[0].0, matching: .isNil("note"))
        #expect("\(both)" == "Errand where (title contains \"x\" || days <= 3) && note == nil")
        let people = FetchRequest<Person>(
            where: #Predicate { person in person.errands.contains { $0.days > 3 && $0.title == person.name } })
        #expect("\(people)" == "Person where any of errands where days > 3 && title == Person.name")
        Self.check(people)
        // As long a chain as a program may build.
        let first = PredicateExpressions.Value(true)
        let long = Predicate<Errand> { _ in PredicateExpressions.build_Conjunction(lhs: first, rhs: first) }
        #expect("\(FetchRequest<Errand>(where: long))" == "Errand where true && true")
    }

    @Test func `S172: the computed parts of a predicate print in words`() {
        let name = "n"
        let same = ComparisonResult.orderedSame
        let predicates: [(Predicate<Errand>, String)] = [
            (#Predicate { $0.days / 2 == 1 || -$0.days < 0 }, "(days / 2) == 1 || -days < 0"),
            (#Predicate { $0.days % 2 == 0 }, "(days % 2) == 0"),
            (#Predicate { $0.place.names.max() == name }, "maximum of place.names == \"n\""),
            (#Predicate { $0.place.names.min() == name }, "minimum of place.names == \"n\""),
            (#Predicate { $0.place.names[0] == name }, "place.names[0] == \"n\""),
            (#Predicate { $0.place.names[0..<2].contains(name) }, "\"n\" is in place.names[0..<2]"),
            (#Predicate { $0.place.scores[name] == 1 }, "place.scores[\"n\"] == 1"),
            (#Predicate { $0.place.scores[name, default: 1] > 0 }, "place.scores[\"n\", default: 1] > 0"),
            (#Predicate { $0.title.caseInsensitiveCompare(name) == same }, "(order of title and \"n\" ignoring case) == 0"),
            (#Predicate { $0.title.localizedCompare(name) == same }, "(order of title and \"n\" as people sort) == 0"),
        ]
        for (predicate, text) in predicates { #expect("\(FetchRequest<Errand>(where: predicate))" == "Errand where \(text)") }
        let search = FetchRequest<Errand>(where: #Predicate { $0.title.contains(/a+/) })
        #expect("\(search)".hasPrefix("Errand where title contains /"))
        let outings = FetchRequest<Outing>(where: #Predicate { $0 is PaidOuting || ($0 as? PaidOuting)?.price ?? 0 > 3 })
        #expect("\(outings)" == "Outing where Outing is PaidOuting || ((Outing as? PaidOuting).price ?? 0) > 3")
    }

    @Test(arguments: StoreKind.allCases)
    func `S172: a unique date that occurs twice prints as a date`(_ store: StoreKind) async throws {
        let day = EntityDescription(
            name: "UniqueDay", properties: [.attribute(.init(name: "date", type: .date, index: .unique))])
        let bed = try TestBed(store)
        let container = try await bed.container(model: Model([day]))
        let context = await container.newBackgroundContext()
        let keys = await context.perform { context in
            (0..<2).map { _ in
                let day = context.insert("UniqueDay")
                day["date"] = .double(Self.date.timeIntervalSinceReferenceDate)
                return day.objectID.key
            }
        }
        let error = await #expect(throws: SaveError.self) { try await context.save() }
        let text = try #require(error.map { "\($0)" })
        #expect(text.contains("UniqueDay.date must be unique") && text.contains("have date: 2025-08-27T15:06:40Z"))
        for key in keys { #expect(text.contains("UniqueDay(id: \(key))")) }
    }

    @Test func `S172: values, differences and errors print their content`() {
        let id = ObjectID(store: StoreIdentity(UUID()), entity: 1, key: 5)
        let values: [Value] = [
            .null, .bool(true), .int(-1), .uint(.max), .double(0.5), .string("a\"b"),
            .string(String(repeating: "a", count: 1000)),
            .data(Data(count: 5)), .uuid(UUID()), .reference(7),
        ]
        values.forEach { Self.check($0, dumped: true) }
        #expect(
            "\(ResultDifference(deletions: [2], insertions: [0, 5], moves: [.init(from: 3, to: 1)]))"
                == "deleted at 2, inserted at 0, 5, moved 3 to 1")
        Self.check(ResultDifference())
        #expect("\(ChangeSet())" == "unsaved changes: no changes")
        let errors: [SaveError] = [
            .uniqueConstraint(entity: "Track", properties: ["title"], values: [.string("a")], objects: [id, id]),
            .deleteDenied(object: id, relationship: "tracks", blocking: [id]),
            .danglingReference(object: id, property: "a", target: id),
            .willSaveDoesNotSettle(rounds: 3), .parentGone(context: "c"), .validation([(id, ContextError.objectNotFound(id))]),
        ]
        errors.forEach { Self.check($0) }
    }

    @Test(arguments: [0.5, -1e20, .infinity, .nan, 1e11, -63_114_076_800])
    func `S172: every date prints, with fractions of seconds if it has any`(_ seconds: Double) {
        let text = Value.double(seconds).text(as: .date)
        #expect(seconds != 0.5 || text == "2001-01-01T00:00:00.500Z")
        #expect(!text.isEmpty)
    }

    @Test(arguments: [
        (0.1 as Float, "0.1"), (-0.0, "-0.0"), (16_777_216, "16777216.0"), (.infinity, "inf"), (.nan, "nan"),
    ])
    func `S172: a float prints with its own digits`(_ number: Float, _ text: String) {
        #expect(Value.double(Double(number)).text(as: .float) == text)
        #expect("\(Value.double(Double(number)).content(as: .float))" == text)
    }

    /// Catches: digits that are read as another float.
    @Test func `S172: the digits of a float are read as the same float`() {
        var random = SeededGenerator()
        for _ in 0..<2000 {
            let number = Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))
            guard number.isFinite else { continue }
            let text = Value.double(Double(number)).text(as: .float)
            #expect(Double(text).map(Float.init)?.bitPattern == number.bitPattern, "\(text)")
        }
    }
}
