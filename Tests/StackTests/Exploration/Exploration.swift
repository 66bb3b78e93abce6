import Foundation
import ObjectGraph
import StoreInterface
import TestSupport

/// Runs a sequence of steps on the contexts of a store and on a ``ContextModel``, and compares both after each step.
struct Exploration {
    let kind: StoreKind
    private let bed: TestBed
    /// All containers use one file, if the store has a file. On SQLite each has its own connections.
    private let containers: [PersistentContainer]
    private var model = ContextModel()
    private var contexts: [BackgroundContext] = []
    private var coordinators: [PersistentStoreCoordinator] = []
    private var ids: [ObjectID] = []

    private static let columns = ["first", "second", "third"]
    private static let largestContexts = 6

    static let schema: Model = {
        do {
            return try Model([
                EntityDescription(
                    name: "Thing",
                    properties: columns.map { .attribute(.init(name: $0, type: .int64, index: $0 == "first" ? .indexed : .none)) }
                )
            ])
        } catch {
            preconditionFailure("the model is wrong: \(error)")
        }
    }()

    init(_ kind: StoreKind) async throws {
        self.kind = kind
        bed = try TestBed(kind)
        let first = try await bed.container(model: Self.schema)
        containers = kind == .memory ? [first] : [first, try await bed.container(model: Self.schema)]
    }

    /// Returns the first difference between the contexts and the model, in words, or nil if there is none.
    static func run(_ steps: [ContextStep], _ kind: StoreKind) async throws -> String? {
        var run = try await Exploration(kind)
        try await run.addContext(parent: nil, policy: .error, container: 0)
        for (position, step) in steps.enumerated() {
            if let difference = try await run.take(step) { return "step \(position), \(step): \(difference)" }
            if run.model.isUndecided { return nil }
            if let difference = try await run.difference() { return "after step \(position), \(step): \(difference)" }
        }
        try await run.containers[0].flush()
        let findings = try run.containers[0].coordinator.store.verify()
        return findings.isEmpty ? nil : "verify: \(findings)"
    }

    /// Returns the shortest part of a failing sequence that still fails, and its failure.
    static func shrink(_ steps: [ContextStep], _ kind: StoreKind, _ difference: String) async throws -> ([ContextStep], String) {
        var (best, found) = (steps, difference)
        var size = max(1, steps.count / 2)
        while true {
            var start = 0
            var isShorter = false
            while start < best.count {
                var part = best
                part.removeSubrange(start..<min(best.count, start + size))
                if let other = try await run(part, kind) {
                    (best, found, isShorter) = (part, other, true)
                } else {
                    start += size
                }
            }
            if size == 1, !isShorter { return (best, found) }
            size = max(1, size / 2)
        }
    }

    // MARK: Steps

    private mutating func addContext(parent: Int?, policy: ContextModel.Policy, container: Int) async throws {
        guard contexts.count < Self.largestContexts else { return }
        if let parent {
            contexts.append(await contexts[parent].perform { $0.newBackgroundChild() })
            coordinators.append(coordinators[parent])
        } else {
            let coordinator = containers[container % containers.count].coordinator
            try await coordinator.refresh()
            contexts.append(coordinator.newBackgroundContext())
            coordinators.append(coordinator)
        }
        let chosen: MergePolicy =
            switch policy {
            case .error: .error
            case .storeTrump: .storeTrump
            case .objectTrump: .objectTrump
            case .overwrite: .overwrite
            case .rollback: .rollback
            }
        await contexts[contexts.count - 1].perform { $0.mergePolicy = chosen }
        model.newContext(parent: parent, policy: policy)
    }

    /// - Returns: A description of a missing or unexpected error, or nil.
    private mutating func take(_ step: ContextStep) async throws -> String? {
        let number = step.context % contexts.count
        let context = contexts[number]
        switch step.kind {
        case .newRoot:
            try await addContext(parent: nil, policy: ContextModel.Policy.allCases[step.value % 5], container: step.object % 2)
        case .newChild: try await addContext(parent: number, policy: .error, container: 0)
        case .insert:
            let values = [step.value % 4, step.value, step.column]
            ids.append(
                await context.perform { context in
                    let thing = context.insert("Thing")
                    for (name, value) in zip(Self.columns, values) { thing[name] = .int(Int64(value)) }
                    return thing.objectID
                })
            model.insert(number, ids.count - 1, values)
        case .update, .delete, .refreshObject, .dropChanges: try await change(step, number)
        case .save, .saveDeferred, .saveThrough: return try await save(step, number)
        case .rollback:
            await context.perform { $0.rollback() }
            model.rollback(number)
        case .refresh:
            try await coordinators[number].refresh()
            if model.contexts[number].parent == nil {
                await context.perform { $0.refreshAllObjects() }
            } else {
                try await context.refreshFromParent()
            }
            model.refresh(number)
            noteUndecided()
        case .reset:
            try await coordinators[number].refresh()
            await context.perform { $0.reset() }
            model.reset(number)
        case .batchUpdate:
            let request = EntityFetchRequest("Thing", matching: .equal("first", .int(Int64(step.value % 4))))
            // A value that no object has, because equal values need not be written.
            let value = 1000 + model.saves
            try await containers[0].coordinator.batchUpdate(request, set: [Self.columns[1]: .int(Int64(value))])
            model.batch(where: step.value % 4, 1, value)
        case .batchDelete:
            let request = EntityFetchRequest("Thing", matching: .equal("first", .int(Int64(step.value % 4))))
            try await containers[0].coordinator.batchDelete(request)
            model.batch(where: step.value % 4, 0, nil)
        case .flush: try await containers[0].flush()
        }
        return nil
    }

