import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The promises of collections in trees of contexts, on dictionaries (S070 to S075, S090, S100 to S106, S191, S192).
struct KeyedModel {
    struct Stored: Equatable {
        var value: Int
        /// The number of the save that wrote the value; 0 for the value of a parent.
        var version: Int
    }

    enum Change: Equatable {
        case insert(Int)
        case update(Int)
        /// The key was removed and set again.
        case replace(Int)
        case remove

        var value: Int? {
            switch self {
            case .insert(let value), .update(let value), .replace(let value): value
            case .remove: nil
            }
        }
    }

    struct Context {
        var parent: Int?
        var policy = PolicyKind.error
        var base: [String: Stored]
        var pending: [String: Change] = [:]
        /// The keys that others had changed when a save moved this root to the state after it. For a child that has not read that state
        /// they are conflicts (S100), which another exploration covers.
        var overtaken: Set<String> = []

        var shown: [String: Int] {
            var shown = base.mapValues(\.value)
            for (key, change) in pending {
                if case .update = change, base[key] == nil { continue }
                shown[key] = change.value
            }
            return shown
        }
    }

    var store: [String: Stored] = [:]
    var saves = 0
    var contexts: [Context] = []
    var isUndecided = false

    mutating func newContext(parent: Int?, policy: PolicyKind) {
        contexts.append(Context(parent: parent, policy: policy, base: below(parent)))
    }

    private func below(_ parent: Int?) -> [String: Stored] {
        parent.map { contexts[$0].shown.mapValues { Stored(value: $0, version: 0) } } ?? store
    }

    mutating func set(_ context: Int, _ key: String, _ value: Int?) {
        let shown = contexts[context].shown[key]
        let isKnown = contexts[context].base[key] != nil
        switch (contexts[context].pending[key], value) {
        // Others have removed the entry. Setting or removing the key again replaces the unsaved update.
        case (.update, let value) where !isKnown: contexts[context].pending[key] = value.map(Change.insert)
        case (.insert, nil): contexts[context].pending[key] = nil
        case (_, nil): if shown != nil { contexts[context].pending[key] = .remove }
        case (.insert, let value?): contexts[context].pending[key] = .insert(value)
        case (.replace, let value?), (.remove, let value?): contexts[context].pending[key] = .replace(value)
        case (_, let value?): contexts[context].pending[key] = isKnown ? .update(value) : .insert(value)
        }
    }

    /// Moves a context to the present state below it.
    mutating func refresh(_ context: Int) {
        let old = contexts[context].base
        contexts[context].base = below(contexts[context].parent)
        for (key, change) in contexts[context].pending {
            let isKnown = contexts[context].base[key] != nil
            switch change {
            case .insert(let value): if isKnown { contexts[context].pending[key] = .update(value) }
            case .update: if isKnown, old[key] == nil { isUndecided = true }
            case .replace: if !isKnown { isUndecided = true }
            case .remove: if !isKnown { contexts[context].pending[key] = nil }
            }
        }
    }

    /// Saves one level. Returns false if there is a conflict, which changes nothing.
    mutating func save(_ context: Int) -> Bool {
        let own = contexts[context]
        guard !own.pending.isEmpty else { return true }
        if let parent = own.parent {
            push(own.pending, to: parent)
            contexts[context].base = own.shown.mapValues { Stored(value: $0, version: 0) }
        } else {
            guard let next = saved(own) else { return false }
            for key in Set(own.base.keys).union(store.keys) where own.base[key]?.version != store[key]?.version {
                contexts[context].overtaken.insert(key)
            }
            saves += 1
            store = next
            contexts[context].base = next
        }
        contexts[context].pending = [:]
        return true
    }

