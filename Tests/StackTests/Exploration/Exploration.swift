import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Runs a sequence of steps on the contexts of a store and on a ``ContextModel``, and compares both after each step.
struct Exploration {
    let kind: StoreKind
    private let bed: TestBed
    /// All containers use one file, if the store has a file. On SQLite each has its own connections.
    let containers: [PersistentContainer]
    var model = ContextModel()
    private(set) var contexts: [BackgroundContext] = []
    private var coordinators: [PersistentStoreCoordinator] = []
    /// The sectioned live results of some contexts, by context.
    var watches: [Int: SectionWatch] = [:]
    private var random: SeededGenerator
    /// The id of each object of the model, by its number.
    var ids: [ObjectID] = []
    /// The positions that the model knows by numbers. The first stands for no position.
    var positions: [Data] = [Data()]

    static let columns = ["first", "second", "third"]
    static let listCount = 2
    private static let largestContexts = 6

    static let schema: Model = {
        let attributes = columns.map { name in
            PropertyDescription.attribute(.init(name: name, type: .int64, index: name == "first" ? .indexed : .none))
        }
        do {
            return try Model([
                EntityDescription(
                    name: "List",
                    properties: [
                        .attribute(.init(name: "title", type: .int64)),
                        .relationship(
                            .init(name: "things", destination: "Thing", inverse: "list", cardinality: .toMany, isOrdered: true)),
                    ]),
                EntityDescription(
                    name: "Thing",
                    properties: attributes + [
                        .relationship(.init(name: "list", destination: "List", inverse: "things", cardinality: .toOne))
                    ]),
            ])
        } catch {
            preconditionFailure("the model is wrong: \(error)")
        }
    }()

    init(_ kind: StoreKind, seed: UInt64) async throws {
        self.kind = kind
        random = SeededGenerator(seed: seed)
        bed = try TestBed(kind)
        let first = try await bed.container(model: Self.schema)
        containers = kind == .memory ? [first] : [first, try await bed.container(model: Self.schema)]
        ids = try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            (0..<Self.listCount).map { number in
                let list = context.insert("List")
                list["title"] = .int(Int64(number))
                return list.objectID
            }
        }
        model.saves = 1
        for number in ids.indices { model.store[number] = .init(values: [number, 0, 0, -1, 0], version: 1) }
    }

    /// Returns the first difference between the contexts and the model, in words, or nil if there is none.
    static func run(_ steps: [ContextStep], _ kind: StoreKind, seed: UInt64) async throws -> String? {
        var run = try await Exploration(kind, seed: seed)
        let difference: String?
        do { difference = try await run.run(steps) } catch { difference = "an error that no step expects: \(error)" }
        run.watches = [:]
        for container in run.containers { try await container.close() }
        return difference
    }

    private mutating func run(_ steps: [ContextStep]) async throws -> String? {
        try await addContext(parent: nil, policy: .error, container: 0)
        for (position, step) in steps.enumerated() {
            if let difference = try await take(step) { return "step \(position), \(step): \(difference)" }
            if model.isUndecided { return nil }
            if let difference = try await difference() { return "after step \(position), \(step): \(difference)" }
        }
        try await containers[0].flush()
        let findings = try containers[0].coordinator.store.verify()
        return findings.isEmpty ? nil : "verify: \(findings)"
    }

    // MARK: Steps

    private mutating func addContext(parent: Int?, policy: PolicyKind, container: Int) async throws {
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
        let number = contexts.count - 1
        let hasUndo = number % 3 != 2
        await contexts[number].perform { context in
            context.mergePolicy = policy.mergePolicy
            if hasUndo { context.undoHistory = UndoHistory() }
        }
        model.newContext(parent: parent, policy: policy, hasUndo: hasUndo)
        if number < 2 { watches[number] = try await SectionWatch(contexts[number], &random) }
    }

    /// - Returns: A description of a missing or unexpected error, or nil.
    private mutating func take(_ step: ContextStep) async throws -> String? {
        let number = step.context % contexts.count
        let context = contexts[number]
        switch step.kind {
        case .newRoot:
            try await addContext(parent: nil, policy: PolicyKind.allCases[step.value % 5], container: step.object % 2)
        case .newChild: try await addContext(parent: number, policy: .error, container: 0)
        case .insert, .update, .delete, .join, .move, .rearrange, .group: return try await edit(step, number)
        case .undo, .redo: return try await revert(step, number)
        case .refreshObject, .dropChanges: try await refreshObject(step, number)
        case .save, .saveDeferred, .saveThrough: return try await save(step, number)
        case .rollback:
            await context.perform { $0.rollback() }
            model.contexts[number].rollback()
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
            // A value that no object has, because equal values need not be written.
            let value = 1000 + model.saves
            try await containers[0].coordinator.batchUpdate(Self.things(step), set: [Self.columns[1]: .int(Int64(value))])
            model.batch(where: step.value % 4, 1, value, isList: { $0 < Self.listCount })
        case .batchDelete:
            try await containers[0].coordinator.batchDelete(Self.things(step))
            model.batch(where: step.value % 4, 0, nil, isList: { $0 < Self.listCount })
        case .flush: try await containers[0].flush()
        }
        return nil
    }

    private static func things(_ step: ContextStep) -> EntityFetchRequest {
        EntityFetchRequest("Thing", matching: .equal("first", .int(Int64(step.value % 4))))
    }

    private mutating func refreshObject(_ step: ContextStep, _ number: Int) async throws {
        guard let object = step.dropsList ? step.object % Self.listCount : thing(step, number) else { return }
        let id = ids[object]
        try await coordinators[number].refresh()
        await contexts[number].perform { context in
            let object = context.object(with: id)
            // Fills the object, because a fault has no changes to drop.
            _ = object[step.dropsList ? "title" : "first"]
            context.refresh(object, mergeChanges: step.kind == .refreshObject)
        }
        if step.kind == .dropChanges { model.drop(number, object, isList: step.dropsList) }
        if model.contexts[number].parent == nil { model.refresh(number) }
        noteUndecided()
    }

    /// Returns the thing that a step is about; nil if the context shows none.
    func thing(_ step: ContextStep, _ number: Int) -> Int? {
        let shown = model.contexts[number].shown.keys.filter { $0 >= Self.listCount }.sorted()
        return shown.isEmpty ? nil : shown[step.object % shown.count]
    }

    /// Ends the sequence at an object that was updated here, deleted by another context, and written again by a policy. Other
    /// tests cover its merge.
    private mutating func noteUndecided() {
        for context in model.contexts where context.updatesOfDeleted.keys.contains(where: { context.base[$0] != nil }) {
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
}