    private mutating func change(_ step: ContextStep, _ number: Int) async throws {
        let shown = model.contexts[number].shown.keys.sorted()
        guard !shown.isEmpty else { return }
        let object = shown[step.object % shown.count]
        let id = ids[object]
        if [.refreshObject, .dropChanges].contains(step.kind) { try await coordinators[number].refresh() }
        await contexts[number].perform { context in
            let thing = context.object(with: id)
            switch step.kind {
            case .update: thing[Self.columns[step.column]] = .int(Int64(step.value % (step.column == 0 ? 4 : 40)))
            case .delete: context.delete(thing)
            default:
                // Fills the object, because a fault has no changes to drop.
                _ = thing["first"]
                context.refresh(thing, mergeChanges: step.kind == .refreshObject)
            }
        }
        switch step.kind {
        case .update: model.update(number, object, step.column, step.value % (step.column == 0 ? 4 : 40))
        case .delete: model.delete(number, object)
        default:
            if step.kind == .dropChanges { model.drop(number, object) }
            if model.contexts[number].parent == nil { model.refresh(number) }
            noteUndecided()
        }
    }

    /// Ends the sequence at an object that was updated here, deleted by another context, and written again by a policy. Other
    /// tests cover its merge.
    private mutating func noteUndecided() {
        for context in model.contexts where context.orphans.keys.contains(where: { context.base[$0] != nil }) {
            model.isUndecided = true
        }
    }

    private mutating func save(_ step: ContextStep, _ number: Int) async throws -> String? {
        let durability: Durability = step.kind == .saveDeferred ? .deferred(within: .milliseconds(step.value)) : .durable
        let expected = step.kind == .saveThrough ? model.saveThrough(number) : model.save(number)
        var met: ContextModel.Failure?
        do {
            if step.kind == .saveThrough {
                try await contexts[number].save(through: .store, durability)
            } else {
                try await contexts[number].save(durability)
            }
        } catch SaveError.conflicts {
            met = .conflicts
        } catch SaveError.parentGone {
            met = .parentGone
        }
        if met == expected || model.isUndecided { return nil }
        return "the save should \(expected.map { "throw \($0)" } ?? "succeed"), and did \(met.map { "throw \($0)" } ?? "succeed")"
    }

    // MARK: Comparing

    private func difference() async throws -> String? {
        for (number, context) in contexts.enumerated() {
            let own = model.contexts[number]
            let shown = try await Self.shown(context)
            if let difference = describe(shown, own.shown) { return "context \(number) \(difference)" }
            let isTracked = own.orphans.isEmpty
            let (hasChanges, inserted, updated, deleted, changed) = await context.perform { context in
                (
                    context.hasChanges, Set(context.insertedObjects.map(\.objectID)), Set(context.updatedObjects.map(\.objectID)),
                    Set(context.deletedObjects.map(\.objectID)),
                    Dictionary(uniqueKeysWithValues: context.updatedObjects.map { ($0.objectID, $0.changedValues) })
                )
            }
            if hasChanges != !own.pending.isEmpty { return "context \(number): hasChanges is \(hasChanges) with \(own.pending)" }
            guard isTracked else { continue }
            let kinds = [(inserted, ContextModel.Kind.insert), (updated, .update), (deleted, .delete)]
            for (found, kind) in kinds where found != Set(own.pending.filter { $0.value.kind == kind }.map { ids[$0.key] }) {
                return "context \(number) has other objects \(kind)d: \(found.map(\.key))"
            }
            for (object, change) in own.pending {
                guard case .update(let new) = change else { continue }
                var wanted: [String: Value] = [:]
                for (name, value) in zip(Self.columns, new) { wanted[name] = value.map { .int(Int64($0)) } }
                if changed[ids[object]] != wanted { return "context \(number): changedValues of \(object), \(wanted)" }
            }
        }
        for container in containers {
            try await container.coordinator.refresh()
            let stored = try await Self.shown(container.coordinator.newBackgroundContext())
            if let difference = describe(stored, model.store.mapValues(\.values)) { return "a new root \(difference)" }
        }
        return nil
    }

    private static func shown(_ context: BackgroundContext) async throws -> [ObjectID: ContextModel.Values] {
        try await context.perform { context in
            var shown: [ObjectID: ContextModel.Values] = [:]
            for thing in try context.fetch(EntityFetchRequest("Thing")) {
                shown[thing.objectID] = columns.map { if case .int(let value) = thing[$0] { Int(value) } else { -1 } }
            }
            for first in 0..<4 {
                let found = try context.fetchIDs(EntityFetchRequest("Thing", matching: .equal("first", .int(Int64(first)))))
                // Makes the comparison fail if a query and the objects disagree, because no state of the model looks like this.
                if Set(found) != Set(shown.filter { $0.value[0] == first }.keys) {
                    for id in found { shown[id] = [-2] }
                }
            }
            return shown
        }
    }

    private func describe(_ shown: [ObjectID: ContextModel.Values], _ wanted: [Int: ContextModel.Values]) -> String? {
        var found: [Int: ContextModel.Values] = [:]
        for (number, id) in ids.enumerated() { found[number] = shown[id] }
        if found == wanted, shown.count == wanted.count { return nil }
        let lines = Set(found.keys).union(wanted.keys).sorted().filter { found[$0] != wanted[$0] }.map {
            "object \($0) as \(found[$0].map { "\($0)" } ?? "nothing"), should be \(wanted[$0].map { "\($0)" } ?? "nothing")"
        }
        return "shows " + lines.joined(separator: "; ")
    }
}