    private mutating func push(_ pending: [String: Change], to parent: Int) {
        var root = parent
        while let next = contexts[root].parent { root = next }
        if !contexts[root].overtaken.isDisjoint(with: pending.keys) { isUndecided = true }
        for (key, change) in pending {
            let isShown = contexts[parent].shown[key] != nil
            switch change {
            case .insert(let value): set(parent, key, value)
            case .replace(let value):
                // It depends on the layers of the child whether this is one change of one entry, which a parent without it drops.
                if !isShown { isUndecided = true }
                set(parent, key, value)
            case .update(let value): if isShown { set(parent, key, value) }
            case .remove: if isShown { set(parent, key, nil) }
            }
        }
    }

    private mutating func saved(_ own: Context) -> [String: Stored]? {
        var next = store
        let keepsStore = [.storeTrump, .rollback].contains(own.policy)
        for (key, change) in own.pending {
            let (before, theirs) = (own.base[key], store[key])
            var isConflict = before?.version != theirs?.version
            switch change {
            case .remove: if theirs == nil { continue }
            case .replace: if theirs == nil { isUndecided = true }
            case .update: if theirs == nil { isConflict = true }
            case .insert: break
            }
            if isConflict, own.policy == .error { return nil }
            if isConflict, keepsStore { continue }
            next[key] = change.value.map { Stored(value: $0, version: saves + 1) }
        }
        return next
    }

    mutating func saveThrough(_ context: Int) -> Bool {
        var copy = self
        var level = context
        while let parent = copy.contexts[level].parent {
            let shown = copy.contexts[parent].shown
            let isGone = copy.contexts[level].pending.contains { key, change in
                switch change {
                case .update, .remove: shown[key] == nil
                case .insert, .replace: false
                }
            }
            if isGone {
                isUndecided = true
                return true
            }
            _ = copy.save(level)
            level = parent
        }
        guard copy.save(level) else { return false }
        self = copy
        return true
    }
}

struct KeyedStep: Sendable, CustomStringConvertible {
    enum Kind: String, CaseIterable, Sendable {
        case newRoot, newChild, set, remove, removeRange, save, saveDeferred, saveThrough, rollback, refresh, flush
    }

    var kind: Kind
    var context: Int
    var key: Int
    var value: Int

    static let keys = ["", "a", "a\0", "ab", "b", "é"]

    var description: String {
        switch kind {
        case .newRoot: "newRoot(\(PolicyKind.allCases[value % 5]), container \(key % 2))"
        case .newChild: "newChild(of: \(context))"
        case .set: "set(\(context), \(Self.keys[key].debugDescription))"
        case .remove, .removeRange: "\(kind)(\(context), \(Self.keys[key].debugDescription))"
        default: "\(kind)(\(context))"
        }
    }

    static func sequence(_ count: Int, _ random: inout SeededGenerator) -> [KeyedStep] {
        let weights: [Kind: Int] = [.set: 16, .remove: 7, .save: 7, .saveDeferred: 5, .saveThrough: 4, .refresh: 5, .rollback: 1]
        let kinds = Kind.allCases.flatMap { Array(repeating: $0, count: weights[$0] ?? 2) }
        return (0..<count).map { _ in
            KeyedStep(
                kind: kinds[random.below(kinds.count)], context: random.below(6), key: random.below(keys.count),
                value: random.below(40))
        }
    }
}

struct KeyedExploration {
    private let bed: TestBed
    private let containers: [PersistentContainer]
    private var contexts: [BackgroundContext] = []
    private var coordinators: [PersistentStoreCoordinator] = []
    private var model = KeyedModel()
    private var lastValue = 0

    private init(_ kind: StoreKind) async throws {
        bed = try TestBed(kind)
        let first = try await bed.container()
        containers = kind == .memory ? [first] : [first, try await bed.container()]
        // The first write of a collection also records its types, in a second change.
        try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { context throws in
            try context.collection("numbers", of: Int.self)["first"] = 0
        }
        try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { context throws in
            try context.collection("numbers", of: Int.self)["first"] = nil
        }
    }

