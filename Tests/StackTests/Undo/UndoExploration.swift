import CoreDataRouting
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A random change of objects, relationships or keyed values. Positions are taken modulo the number of objects.
struct RandomEdit: Sendable, CustomStringConvertible {
    var kind: Int
    var first: Int
    var second: Int
    var value: Int64

    var description: String { "edit(\(kind), \(first), \(second), \(value))" }

    /// - Parameter kinds: The number of kinds to choose from. The first seven change only tracks.
    init(_ random: inout SeededGenerator, kinds: Int = 20) {
        kind = random.below(kinds)
        first = random.below(8)
        second = random.below(8)
        value = Int64(random.below(30))
    }

    func make(in context: ManagedObjectContext) throws {
        func any(_ entity: String, _ position: Int) throws -> ManagedObject? {
            let all = try context.objects(entity)
            return all.isEmpty ? nil : all[position % all.count]
        }
        let scores = try context.collection("scores", of: Int.self)
        switch kind {
        case 0, 1: context.makeTrack("track \(value)", plays: Int(value))
        case 2, 3: try any("Track", first)?["plays"] = .int(value)
        case 4: try any("Track", first)?["title"] = .string("title \(value)")
        case 5: try any("Track", first)?.setRelatedObject("album", to: value < 10 ? nil : any("Album", second))
        case 6: if let track = try any("Track", first) { context.delete(track) }
        case 7: context.makeArtist("artist \(value)")
        case 8: context.insert("Album").setRelatedObject("artist", to: try any("Artist", first))
        case 9: context.insert("Playlist")["name"] = "list"
        case 10: context.insert("Profile").setRelatedObject("artist", to: try any("Artist", first))
        case 11: try any("Album", first)?.setRelatedObject("artist", to: value < 5 ? nil : any("Artist", second))
        case 12: try any("Artist", first)?.setRelatedObject("profile", to: value < 5 ? nil : any("Profile", second))
        case 13: try any("Artist", first)?.setRelatedObject("mentor", to: value < 5 ? nil : any("Artist", second))
        case 14, 15:
            guard let list = try any("Playlist", first), let track = try any("Track", second) else { return }
            if value < 20 { list.add(track, to: "tracks") } else { list.remove(track, from: "tracks") }
        case 16:
            guard let object = try any(["Playlist", "Profile", "Artist", "Album"][second % 4], first), try mayDelete(object)
            else { return }
            context.delete(object)
        case 17, 18: scores["\(first)"] = Int(value)
        default: scores["\(first)"] = nil
        }
    }

    /// Returns whether no album with tracks would be deleted, which a save refuses.
    private func mayDelete(_ object: ManagedObject) throws -> Bool {
        switch object.entityName {
        case "Album": object.relatedObjects("tracks").isEmpty
        case "Artist": object.relatedObjects("albums").allSatisfy { $0.relatedObjects("tracks").isEmpty }
        default: true
        }
    }
}

/// The visible content of a context as plain values: of objects, attributes, references, pairs and keyed values.
struct ContentCopy: Sendable, Equatable {
    private(set) var values: [String: String] = [:]

    init(_ context: ManagedObjectContext) throws {
        try self.init(objectsOf: context)
        for (key, value) in try context.collection("scores", of: Int.self).all.entries() { values["scores \(key)"] = "\(value)" }
    }

    /// Copies the content without keyed values.
    init(objectsOf context: ManagedObjectContext) throws {
        for entity in Music.model.entities {
            for object in try context.objects(entity.name) {
                let name = "\(entity.name)/\(object.objectID.key)"
                values[name] = "exists"
                for column in entity.columns { values["\(name) \(column.name)"] = "\(object[column.name])" }
                for relationship in entity.relationships {
                    if case .toOne = relationship.kind {
                        let other = object.relatedObject(relationship.name)
                        values["\(name) \(relationship.name)"] = other.map { ">\($0.entityName)/\($0.objectID.key)" } ?? "nil"
                    }
                }
                if entity.name == "Playlist" {
                    for track in object.relatedObjects("tracks") { values[">\(name)>Track/\(track.objectID.key)"] = "linked" }
                }
            }
        }
    }

