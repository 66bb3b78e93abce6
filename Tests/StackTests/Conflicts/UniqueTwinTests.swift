import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Several objects of one save with the same unique values.
@Suite struct UniqueTwinTests {
    /// The stacks whose root is the main context or the tested context, so that the test can set its policy.
    private static let combinations = Combination.all.filter { $0.stack != .hybrid && $0.stack != .masterMainWorker }

    static let model: Model = {
        let item = EntityDescription(
            name: "Item",
            properties: [
                .attribute(.init(name: "code", type: .int64, isOptional: true, index: .unique)),
                .attribute(.init(name: "city", type: .string, isOptional: true)),
                .attribute(.init(name: "street", type: .string, isOptional: true)),
                .attribute(.init(name: "note", type: .string)),
                .relationship(.init(name: "label", destination: "Label", inverse: "item", cardinality: .toOne)),
                .relationship(.init(name: "parts", destination: "Part", inverse: "item", cardinality: .toMany)),
                .relationship(.init(name: "tags", destination: "Tag", inverse: "items", cardinality: .toMany)),
            ], indexes: [.unique("city", "street")])
        let label = EntityDescription(
            name: "Label",
            properties: [
                .attribute(.init(name: "text", type: .string)),
                .relationship(.init(name: "item", destination: "Item", inverse: "label", cardinality: .toOne)),
            ])
        let part = EntityDescription(
            name: "Part",
            properties: [
                .attribute(.init(name: "name", type: .string)),
                .relationship(.init(name: "item", destination: "Item", inverse: "parts", cardinality: .toOne)),
            ])
        let tag = EntityDescription(
            name: "Tag",
            properties: [
                .attribute(.init(name: "name", type: .string)),
                .relationship(.init(name: "items", destination: "Item", inverse: "tags", cardinality: .toMany)),
            ])
        do { return try Model([item, label, part, tag]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    /// Creates an item with a label, a part and a tag, all named after its note.
    @discardableResult
    private static func item(_ context: ManagedObjectContext, _ code: Int?, _ note: String) -> ManagedObject {
        let item = context.insert("Item")
        item["code"] = code.storeValue
        item["note"] = .string(note)
        let (label, part, tag) = (context.insert("Label"), context.insert("Part"), context.insert("Tag"))
        label["text"] = .string(note)
        part["name"] = .string(note)
        tag["name"] = .string(note)
        item.setRelatedObject("label", to: label)
        item.add(part, to: "parts")
        item.add(tag, to: "tags")
        return item
    }

    /// Returns each item as text: its note, and the names of what it is related to.
    private static func texts(_ context: ManagedObjectContext) throws -> [String] {
        try context.fetch(EntityFetchRequest("Item", sortBy: [AttributeSort("note")])).map { item in
            func names(_ objects: [ManagedObject], _ name: String) -> String {
                objects.compactMap { if case .string(let text) = $0[name] { text } else { nil } }.sorted().joined()
            }
            let label = item.relatedObject("label")
            #expect(label == nil || label?.relatedObject("item") === item)
            return names([item], "note") + "(" + names([label].compactMap(\.self), "text") + "|"
                + names(item.relatedObjects("parts"), "name") + "|" + names(item.relatedObjects("tags"), "name") + ")"
        }
    }

    /// Runs `body`, saves under a policy, and returns the items that the context and a new context show.
    private static func saved(
        _ combination: Combination, _ policy: MergePolicy, stored: [(Int, String)] = [],
        _ body: @escaping @Sendable (ManagedObjectContext) throws -> Void
    ) async throws -> [String] {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: model)
        let context = await container.newBackgroundContext()
        await context.perform { context in for (code, note) in stored { item(context, code, note) } }
        try await context.save(through: .store)
        // The policy of the root counts.
        let name = "\(policy)"
        await MainActor.run { container.mainContext.mergePolicy = policy }
        try await context.perform { context throws in
            context.mergePolicy = policy
            try body(context)
        }
        try await context.save(through: .store)
        let seen = try await context.perform { try texts($0) }
        let stored = try await container.coordinator.newBackgroundContext().perform { try texts($0) }
        #expect(seen == stored, "\(name)")
        #expect(try await container.coordinator.verify().isEmpty)
        return stored
    }

    @Test(arguments: combinations)
    func `S176: the first of several new objects lives with the values of the last`(_ combination: Combination) async throws {
        for policy in [MergePolicy.objectTrump, .overwrite] {
            let saved = try await Self.saved(combination, policy) { context in
                for note in ["a", "b", "c"] { Self.item(context, 1, note) }
                Self.item(context, 2, "d")
            }
            // Parts and tags that refer to a merged object follow it. One label wins, and the others have no item.
            #expect(saved == ["c(c|abc|abc)", "d(d|d|d)"])
        }
    }

    @Test(arguments: combinations)
    func `S176: policies that prefer the store keep the first of several new objects`(_ combination: Combination) async throws {
        for policy in [MergePolicy.storeTrump, .rollback] {
            let saved = try await Self.saved(combination, policy) { context in
                for note in ["a", "b", "c"] { Self.item(context, 1, note) }
            }
            #expect(saved == ["a(a|abc|abc)"])
        }
    }

    /// Catches: a stored object that gets the partner of a new object which the policy has dropped.
    @Test(arguments: Combination.rooted)
    func `S108, S176: a stored object keeps its partner if a new object with its value is dropped`(
        _ combination: Combination
    ) async throws {
        for policy in [MergePolicy.storeTrump, .rollback] {
            let saved = try await Self.saved(combination, policy, stored: [(1, "s")]) { context in
                Self.item(context, 1, "a")
            }
            #expect(saved == ["s(s|as|as)"])
        }
    }

    /// Catches: the partner of a twin in the middle, which is left to the object that has the values of the last one.
    @Test(arguments: Combination.rooted)
    func `S176: the last of three new objects decides that there is no partner`(_ combination: Combination) async throws {
        for policy in [MergePolicy.objectTrump, .overwrite] {
            let saved = try await Self.saved(combination, policy) { context in
                Self.item(context, 1, "a")
                Self.item(context, 1, "b")
                Self.item(context, 1, "c").setRelatedObject("label", to: nil)
            }
            #expect(saved == ["c(|abc|abc)"])
        }
    }

    @Test(arguments: Combination.rooted)
    func `S176: objects shown by a context agree with the store after the save`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Self.model)
        let context = await container.newBackgroundContext()
        let ids = await context.perform { context in
            context.mergePolicy = .objectTrump
            context.retainsRegisteredObjects = true
            return [Self.item(context, 1, "a").objectID, Self.item(context, 1, "b").objectID]
        }
        try await context.save()
        try await context.perform { context throws in
            #expect(try context.existingObject(with: ids[0])["note"] == .string("b"))
            #expect(context.object(with: ids[1]).isDeleted)
        }
    }