    static func run(_ steps: [KeyedStep], _ kind: StoreKind) async throws -> String? {
        var run = try await KeyedExploration(kind)
        let difference: String?
        do { difference = try await run.run(steps) } catch { difference = "an error that no step expects: \(error)" }
        for container in run.containers { try await container.close() }
        return difference
    }

    private mutating func run(_ steps: [KeyedStep]) async throws -> String? {
        try await addContext(parent: nil, .error, container: 0)
        for (position, step) in steps.enumerated() {
            if let difference = try await take(step) { return "step \(position), \(step): \(difference)" }
            if model.isUndecided { return nil }
            if let difference = try await difference() { return "after step \(position), \(step): \(difference)" }
        }
        try await containers[0].flush()
        let findings = try containers[0].coordinator.store.verify()
        return findings.isEmpty ? nil : "verify: \(findings)"
    }

    private mutating func addContext(parent: Int?, _ policy: PolicyKind, container: Int) async throws {
        guard contexts.count < 6 else { return }
        if let parent {
            contexts.append(await contexts[parent].newBackgroundChild())
            coordinators.append(coordinators[parent])
        } else {
            let coordinator = containers[container % containers.count].coordinator
            try await coordinator.refresh()
            contexts.append(coordinator.newBackgroundContext())
            coordinators.append(coordinator)
        }
        await contexts[contexts.count - 1].perform { $0.mergePolicy = policy.mergePolicy }
        model.newContext(parent: parent, policy: policy)
    }

    private mutating func take(_ step: KeyedStep) async throws -> String? {
        let number = step.context % contexts.count
        let (context, key) = (contexts[number], KeyedStep.keys[step.key])
        switch step.kind {
        case .newRoot: try await addContext(parent: nil, PolicyKind.allCases[step.value % 5], container: step.key % 2)
        case .newChild: try await addContext(parent: number, .error, container: 0)
        case .set:
            lastValue += 1
            let value = lastValue
            try await context.perform { try $0.collection("numbers", of: Int.self)[key] = value }
            model.set(number, key, value)
        case .remove:
            let wasThere = model.contexts[number].shown[key] != nil
            let isRemoved = try await context.perform { try $0.collection("numbers", of: Int.self).removeValue(forKey: key) }
            model.set(number, key, nil)
            if wasThere != isRemoved, !model.isUndecided { return "removed: \(isRemoved)" }
        case .removeRange:
            let keys = model.contexts[number].shown.keys.filter {
                Array(key.utf8).lexicographicallyPrecedes(Array($0.utf8)) || $0 == key
            }
            let count = try await context.perform { try $0.collection("numbers", of: Int.self)[key...].removeAll() }
            for other in keys { model.set(number, other, nil) }
            if count != keys.count { return "removed \(count) keys, not \(keys)" }
        case .save, .saveDeferred, .saveThrough: return try await save(step, number)
        case .rollback:
            await context.perform { $0.rollback() }
            model.contexts[number].pending = [:]
        case .refresh:
            try await coordinators[number].refresh()
            if model.contexts[number].parent == nil {
                await context.perform { $0.refreshAllObjects() }
            } else {
                try await context.refreshFromParent()
            }
            model.refresh(number)
        case .flush: try await containers[0].flush()
        }
        return nil
    }

    private mutating func save(_ step: KeyedStep, _ number: Int) async throws -> String? {
        let durability: Durability = step.kind == .saveDeferred ? .deferred(within: .milliseconds(step.value)) : .durable
        let isSaved = step.kind == .saveThrough ? model.saveThrough(number) : model.save(number)
        do {
            if step.kind == .saveThrough {
                try await contexts[number].save(through: .store, durability)
            } else {
                try await contexts[number].save(durability)
            }
        } catch SaveError.conflicts(let conflicts) {
            return isSaved && !model.isUndecided ? "unexpected conflicts: \(conflicts)" : nil
        }
        return isSaved || model.isUndecided ? nil : "no conflict"
    }