    /// Returns this content after a change was reverted by a three-way merge, or nil if the change conflicts with this content.
    func reverting(from after: ContentCopy, to before: ContentCopy) -> ContentCopy? {
        var result = self
        for name in Set(after.values.keys).union(before.values.keys) where after.values[name] != before.values[name] {
            if values[name] == before.values[name] { continue }
            if values[name] != after.values[name] { return nil }
            result.values[name] = before.values[name]
        }
        // A pair of two objects that others have deleted stays away, and is no conflict.
        let lost = result.values.keys.filter { name in
            name.hasPrefix(">") && Self.objects(in: name).allSatisfy { result.values[$0] == nil }
        }
        for name in lost { result.values[name] = nil }
        return result.isWhole ? result : nil
    }

    /// The object of a value's name, or the objects of a pair.
    private static func objects(in name: String) -> [String] {
        let owner = String(name.prefix { $0 != " " })
        return owner.hasPrefix(">") ? owner.split(separator: ">").map(String.init) : [owner]
    }

    /// Whether every value belongs to an object that exists, and every reference leads to one.
    private var isWhole: Bool {
        values.allSatisfy { name, value in
            if name.hasPrefix("scores ") { return true }
            let destination = value.hasPrefix(">") ? [String(value.dropFirst())] : []
            return (Self.objects(in: name) + destination).allSatisfy { values[$0] != nil }
        }
    }

    /// Describes what differs from another content.
    func difference(to other: ContentCopy) -> String {
        Set(values.keys).union(other.values.keys).sorted().filter { values[$0] != other.values[$0] }
            .map { "\($0): \(values[$0] ?? "-") instead of \(other.values[$0] ?? "-")" }.joined(separator: "; ")
    }
}

/// Random work in a context with a history, its children and a sibling, compared with copies of its content.
struct UndoExploration {
    private struct Entry {
        var before: ContentCopy
        var after: ContentCopy
    }

    private let bed: TestBed
    private let routing: Routing
    private let container: PersistentContainer
    private let context: BackgroundContext
    private let sibling: BackgroundContext
    private var random: SeededGenerator
    private var undo: [Entry] = []
    private var redo: [Entry] = []
    /// The number of groups to undo when the context had no unsaved changes; nil if that state cannot be reached by undo and redo.
    private var cleanCount: Int? = 0
    /// Whether a policy has resolved conflicts since the last save, which the save may then refuse.
    private var hasResolved = false
    private var steps: [String] = []
    /// The author of the sibling's saves.
    private static let author = "sibling"

    private init(_ kind: StoreKind, _ routing: Routing, _ seed: UInt64) async throws {
        bed = try TestBed(kind)
        self.routing = routing
        random = SeededGenerator(seed: seed)
        container = try await bed.container(routing: routing)
        context = container.coordinator.newBackgroundContext()
        sibling = container.coordinator.newBackgroundContext()
        let first = (0..<20).map { _ in RandomEdit(&random) }
        try await context.perform { context throws in
            let scores = try context.collection("scores", of: Int.self)
            scores["first"] = 0
            for edit in first { try edit.make(in: context) }
        }
        try await context.save()
        await context.perform { $0.undoHistory = UndoHistory() }
        await sibling.perform { $0.transactionAuthor = Self.author }
    }

    /// Runs a random sequence. Returns the first difference, with the steps before it; nil if there is none.
    static func run(_ kind: StoreKind, _ routing: Routing, seed: UInt64, steps: Int) async throws -> String? {
        var run = try await UndoExploration(kind, routing, seed)
        for _ in 0..<steps {
            if let difference = try await run.step() {
                return "STRATA_SEED=\(seed), on \(kind): \(difference)\n\(run.steps.joined(separator: "\n"))"
            }
        }
        await run.context.perform { $0.rollback() }
        let findings = try run.container.coordinator.store.verify()
        try await run.container.close()
        return findings.isEmpty ? nil : "STRATA_SEED=\(seed), on \(kind): verify: \(findings)"
    }

    private func content() async throws -> ContentCopy {
        try await context.perform { context throws in
            try IntegrityExplorer.check(context, "undo")
            return try ContentCopy(context)
        }
    }