    @Test(arguments: Combination.rooted)
    func `S176: twins that also duplicate a row of the store are merged into the row`(_ combination: Combination) async throws {
        let merged = try await Self.saved(combination, .objectTrump, stored: [(1, "s")]) { context in
            Self.item(context, 1, "a")
            Self.item(context, 1, "b")
        }
        #expect(merged == ["b(b|abs|abs)"])
    }

    @Test(arguments: Combination.rooted)
    func `S176: an updated object lives, whether it comes before or after the new one`(_ combination: Combination) async throws {
        for policy in [MergePolicy.objectTrump, .storeTrump] {
            let saved = try await Self.saved(combination, policy, stored: [(1, "s"), (2, "t")]) { context in
                let all = try context.fetch(EntityFetchRequest("Item", sortBy: [AttributeSort("code")]))
                Self.item(context, 7, "a")
                Self.item(context, 7, "b")
                all[1]["code"] = .int(7)
            }
            if case .objectTrump = policy {
                #expect(saved == ["b(b|abt|abt)", "s(s|s|s)"])
            } else {
                #expect(saved == ["s(s|s|s)", "t(t|abt|abt)"])
            }
        }
    }

    @Test(arguments: Combination.rooted)
    func `S176: of two updated objects neither can give way to the other`(_ combination: Combination) async throws {
        @Sendable func update(_ context: ManagedObjectContext) throws {
            for item in try context.fetch(EntityFetchRequest("Item")) { item["code"] = .int(7) }
        }
        await #expect(throws: SaveError.self) {
            _ = try await Self.saved(combination, .objectTrump, stored: [(1, "s"), (2, "t")], update)
        }
        // The second keeps the value that it had.
        let saved = try await Self.saved(combination, .storeTrump, stored: [(1, "s"), (2, "t")], update)
        #expect(saved == ["s(s|s|s)", "t(t|t|t)"])
    }

    @Test(arguments: Combination.rooted)
    func `S176: constraints over several properties are settled too`(_ combination: Combination) async throws {
        let saved = try await Self.saved(combination, .overwrite) { context in
            for (note, street) in [("a", "Gata"), ("b", "Vei"), ("c", "Gata"), ("d", "Gata")] {
                let item = Self.item(context, nil, note)
                item["city"] = .string("Oslo")
                item["street"] = .string(street)
            }
            for note in ["n", "m"] { Self.item(context, nil, note)["city"] = .string("Oslo") }
        }
        #expect(saved == ["b(b|b|b)", "d(d|acd|acd)", "m(m|m|m)", "n(n|n|n)"])
    }

    /// Catches: an object that is dropped in favour of one which is dropped itself, by another constraint.
    @Test(arguments: Combination.rooted)
    func `S176: objects are settled in their order, whichever of two constraints they break`(
        _ combination: Combination
    ) async throws {
        for policy in [MergePolicy.storeTrump, .rollback, .objectTrump, .overwrite] {
            let saved = try await Self.saved(combination, policy) { context in
                for (code, note) in [(nil, "a"), (1, "b")] as [(Int?, String)] {
                    Self.insert(context, note, code: code, street: "Gata")
                }
                Self.item(context, 1, "c")
            }
            switch policy {
            case .storeTrump, .rollback: #expect(saved == ["a(a|ab|ab)", "c(c|c|c)"])
            // The first has the code of the second before the third comes.
            default: #expect(saved == ["c(c|abc|abc)"])
            }
        }
    }

    /// Catches: two objects that become one, because a third has a value of each.
    @Test(arguments: Combination.rooted)
    func `S176: a new object with values of two others is dropped, or the save throws`(_ combination: Combination) async throws {
        @Sendable func change(_ context: ManagedObjectContext) {
            Self.item(context, 1, "a")
            Self.insert(context, "b", street: "Gata")
            Self.insert(context, "c", code: 1, street: "Gata")
        }
        for policy in [MergePolicy.storeTrump, .rollback] {
            let saved = try await Self.saved(combination, policy, change)
            #expect(saved == ["a(a|ac|ac)", "b(b|b|b)"])
        }
        for policy in [MergePolicy.objectTrump, .overwrite] {
            let error = await #expect(throws: SaveError.self) { _ = try await Self.saved(combination, policy, change) }
            #expect(error?.code == .uniqueConstraint)
        }
    }

    @Test(arguments: Combination.rooted)
    func `S176: twins by both constraints are settled as twins by one`(_ combination: Combination) async throws {
        for policy in [MergePolicy.storeTrump, .objectTrump] {
            let saved = try await Self.saved(combination, policy, stored: [(1, "s")]) { context in
                let stored = try context.fetch(EntityFetchRequest("Item"))[0]
                (stored["city"], stored["street"]) = (.string("Oslo"), .string("Gata"))
                for note in ["a", "b"] { Self.insert(context, note, code: 1, street: "Gata") }
                for note in ["c", "d"] { Self.insert(context, note, code: 2, street: "Vei") }
            }
            if case .storeTrump = policy {
                #expect(saved == ["c(c|cd|cd)", "s(s|abs|abs)"])
            } else {
                #expect(saved == ["b(b|abs|abs)", "d(d|cd|cd)"])
            }
        }
    }

    /// Catches: a partner that is left without its object, because the save changes another property of that object.
    @Test(arguments: Combination.rooted, [false, true])
    func `S108, S176: a stored object without a partner gets that of the dropped one`(
        _ combination: Combination, changes: Bool
    ) async throws {
        for policy in [MergePolicy.storeTrump, .rollback] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack, model: Self.model)
            let context = await container.newBackgroundContext()
            await context.perform { context in
                let stored = context.insert("Item")
                (stored["code"], stored["note"]) = (.int(1), .string("s"))
            }
            try await context.save(through: .store)
            try await context.perform { context throws in
                context.mergePolicy = policy
                let stored = try context.fetch(EntityFetchRequest("Item"))[0]
                if changes { stored["note"] = .string("t") }
                Self.item(context, 1, "a")
            }
            try await context.save(through: .store)
            let saved = try await container.coordinator.newBackgroundContext().perform { try Self.texts($0) }
            #expect(saved == [changes ? "t(a|a|a)" : "s(a|a|a)"])
            #expect(try await container.coordinator.verify().isEmpty)
        }
    }

    /// Catches: a save that throws because a value which a later object keeps was settled for an earlier one.
    @Test(arguments: Combination.rooted)
    func `S104, S176: a change gives way to an object whose own change is dropped`(_ combination: Combination) async throws {
        for policy in [MergePolicy.storeTrump, .rollback] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack, model: Self.model)
            let context = await container.newBackgroundContext()
            await context.perform { context in
                Self.insert(context, "t", code: 1, street: "Gata")
                Self.item(context, 2, "u")
                Self.item(context, 3, "s")
            }
            try await context.save(through: .store)
            try await context.perform { context throws in
                context.mergePolicy = policy
                for item in try context.fetch(EntityFetchRequest("Item")) {
                    if item["note"] == .string("t") { item["code"] = .int(2) }
                    if item["note"] == .string("u") { item["code"] = .int(3) }
                }
                Self.insert(context, "n", street: "Gata")
            }
            try await context.save(through: .store)
            let (saved, codes) = try await container.coordinator.newBackgroundContext().perform { context in
                let sorted = EntityFetchRequest("Item", sortBy: [AttributeSort("note")])
                return (try Self.texts(context), try context.fetch(sorted).map { $0["code"] })
            }
            #expect(saved == ["s(s|s|s)", "t(t|nt|nt)", "u(u|u|u)"])
            #expect(codes == [.int(3), .int(1), .int(2)])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S176: twins of two children are settled when their parent saves`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(model: Self.model)
        let parent = await container.newBackgroundContext()
        await parent.perform { $0.mergePolicy = .objectTrump }
        for note in ["a", "b"] {
            let child = await parent.newBackgroundChild()
            await child.perform { _ = Self.item($0, 1, note) }
            try await child.save()
        }
        try await parent.save()
        #expect(try await container.newBackgroundContext().perform { try Self.texts($0) } == ["b(b|ab|ab)"])
    }

    @Test(arguments: StoreKind.allCases)
    func `S176: the error shows both objects and the value in words`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        let keys = await context.perform { context in
            [Self.item(context, 41, "a").objectID.key, Self.item(context, 41, "b").objectID.key]
        }
        let error = try #require(await #expect(throws: SaveError.self) { try await context.save() })
        let text = "Item.code must be unique, but Item(id: \(keys[0])) and Item(id: \(keys[1])) have code: 41"
        #expect(error.message.hasPrefix(text), "\(error)")
        #expect(error.objectIDs.map(\.key) == keys)
        // Nothing was written, and the context still has both.
        #expect(await context.perform { $0.insertedObjects.count } == 8)
        #expect(try await container.newBackgroundContext().perform { try Self.texts($0) }.isEmpty)
    }

    private static func insert(_ context: ManagedObjectContext, _ note: String, code: Int? = nil, street: String) {
        let item = Self.item(context, code, note)
        item["city"] = .string("Oslo")
        item["street"] = .string(street)
    }

    /// Catches: a message that holds the whole of a value, which logs and screens cannot show.
    @Test(arguments: StoreKind.allCases)
    func `S176: the error shortens a long value, of new twins and of a stored object`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await bed.container(model: Self.model)
        let street = String(repeating: "Gata ", count: 400_000)
        let first = await container.newBackgroundContext()
        await first.perform { Self.insert($0, "a", street: street) }
        try await first.save()
        for notes in [["b"], ["c", "d"]] {
            // The twins do not conflict with the stored object.
            let value = notes.count == 1 ? street : street + "twins"
            let context = await container.newBackgroundContext()
            await context.perform { context in for note in notes { Self.insert(context, note, street: value) } }
            let error = try #require(await #expect(throws: SaveError.self) { try await context.save() })
            let count = max(error.message.utf8.count, "\(error)".utf8.count)
            #expect(error.code == .uniqueConstraint && count < 1_000)
            let (message, bytes) = (error.message.prefix(1_000), value.utf8.count)
            #expect(message.contains("\(bytes) bytes") && message.contains("city: \"Oslo\""))
        }
    }
}