    private func difference() async throws -> String? {
        for number in contexts.indices {
            let wanted = model.contexts[number].shown
            if let difference = try await contexts[number].perform({ try Self.difference($0, wanted) }) {
                return "context \(number) \(difference)"
            }
        }
        for container in containers {
            try await container.coordinator.refresh()
            let wanted = model.store.mapValues(\.value)
            if let difference = try await container.coordinator.newBackgroundContext().perform({ try Self.difference($0, wanted) }
            ) {
                return "a new root \(difference)"
            }
        }
        return nil
    }

    private static func difference(_ context: ManagedObjectContext, _ wanted: [String: Int]) throws -> String? {
        let numbers = try context.collection("numbers", of: Int.self)
        let keys = wanted.keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        let shown = try numbers.all.entries().map { "\($0.key.debugDescription)=\($0.value)" }
        let expected = keys.map { "\($0.debugDescription)=\(wanted[$0] ?? 0)" }
        if shown != expected { return "shows \(shown), should be \(expected)" }
        var read: [String: Int] = [:]
        for key in KeyedStep.keys { read[key] = numbers[key] }
        if read != wanted { return "reads \(read), should be \(wanted)" }
        for key in KeyedStep.keys {
            let bytes = try numbers.withBytes(forKey: key) { $0.loadUnaligned(as: Int.self) }
            if bytes != wanted[key] { return "has bytes of \(bytes ?? 0) under \(key.debugDescription)" }
        }
        if try numbers.count != wanted.count || numbers.last?.key != keys.last { return "counts \(try numbers.count)" }
        var visited: [String] = []
        try numbers["a"..<"b"].forEach(.descending) { key, _ in visited.append(key) }
        return visited == keys.reversed().filter { $0 >= "a" && $0 < "b" } ? nil : "visits \(visited)"
    }
}

@Suite struct KeyedExplorationTests {
    @Test(arguments: StoreKind.allCases)
    func `S191, S192: collections show what the model says after every step in trees of contexts`(_ kind: StoreKind) async throws
    {
        for run in 0..<UInt64(Rounds.of(10, long: 2000)) {
            let seed = Seed.value &+ run
            var random = SeededGenerator(seed: seed)
            let steps = KeyedStep.sequence(30, &random)
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "\(kind)") {
                try await KeyedExploration.run($0, kind)
            }
            guard let failure else { continue }
            Issue.record("\(failure)")
            return
        }
    }

    /// Found by the exploration: the removal stayed in the child, and removed what the parent set later.
    @Test(arguments: StoreKind.allCases)
    func `S056: nothing is left of a removal if a refresh finds the entry gone`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        try await parent.perform { try $0.collection("numbers", of: Int.self)["a"] = 1 }
        let child = await parent.newBackgroundChild()
        try await child.perform { try $0.collection("numbers", of: Int.self)["a"] = nil }
        try await parent.perform { try $0.collection("numbers", of: Int.self)["a"] = nil }
        try await child.refreshFromParent()
        try await parent.perform { try $0.collection("numbers", of: Int.self)["a"] = 2 }
        try await child.save()
        #expect(try await parent.perform { try $0.collection("numbers", of: Int.self)["a"] } == 2)
    }

    /// Found by the exploration: the child's later changes belonged to an entry that its parent did not have.
    @Test(arguments: StoreKind.allCases, [3, nil])
    func `S072: a child keeps changes of a key that its save gave to an entry of the parent`(
        _ kind: StoreKind, _ value: Int?
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        let child = await parent.newBackgroundChild()
        for (context, value) in [(parent, 1), (child, 2)] {
            try await context.perform { try $0.collection("numbers", of: Int.self)["a"] = value }
        }
        try await child.save()
        try await child.perform { try $0.collection("numbers", of: Int.self)["a"] = value }
        try await child.refreshFromParent()
        #expect(try await child.perform { try $0.collection("numbers", of: Int.self)["a"] } == value)
        try await child.save()
        #expect(try await parent.perform { try $0.collection("numbers", of: Int.self)["a"] } == value)
    }
}