    private mutating func step() async throws -> String? {
        let difference: String? =
            switch random.below(23) {
            case 0...6: try await edit()
            case 7...10: try await revert(isRedo: false)
            case 11...13: try await revert(isRedo: true)
            case 14, 15: try await workInChild()
            case 16: try await save()
            case 17...19: try await mergeSibling()
            case 20, 21: try await undoSibling()
            default: try await failToSave()
            }
        if let difference { return difference }
        let (canUndo, canRedo, hasChanges) = await context.perform {
            ($0.undoHistory?.canUndo, $0.undoHistory?.canRedo, Self.hasDifferences($0))
        }
        if canUndo == undo.isEmpty || canRedo == redo.isEmpty {
            return "canUndo is \(canUndo == true), canRedo is \(canRedo == true), with \(undo.count) and \(redo.count) groups"
        }
        return cleanCount == undo.count && hasChanges ? "hasChanges after undoing all changes" : nil
    }

    /// Returns whether unsaved changes differ from the state below. Changes that cancel each other in one group may remain.
    private static func hasDifferences(_ context: ManagedObjectContext) -> Bool {
        if !context.insertedObjects.isEmpty || !context.deletedObjects.isEmpty { return true }
        return context.updatedObjects.contains { object in
            let changed = object.changedValues
            return !changed.isEmpty && object.committedValues(for: Array(changed.keys)) != changed
        }
    }

    private mutating func note(_ entry: Entry) {
        guard entry.before != entry.after else { return }
        if let cleanCount, undo.count < cleanCount { self.cleanCount = nil }
        redo = []
        undo.append(entry)
    }

    private mutating func edits(_ count: Int) -> [RandomEdit] { (0..<1 + random.below(count)).map { _ in RandomEdit(&random) } }

    private mutating func edit() async throws -> String? {
        let (made, nested) = (edits(4), edits(2))
        steps.append("perform \(made), nested \(nested)")
        let before = try await content()
        try await context.perform { context throws in
            for edit in made { try edit.make(in: context) }
            try context.undoHistory?.group("nested") { for edit in nested { try edit.make(in: context) } }
        }
        note(Entry(before: before, after: try await content()))
        return nil
    }

    private mutating func revert(isRedo: Bool) async throws -> String? {
        steps.append(isRedo ? "redo" : "undo")
        let present = try await content()
        guard let entry = isRedo ? redo.last : undo.last else { return nil }
        let wanted =
            isRedo
            ? present.reverting(from: entry.before, to: entry.after) : present.reverting(from: entry.after, to: entry.before)
        var found: String?
        do {
            try await perform(isRedo, .error)
        } catch UndoError.conflicts(let conflicts) {
            found = "\(conflicts)"
        }
        var reached = try await content()
        if let wanted {
            if let found { return "unexpected conflicts: \(found)" }
            if reached != wanted { return "wrong content: \(reached.difference(to: wanted))" }
        } else {
            if found == nil { return "no conflict was found" }
            if reached != present { return "a refused undo changed the content: \(reached.difference(to: present))" }
            let policy: UndoPolicy = random.chance(50) ? .skip : .force
            steps.append("  resolved by \(policy)")
            try await perform(isRedo, policy)
            reached = try await content()
            hasResolved = true
            cleanCount = nil
        }
        if isRedo { redo.removeLast() } else { undo.removeLast() }
        guard reached != present else {
            // The sibling had reverted the group already, so the number of groups changes without a change of content.
            cleanCount = nil
            return nil
        }
        if isRedo {
            undo.append(Entry(before: present, after: reached))
        } else {
            redo.append(Entry(before: reached, after: present))
        }
        return nil
    }

    private func perform(_ isRedo: Bool, _ policy: UndoPolicy) async throws {
        try await context.perform { context throws in
            guard let history = context.undoHistory else { return }
            _ = try isRedo ? history.redo(onConflict: policy) : history.undo(onConflict: policy)
        }
    }

    private mutating func workInChild() async throws -> String? {
        let (first, second) = (edits(3), edits(3))
        steps.append("child: \(first), then \(second)")
        let before = try await content()
        let child = await context.newBackgroundChild()
        await child.perform { $0.undoHistory = UndoHistory() }
        try await child.perform { context throws in for edit in first { try edit.make(in: context) } }
        let middle = try await child.perform { try ContentCopy($0) }
        try await child.perform { context throws in for edit in second { try edit.make(in: context) } }
        let last = try await child.perform { try ContentCopy($0) }
        if middle != last {
            try await child.perform { _ = try $0.undoHistory?.undo() }
            let undone = try await child.perform { try ContentCopy($0) }
            if undone != middle { return "wrong content after an undo in the child: \(undone.difference(to: middle))" }
            if random.chance(50) { try await child.perform { _ = try $0.undoHistory?.redo() } }
        }
        let saved = try await child.perform { try ContentCopy($0) }
        try await child.save()
        let after = try await content()
        if after != saved { return "the parent differs from its child: \(after.difference(to: saved))" }
        note(Entry(before: before, after: after))
        return nil
    }

