import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Conflicts, merges and the history of keyed collections (S192).
@Suite struct KeyedConflictTests {
    static let policies: [(MergePolicy, String)] = [
        (.error, "error"), (.storeTrump, "theirs"), (.objectTrump, "ours"), (.overwrite, "ours"), (.rollback, "theirs"),
        (.custom { $0.reduce(into: [:]) { $0[$1.objectID] = .objectTrump } }, "ours"),
    ]

    /// The state of a key before two contexts change it.
    enum Start: CaseIterable { case absent, present, removedAndSetAgain }

    private static func set(_ value: String?, _ context: ManagedObjectContext) throws {
        try context.collection("names", of: String.self).setValue(value, forKey: "key")
    }

    private static func shown(_ context: ManagedObjectContext) throws -> [String] {
        try context.collection("names", of: String.self).all.entries().map { "\($0.key)=\($0.value)" }
    }

    @Test(arguments: Combination.rooted, Start.allCases)
    func `S192: two contexts that write one key conflict on its value under each policy`(
        _ combination: Combination, _ start: Start
    ) async throws {
        let bed = try TestBed(combination.store)
        for (policy, expected) in Self.policies {
            let container = try await bed.container(combination.stack)
            try await container.write { try Self.set(start == .absent ? nil : "base", $0) }
            let ours = await container.makeBackgroundContext(name: "ours")
            let theirs = await container.makeBackgroundContext(name: "theirs")
            try await ours.perform { context in
                context.mergePolicy = policy
                try Self.set("ours", context)
                try context.collection("names", of: String.self).setValue("other", forKey: "other")
            }
            if start == .removedAndSetAgain { try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) } }
            try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
            if case .error = policy {
                let error = await #expect(throws: SaveError.self) { try await ours.save() }
                guard case .conflicts(let conflicts) = error else { return _ = Issue.record("\(error as Any)") }
                #expect(conflicts.count == 1)
                #expect(conflicts[0].entityName == "names[\"key\"]")
                #expect(conflicts[0].properties.map(\.name) == ["value"])
                #expect(conflicts[0].properties[0].ours == .data(Data("ours".utf8)))
                #expect(conflicts[0].properties[0].theirs == .data(Data("theirs".utf8)))
                await ours.perform { $0.rollback() }
            } else {
                try await ours.save()
                #expect(try await ours.perform { try Self.shown($0) } == ["key=\(expected)", "other=other"], "\(policy)")
                #expect(try await container.read { try Self.shown($0) } == ["key=\(expected)", "other=other"], "\(policy)")
            }
            #expect(try await container.coordinator.verify().isEmpty)
            _ = try await container.write { try $0.collection("names", of: String.self).all.removeAll() }
            try await container.close()
            try await bed.closed()
        }
    }

    private struct Draft: Codable { var title: String }

    /// Returns the message of a conflict. The values are those that both contexts read, of the context that fails, and of the store.
    private static func message<V: Codable & Sendable>(_ values: [V], _ container: PersistentContainer) async throws -> String {
        try await container.write { try $0.collection("of\(V.self)", of: V.self).setValue(values[0], forKey: "key") }
        let contexts = await [container.makeBackgroundContext(), container.makeBackgroundContext()]
        for (context, value) in zip(contexts, values.dropFirst()) {
            try await context.perform { try $0.collection("of\(V.self)", of: V.self).setValue(value, forKey: "key") }
        }
        try await contexts[1].save()
        let error = await #expect(throws: SaveError.self) { try await contexts[0].save() }
        return error?.message ?? ""
    }

    /// Catches: "was data of 8 bytes, here data of 8 bytes".
    @Test(arguments: Combination.rooted)
    func `S172, S192: a conflict prints the values of a key by their type`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let messages = [
            try await Self.message([1, 2, 3], container), try await Self.message(["a", "b", "c"], container),
            try await Self.message([Draft(title: "a"), Draft(title: "b"), Draft(title: "c")], container),
            try await Self.message([Data([255]), Data([254]), Data([253])], container),
        ]
        let texts = [
            "ofInt[\"key\"]", "value: was 1, here 2, in the store 3", "value: was \"a\", here \"b\", in the store \"c\"",
            "value: was {\"title\":\"a\"}, here {\"title\":\"b\"}, in the store {\"title\":\"c\"}",
            "value: was data of 1 bytes, here data of 1 bytes",
        ]
        for (message, text) in zip([messages[0]] + messages, texts) { #expect(message.contains(text), "\(message)") }
        try await container.close()
    }

    private static func set(score: Int, title: String, _ context: ManagedObjectContext) throws {
        try context.collection("scores", of: Int.self).setValue(score, forKey: "a")
        try context.collection("drafts", of: Draft.self).setValue(Draft(title: title), forKey: "b")
    }

    /// Catches: "strata_keyed_values(id: 3).value was changed since: it is data of 8 bytes instead of data of 8 bytes".
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162, S172, S192: a conflict of an undo names the key, and prints its values by their type`(
        _ kind: StoreKind, _ isByAuthor: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await theirs.perform(andSave: .durable) { try Self.set(score: 1, title: "a", $0) }
        let before = try container.coordinator.snapshot(owner: "before")
        await ours.perform { context in
            context.refreshAllObjects()
            context.transactionAuthor = "ours"
            context.undoHistory = UndoHistory()
        }
        try await ours.perform { try Self.set(score: 2, title: "b", $0) }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        try await theirs.perform(andSave: .durable) { try Self.set(score: 7, title: "c", $0) }
        let conflicts = try await container.conflicts(undoing: ours, since: isByAuthor ? before : nil)
        #expect(Set(conflicts.map(\.entityName)) == ["scores[\"a\"]", "drafts[\"b\"]"])
        #expect(conflicts.map(\.property) == ["value", "value"])
        // The history of saves does not tell which value the author has left.
        let former = isByAuthor ? ["", ""] : [" instead of 2", " instead of {\"title\":\"b\"}"]
        let texts = [
            "it is 7\(former[0]), and would become 1",
            "it is {\"title\":\"c\"}\(former[1]), and would become {\"title\":\"a\"}",
        ]
        for text in texts { #expect(conflicts.contains { $0.description.hasSuffix(text) }, "\(conflicts)") }
        try await container.close()
    }

    private static func setTyped(_ value: Int, _ context: ManagedObjectContext) throws {
        try context.collection("scores", of: Int.self, key: UInt16.self).setValue(value, forKey: 16705)
        try context.collection("log", of: Int.self, key: (String, Int).self).setValue(value, forKey: ("ann", 3))
        try context.collection("blobs", of: Int.self, key: Data.self).setValue(value, forKey: Data("AA".utf8))
    }

    /// Catches: `scores["AA"]`, the bytes of a number shown as text.
    @Test(arguments: StoreKind.allCases)
    func `S162, S172, S192: conflicts name a key by the type of the collection's keys`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await theirs.perform(andSave: .durable) { try Self.setTyped(1, $0) }
        await ours.perform { context in
            context.automaticallyMergesChanges = false
            context.refreshAllObjects()
            context.undoHistory = UndoHistory()
        }
        try await ours.perform { try Self.setTyped(2, $0) }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        try await theirs.perform(andSave: .durable) { try Self.setTyped(7, $0) }
        let names: Set = ["scores[16705]", "log[\"ann\", 3]", "blobs[0x4141]"]
        let undone = try await container.conflicts(undoing: ours, since: nil)
        #expect(Set(undone.map(\.entityName)) == names, "\(undone)")
        try await ours.perform { try Self.setTyped(3, $0) }
        try await theirs.perform(andSave: .durable) { try Self.setTyped(8, $0) }
        let error = await #expect(throws: SaveError.self) { try await ours.save() }
        guard case .conflicts(let conflicts) = error else { return _ = Issue.record("\(error as Any)") }
        #expect(Set(conflicts.map(\.entityName)) == names, "\(conflicts)")
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162, S192: a conflict of an undo names the key that others have removed`(
        _ kind: StoreKind, _ isByAuthor: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
        let before = try container.coordinator.snapshot(owner: "before")
        await ours.perform { context in
            context.refreshAllObjects()
            context.transactionAuthor = "ours"
            context.undoHistory = UndoHistory()
        }
        try await ours.perform { try Self.set("ours", $0) }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) }
        let conflicts = try await container.conflicts(undoing: ours, since: isByAuthor ? before : nil)
        #expect(conflicts.map(\.kind) == [.deleted] && conflicts.map(\.entityName) == ["names[\"key\"]"], "\(conflicts)")
        try await container.close()
    }

    @Test(arguments: Combination.rooted)
    func `S192: contexts that write other keys do not conflict, also in a new collection`(_ combination: Combination) async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let workers = await [
            container.makeBackgroundContext(), container.makeBackgroundContext(), container.makeBackgroundContext(),
        ]
        for (number, worker) in workers.enumerated() {
            try await worker.perform { try $0.collection("names", of: Int.self).setValue(number, forKey: "\(number)") }
        }
        for worker in workers { try await worker.save() }
        #expect(try await container.read { try $0.collection("names", of: Int.self).all.keys() } == ["0", "1", "2"])
        // The third has recorded other types.
        let late = await container.makeBackgroundContext()
        let first = await container.makeBackgroundContext()
        try await late.perform { try $0.collection("new", of: Int.self).setValue(1, forKey: "a") }
        try await first.perform(andSave: .durable) { try $0.collection("new", of: Double.self).setValue(1, forKey: "b") }
        let error = await #expect(throws: CollectionError.self) { try await late.save() }
        #expect(error?.description.contains("Double") == true)
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @MainActor @Test(arguments: Combination.all)
    func `S192: children of one parent that insert one key leave one value, the one saved last`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        for through in [false, true] {
            let first = main.newBackgroundChild(name: "first")
            let second = main.newBackgroundChild(name: "second")
            try Self.set("main", main)
            try await first.perform { try Self.set("first", $0) }
            try await second.perform { try Self.set("second", $0) }
            for child in [first, second] {
                if through { try await child.save(through: .store) } else { try await child.save() }
            }
            #expect(try Self.shown(main) == ["key=second"])
            // The object of the child's key is not the parent's.
            try await first.perform { try Self.set("again", $0) }
            if through { try await first.save(through: .store) } else { try await first.save() }
            #expect(try Self.shown(main) == ["key=again"])
            try await first.perform { try Self.set(nil, $0) }
            try await first.save()
            #expect(try Self.shown(main) == [])
            try await container.saveMain()
            #expect(try await container.coordinator.verify().isEmpty)
            #expect(try await container.read { try Self.shown($0) } == [])
        }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S192: a merge shows the values of another context, and notices and the history list them`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let names = try container.collection("names", of: String.self)
        names["key"] = "one"
        try await container.saveMain()
        var notices = 0
        let token = container.mainContext.addObserver { if $0.kind == .objectsDidChange { notices += 1 } }
        try await container.write { try Self.set("two", $0) }
        try await until("main shows the other context's value") { await MainActor.run { names["key"] == "two" } }
        #expect(notices > 0)
        withExtendedLifetime(token) {}
        let changes = try await container.coordinator.history().flatMap(\.changes)
        #expect(changes.filter { $0.kind == .insert }.count == 2)
        #expect(changes.last?.updatedProperties.contains("value") == true)
    }

    @MainActor @Test(arguments: Combination.all)
    func `S192: the history names the collections and keys of removed entries`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let names = try container.collection("names", of: String.self)
        for key in ["a", "b", "c"] { names[key] = key }
        try await container.saveMain()
        let main = container.mainContext
        let collection = try #require(try main.storedCollections().first)
        let keys = try main.storedEntries(of: collection).map(\.key)
        names["a"] = nil
        try await container.saveMain()
        try names.removeAll()
        try await container.saveMain()
        let changes = try await container.coordinator.history().flatMap(\.changes)
        #expect(changes.compactMap { $0.removedEntry?.key } == keys)
        #expect(changes.compactMap { $0.removedEntry?.collection } == ["names", "names", "names"])
        #expect(changes.last?.description.hasSuffix(": an entry of names") == true)
    }

    /// The next step of a context that has inserted a key and merged another context's insertion of the key.
    enum Then: CaseIterable { case save, remove, rollback, undo, undoAndRedo }

    @Test(arguments: Combination.all, Then.allCases)
    func `S192: a key that two contexts have inserted is one entry after a merge`(
        _ combination: Combination, _ then: Then
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let ours = await container.makeBackgroundContext(name: "ours")
        let theirs = await container.makeBackgroundContext(name: "theirs")
        try await ours.perform { context in
            context.undoHistory = UndoHistory()
            try Self.set("ours", context)
            try context.collection("names", of: String.self).setValue("other", forKey: "other")
        }
        try await theirs.perform { try Self.set("theirs", $0) }
        try await theirs.save(through: .store)
        if combination.stack == .siblings || combination.stack == .split {
            await ours.perform { $0.refreshAllObjects() }
        } else {
            try await ours.refreshFromParent()
        }
        let (count, shown) = try await ours.perform { (try $0.collection("names", of: String.self).count, try Self.shown($0)) }
        #expect(count == 2 && shown == ["key=ours", "other=other"])
        var expected = ["key=ours", "other=other"]
        try await ours.perform { context in
            switch then {
            case .save: break
            case .remove: try Self.set(nil, context)
            case .rollback: context.rollback()
            case .undo, .undoAndRedo:
                #expect(try context.undoHistory?.undo() == [])
                #expect(try Self.shown(context) == [])
                if then == .undoAndRedo { #expect(try context.undoHistory?.redo() == []) }
            }
        }
        if then == .remove { expected = ["other=other"] }
        if then == .rollback { expected = ["key=theirs"] }
        if then == .undo { expected = [] }
        #expect(try await ours.perform { try Self.shown($0) } == expected)
        try await ours.save(through: .store)
        #expect(try await ours.perform { try Self.shown($0) } == expected)
        #expect(try await container.read { try Self.shown($0) } == expected)
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @Test(arguments: Combination.rooted)
    func `S192: a save after a merge reports other types that another context has recorded`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let ours = await container.makeBackgroundContext(name: "ours")
        try await ours.perform { try $0.collection("names", of: Double.self).setValue(1, forKey: "key") }
        try await container.write { try Self.set("theirs", $0) }
        await ours.perform { $0.refreshAllObjects() }
        let error = await #expect(throws: CollectionError.self) { try await ours.save() }
        #expect(error?.description.contains("Double") == true)
        await ours.perform { $0.rollback() }
        try await ours.perform(andSave: .durable) { try Self.set("ours", $0) }
        #expect(try await container.read { try Self.shown($0) } == ["key=ours"])
    }

    /// Removes a value of this context. Another context may have replaced the types of its collection.
    private static func removeOurs(_ context: ManagedObjectContext) throws {
        if let ours = try? context.collection("names", of: Double.self) {
            try ours.setValue(nil, forKey: "ours")
        } else {
            try context.collection("names", of: String.self).setValue(nil, forKey: "ours")
        }
    }

    /// Catches: an error of types that stays when the entries of these types are gone.
    @Test(arguments: Combination.rooted, [true, false])
    func `S192: a context that has removed its values of other types can save again`(
        _ combination: Combination, _ merges: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let ours = await container.makeBackgroundContext(name: "ours")
        try await ours.perform { context throws in
            context.automaticallyMergesChanges = false
            try context.collection("names", of: Double.self).setValue(1, forKey: "ours")
        }
        try await container.write { try Self.set("theirs", $0) }
        if merges { await ours.perform { $0.refreshAllObjects() } }
        for _ in 0..<2 { await #expect(throws: CollectionError.self) { try await ours.save() } }
        try await ours.perform { try Self.removeOurs($0) }
        try await ours.save()
        #expect(try await container.read { try Self.shown($0) } == ["key=theirs"])
        // Values of the types in the store are saved, and those of other types are refused when they are set.
        await ours.perform { $0.refreshAllObjects() }
        try await ours.perform(andSave: .durable) { try Self.set("ours", $0) }
        #expect(try await container.read { try Self.shown($0) } == ["key=ours"])
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @Test(arguments: Combination.rooted)
    func `S192: a context that has undone its values of other types can save again`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let ours = await container.makeBackgroundContext(name: "ours")
        try await ours.perform { context throws in
            context.undoHistory = UndoHistory()
            try context.collection("names", of: Double.self).setValue(1, forKey: "ours")
        }
        try await container.write { try Self.set("theirs", $0) }
        await ours.perform { $0.refreshAllObjects() }
        await #expect(throws: CollectionError.self) { try await ours.save() }
        _ = try await ours.perform { try $0.undoHistory?.undo() }
        try await ours.perform(andSave: .durable) { try Self.set("ours", $0) }
        #expect(try await container.read { try Self.shown($0) } == ["key=ours"])
    }

    @MainActor @Test(arguments: Combination.all)
    func `S192: a child that has removed its values of other types can save again`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        for through in [false, true] {
            let child = main.newBackgroundChild()
            try await child.perform { try $0.collection("names", of: Double.self).setValue(1, forKey: "ours") }
            try Self.set("main", main)
            await #expect(throws: CollectionError.self) {
                if through { try await child.save(through: .store) } else { try await child.save() }
            }
            try await child.perform { try Self.removeOurs($0) }
            if through { try await child.save(through: .store) } else { try await child.save() }
            #expect(try Self.shown(main) == ["key=main"])
            main.rollback()
        }
        try Self.set("main", main)
        try await container.saveMain()
        #expect(try await container.read { try Self.shown($0) } == ["key=main"])
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @MainActor @Test(arguments: Combination.all)
    func `S192: a child that has recorded other types than its parent cannot save`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        for through in [false, true] {
            let child = main.newBackgroundChild()
            try await child.perform { try $0.collection("names", of: Double.self).setValue(1, forKey: "key") }
            try Self.set("main", main)
            let error = await #expect(throws: CollectionError.self) {
                if through { try await child.save(through: .store) } else { try await child.save() }
            }
            #expect(error?.description.contains("Double") == true)
            #expect(try Self.shown(main) == ["key=main"])
            #expect(await child.perform { $0.hasChanges }, "nothing is discarded")
            main.rollback()
        }
        try Self.set("main", main)
        try await container.saveMain()
        #expect(try await container.read { try Self.shown($0) } == ["key=main"])
    }

    /// Catches: a main context that shows what its root holds over a newer state as it was before, with two entries under one key.
    @MainActor @Test(arguments: StoreKind.allCases, [ContextStack.masterMainWorker, .hybrid])
    func `S024, S192: a refreshed main shows one entry of a key that main has saved to its root and another root to the store`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        for removes in [false, true] {
            let bed = try TestBed(kind)
            let container = try await bed.container(stack)
            let main = container.mainContext
            main.automaticallyMergesChanges = false
            try main.collection("names", of: String.self).setValue("x", forKey: "other")
            try await main.save(through: .store)
            try Self.set("ours", main)
            try await main.save()
            try await container.newBatchOperationContext().perform(andSave: .durable) { try Self.set("theirs", $0) }
            main.refreshAllObjects()
            #expect(try Self.shown(main) == ["key=ours", "other=x"])
            if removes { try Self.set(nil, main) }
            let expected = removes ? ["other=x"] : ["key=ours", "other=x"]
            #expect(try Self.shown(main) == expected)
            try await main.save(through: .store)
            #expect(try Self.shown(main) == expected)
            #expect(try await container.read { try Self.shown($0) } == expected)
            #expect(try await container.coordinator.verify().isEmpty)
        }
    }

    /// Sets a key in another process.
    static func setElsewhere(_ path: String, _ kind: String) async throws {
        let url = URL(fileURLWithPath: path)
        let container = try await PersistentContainer(store: kind == "lmdb" ? .lmdb(url) : .sqlite(url))
        try await container.write { try Self.set("theirs", $0) }
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S192: a value that another process has set conflicts with ours, and is read after a refresh`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(store: bed.description)
        let worker = await container.makeBackgroundContext()
        try await worker.perform { try Self.set("ours", $0) }
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = kind.rawValue as String] in
            try await KeyedConflictTests.setElsewhere(path, kind)
        }
        await #expect(throws: SaveError.self) { try await worker.save() }
        try await container.coordinator.refresh()
        let shown = try await worker.perform { context in
            context.rollback()
            context.refreshAllObjects()
            return try Self.shown(context)
        }
        #expect(shown == ["key=theirs"])
        try await worker.perform(andSave: .durable) { try Self.set("ours", $0) }
        #expect(try await container.read { try Self.shown($0) } == ["key=ours"])
        #expect(try await container.coordinator.verify().isEmpty)
    }

    /// How a key that was removed and set again differs from what others have done.
    enum Others: CaseIterable { case haveUpdated, haveReplaced }

    /// Catches: a removal whose object is gone, and which is applied to the entry that others have set; and a removal beside an insertion of
    /// the same key, which no policy can settle.
    @Test(arguments: StoreKind.allCases, Others.allCases)
    func `S192: a key that was removed and set again keeps its value if others have changed it`(
        _ kind: StoreKind, _ others: Others
    ) async throws {
        for (policy, expected) in Self.policies where expected != "error" {
            for merges in [false, true] {
                let bed = try TestBed(kind)
                let container = try await bed.container()
                let ours = container.coordinator.newBackgroundContext()
                let theirs = container.coordinator.newBackgroundContext()
                // This context takes the lower page of keys.
                try await ours.perform(andSave: .durable) { try $0.collection("names", of: String.self)["other"] = "x" }
                await theirs.perform { $0.refreshAllObjects() }
                try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
                try await ours.perform { context in
                    context.automaticallyMergesChanges = false
                    context.refreshAllObjects()
                    context.mergePolicy = policy
                    try Self.set(nil, context)
                }
                // A child reads the removal, which is then no longer changed in place.
                let child = await ours.newBackgroundChild()
                try await ours.perform { try Self.set("ours", $0) }
                if others == .haveReplaced { try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) } }
                try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
                if merges {
                    await ours.perform { $0.refreshAllObjects() }
                    #expect(try await ours.perform { try Self.shown($0) } == ["key=ours", "other=x"])
                }
                try await ours.save()
                let shown = try await container.read { try Self.shown($0) }
                #expect(shown == [merges ? "key=ours" : "key=\(expected)", "other=x"], "\(policy), merges: \(merges)")
                withExtendedLifetime(child) {}
            }
        }
    }

    /// Returns a policy that resolves one conflict about the value "ours". Any other conflict stays unresolved, which fails the save.
    private static func resolving(_ resolution: ConflictResolution) -> MergePolicy {
        .custom { conflicts in
            guard conflicts.count == 1, !conflicts[0].isDeletedHere, conflicts[0].properties.count == 1,
                conflicts[0].properties[0].ours == .data(Data("ours".utf8))
            else { return [:] }
            return [conflicts[0].objectID: resolution]
        }
    }

    /// Catches: a conflict about the removal only, after which the insertion repeats the key that the policy has kept.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S109, S192: a key that a child sets after its parent has removed it is one conflict of that key`(
        _ kind: StoreKind, _ isThrough: Bool
    ) async throws {
        let values = ConflictResolution.values(["value": .data(Data("merged".utf8))])
        let custom: [(MergePolicy, String)] = [
            (Self.resolving(.storeTrump), "theirs"), (Self.resolving(.objectTrump), "ours"), (Self.resolving(.overwrite), "ours"),
            (Self.resolving(.rollback), "theirs"), (Self.resolving(values), "merged"),
        ]
        for (policy, expected) in Self.policies + custom {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
            try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
            try await ours.perform { context in
                context.automaticallyMergesChanges = false
                context.refreshAllObjects()
                context.mergePolicy = policy
                try Self.set(nil, context)
            }
            let child = await ours.newBackgroundChild()
            try await child.perform { try Self.set("ours", $0) }
            if !isThrough { try await child.save() }
            try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
            do {
                if isThrough { try await child.save(through: .store) } else { try await ours.save() }
                #expect(expected != "error")
            } catch SaveError.conflicts(let conflicts) {
                #expect(expected == "error" && conflicts.count == 1, "\(policy): \(conflicts)")
                let conflict = try #require(conflicts.first)
                #expect(
                    conflict.description.contains("names[\"key\"]")
                        && conflict.description.contains("changed here and in the store"))
                #expect(conflict.properties.first?.ours == .data(Data("ours".utf8)))
                continue
            }
            let (shown, hasChanges) = try await ours.perform { (try Self.shown($0), $0.hasChanges) }
            #expect(shown == ["key=\(expected)"] && !hasChanges, "\(policy)")
            #expect(try await container.read { try Self.shown($0) } == ["key=\(expected)"], "\(policy)")
            #expect(try await container.coordinator.verify().isEmpty)
        }
    }

    /// Catches: a removal that is undone with the value of an entry that is gone.
    @Test(arguments: StoreKind.allCases)
    func `S162: undoing an unsaved removal shows the value that others have set since`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
        await ours.perform { context in
            context.refreshAllObjects()
            context.undoHistory = UndoHistory()
        }
        try await ours.perform { try Self.set(nil, $0) }
        try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) }
        try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
        try await ours.perform { context throws in
            context.refreshAllObjects()
            try context.undoHistory?.undo()
            #expect(try Self.shown(context) == ["key=theirs"])
        }
        try await ours.save()
        #expect(try await container.read { try Self.shown($0) } == ["key=theirs"])
    }

    /// Catches: a change that is undone by its object, although the key has been removed and set again under another one.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162, S192: undoing a changed key finds the object that has the key now`(_ kind: StoreKind, _ isSaved: Bool)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
        await ours.perform { context in
            context.refreshAllObjects()
            context.undoHistory = UndoHistory()
        }
        try await ours.perform { try Self.set("ours", $0) }
        if isSaved {
            try await ours.save()
            await theirs.perform { $0.refreshAllObjects() }
        }
        try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) }
        try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
        try await ours.perform { context throws in
            context.refreshAllObjects()
            let history = try #require(context.undoHistory)
            if isSaved {
                let error = #expect(throws: UndoError.self) { try history.undo() }
                guard case .conflicts(let conflicts)? = error else { return }
                #expect(conflicts.map(\.kind) == [.changed])
                try history.undo(onConflict: .force)
            } else {
                #expect(try Self.shown(context) == ["key=ours"])
                #expect(try history.undo() == [])
            }
            #expect(try Self.shown(context) == ["key=base"])
        }
        try await ours.save()
        #expect(try await container.read { try Self.shown($0) } == ["key=base"])
        #expect(try await container.coordinator.verify().isEmpty)
        try await container.close()
    }

    /// Catches: a lost update, because the objects under the key are not the ones that the child has changed.
    @Test(arguments: StoreKind.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func `S100, S192: a child's key conflicts with a save that its parent has passed`(
        _ kind: StoreKind, _ form: (isThrough: Bool, isReplaced: Bool)
    ) async throws {
        let (isThrough, isReplaced) = form
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (parent, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await parent.perform(andSave: .durable) { context in
            try context.collection("names", of: String.self).setValue("x", forKey: "other")
            if isReplaced { try Self.set("base", context) }
        }
        await theirs.perform { $0.refreshAllObjects() }
        let child = await parent.newBackgroundChild()
        try await child.perform { try Self.set("ours", $0) }
        if isReplaced { try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) } }
        try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
        try await parent.perform(andSave: .durable) { context in
            try context.collection("names", of: String.self).setValue("y", forKey: "other")
        }
        await #expect(throws: SaveError.self) {
            if isThrough {
                try await child.save(through: .store)
            } else {
                try await child.save()
                try await parent.save()
            }
        }
        #expect(try await container.read { try Self.shown($0) } == ["key=theirs", "other=y"])
        try await container.close()
    }

    /// Catches: a key that counts as deleted, because others have removed it and set it again.
    @Test(arguments: StoreKind.allCases)
    func `S162, S192: undoing an author finds the object that has the key now`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
        let before = try container.coordinator.snapshot(owner: "before")
        await ours.perform { context in
            context.refreshAllObjects()
            context.transactionAuthor = "a"
        }
        try await ours.perform(andSave: .durable) { try Self.set("ours", $0) }
        await theirs.perform { $0.refreshAllObjects() }
        try await theirs.perform(andSave: .durable) { try Self.set(nil, $0) }
        try await theirs.perform(andSave: .durable) { try Self.set("theirs", $0) }
        let conflicts = try await container.undoChanges(by: "a", since: before, onConflict: .force)
        #expect(conflicts.map(\.kind) == [.changed])
        #expect(try await container.read { try Self.shown($0) } == ["key=base"])
        #expect(try await container.coordinator.verify().isEmpty)
        try await container.close()
    }

    /// Catches: a deletion in the same undo that replaces the value which `force` restores.
    @Test(arguments: StoreKind.allCases)
    func `S162, S192: forced undo of an author restores the value of a key that others have removed meanwhile`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext()
        let theirs = container.coordinator.newBackgroundContext()
        try await theirs.perform(andSave: .durable) { try Self.set("base", $0) }
        let before = try container.coordinator.snapshot(owner: "before")
        await ours.perform { $0.transactionAuthor = "a" }
        for (context, value) in [(ours, Optional("ours")), (theirs, nil), (ours, "again")] {
            await context.perform { $0.refreshAllObjects() }
            try await context.perform(andSave: .durable) { try Self.set(value, $0) }
        }
        let conflicts = try await container.undoChanges(by: "a", since: before, onConflict: .force)
        #expect(conflicts.map(\.kind) == [.changed])
        #expect(try await container.read { try Self.shown($0) } == ["key=base"])
    }
}