    private mutating func save() async throws -> String? {
        steps.append("save")
        do {
            try await context.save(random.chance(50) ? .durable : .deferred)
        } catch {
            if !hasResolved { return "the save failed: \(error)" }
            return try await rollback()
        }
        (cleanCount, hasResolved) = (undo.count, false)
        return nil
    }

    private mutating func rollback() async throws -> String? {
        steps.append("rollback")
        await context.perform { $0.rollback() }
        (undo, redo, cleanCount, hasResolved) = ([], [], 0, false)
        return nil
    }

    /// Saves, and merges changes that a sibling makes after that: of objects and relationships of every kind, also of the same ones.
    private mutating func mergeSibling() async throws -> String? {
        if let difference = try await save() { return difference }
        let made = (0..<4).map { _ in RandomEdit(&random, kinds: 17) }
        steps.append("sibling: \(made)")
        try await sibling.perform { context throws in
            context.refreshAllObjects()
            for edit in made { try edit.make(in: context) }
        }
        try await sibling.save()
        await context.perform { $0.refreshAllObjects() }
        return nil
    }

    /// Undoes what the sibling has saved, as the changes of its author, perhaps after own changes. What the history cannot tell apart is a
    /// conflict, so there may be conflicts that copies of the content do not show. Without conflicts, the content is as they say.
    private mutating func undoSibling() async throws -> String? {
        // With the other routing, a root on SQLite reads no fixed state.
        guard routing == .snapshot else { return nil }
        if let difference = try await save() { return difference }
        // The history numbers saves on disk only.
        try await container.flush()
        let before = try await content()
        let start = try container.coordinator.snapshot(owner: "before the sibling")
        if let difference = try await mergeSibling() { return difference }
        let after = try await content()
        if random.chance(50), let difference = try await edit() { return difference }
        if let difference = try await save() { return difference }
        let present = try await content()
        steps.append("undo of the sibling's save")
        let wanted: ContentCopy?
        do {
            try await container.undoChanges(by: Self.author, since: start)
            wanted = present.reverting(from: after, to: before)
        } catch is UndoError {
            wanted = present
        } catch {
            return "the undo of the sibling's save failed: \(error)"
        }
        await context.perform { $0.refreshAllObjects() }
        guard let wanted else { return "no conflict with the undo of the sibling's save was found" }
        let reached = try await content()
        return reached == wanted ? nil : "wrong content after the undo of the sibling: \(reached.difference(to: wanted))"
    }

    /// Saves a change of an object that a sibling has changed too, which fails, and undoes the change.
    private mutating func failToSave() async throws -> String? {
        if let difference = try await save() { return difference }
        // With the other routing, a root on SQLite reads no fixed state, so its save may see no conflict.
        guard routing == .snapshot else { return nil }
        guard let id = try await context.perform({ try $0.objects("Track").first?.objectID }) else { return nil }
        steps.append("failing save of track \(id.key)")
        await sibling.perform { $0.refreshAllObjects() }
        let before = try await content()
        let number = steps.count
        try await context.perform { try $0.existingObject(with: id)["rating"] = .double(Double(number)) }
        try await sibling.perform { try $0.existingObject(with: id)["plays"] = .int(Int64(1000 + number)) }
        try await sibling.save()
        note(Entry(before: before, after: try await content()))
        do {
            try await context.save()
            return "a save in conflict succeeded"
        } catch SaveError.conflicts {}
        if let difference = try await revert(isRedo: false) { return difference }
        if let difference = try await revert(isRedo: true) { return difference }
        _ = try await rollback()
        await context.perform { $0.refreshAllObjects() }
        return nil
    }
}

@Suite struct UndoRandomTests {
    @Test(arguments: StoreKind.allCases)
    func `S162: undo and redo give what copies of the content say, after every step of a random sequence`(
        _ kind: StoreKind
    ) async throws {
        for run in 0..<UInt64(Rounds.of(3, long: 600)) {
            let routing: Routing = run % 3 == 2 ? .ancestors : .snapshot
            if let difference = try await UndoExploration.run(kind, routing, seed: Seed.value &+ run, steps: 25) {
                Issue.record("\(difference)")
                return
            }
        }
    }
}
