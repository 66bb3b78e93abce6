import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Comparing what contexts, their live results and the store show with the model.
extension Exploration {
    /// The content of a context, in plain values.
    private struct Shown: Sendable {
        var values: [ObjectID: [Int]] = [:]
        var positions: [ObjectID: Data] = [:]
        var lists: [[ObjectID]] = []
    }

    func difference() async throws -> String? {
        for number in contexts.indices {
            if let difference = try await difference(of: number) { return "context \(number) \(difference)" }
        }
        for (number, watch) in watches.sorted(by: { $0.key < $1.key }) {
            if let difference = try await watch.difference() { return "the results of context \(number) \(difference)" }
        }
        for container in containers {
            try await container.coordinator.refresh()
            let stored = try await shown(container.coordinator.newBackgroundContext())
            if let difference = describe(stored, model.store.mapValues(\.values)) { return "a new root \(difference)" }
        }
        return nil
    }

    private func difference(of number: Int) async throws -> String? {
        let (context, own) = (contexts[number], model.contexts[number])
        let shown = try await shown(context)
        if let difference = describe(shown, own.shown) { return difference }
        let lists = order(number).map { $0.map { ids[$0] } }
        if shown.lists != lists {
            return "has lists \(shown.lists.map { $0.map(\.key) }), should be \(lists.map { $0.map(\.key) })"
        }
        return try await trackingDifference(context, own)
    }

    private func trackingDifference(_ context: BackgroundContext, _ own: ContextModel.Context) async throws -> String? {
        let (hasChanges, inserted, updated, deleted, changed, canUndo, canRedo) = await context.perform { context in
            (
                context.hasChanges, Set(context.insertedObjects.map(\.objectID)), Set(context.updatedObjects.map(\.objectID)),
                Set(context.deletedObjects.map(\.objectID)),
                Dictionary(uniqueKeysWithValues: context.updatedObjects.map { ($0.objectID, $0.changedValues) }),
                context.undoHistory?.canUndo ?? false, context.undoHistory?.canRedo ?? false
            )
        }
        if let undo = own.undo, canUndo == undo.undoable.isEmpty || canRedo == undo.redoable.isEmpty {
            return "canUndo is \(canUndo), canRedo is \(canRedo), with \(undo.undoable.count) and \(undo.redoable.count) groups"
        }
        if hasChanges != !own.pending.isEmpty { return "hasChanges is \(hasChanges) with \(own.pending)" }
        guard own.updatesOfDeleted.isEmpty else { return nil }
        let kinds = [(inserted, ContextModel.Kind.insert), (updated, .update), (deleted, .delete)]
        for (found, kind) in kinds where found != Set(own.pending.filter { $0.value.kind == kind }.map { ids[$0.key] }) {
            return "has other objects \(kind)d: \(found.map(\.key)), not \(own.pending)"
        }
        for (object, change) in own.pending {
            guard case .update(let new) = change else { continue }
            let wanted = named(new, of: object)
            guard let found = changed[ids[object]] else { continue }
            if found != wanted { return "has changedValues \(found) of \(object), not \(wanted)" }
        }
        return nil
    }

    private func named(_ new: [Int?], of object: Int) -> [String: Value] {
        if object < Self.listCount { return new[0].map { ["title": .int(Int64($0))] } ?? [:] }
        var values: [String: Value] = [:]
        for (name, value) in zip(Self.columns, new) { values[name] = value.map { .int(Int64($0)) } }
        if let list = new[ContextModel.list] { values["list"] = list < 0 ? .null : .reference(ids[list].key) }
        return values
    }

    private func shown(_ context: BackgroundContext) async throws -> Shown {
        let lists = ids.prefix(Self.listCount)
        return try await context.perform { context in
            var shown = Shown()
            for list in try context.fetch(EntityFetchRequest("List")) {
                if case .int(let title) = list["title"] { shown.values[list.objectID] = [Int(title), 0, 0, -1] }
            }
            for thing in try context.fetch(EntityFetchRequest("Thing")) {
                let numbers = Self.columns.map { if case .int(let value) = thing[$0] { Int(value) } else { -1 } }
                let list = thing.relatedObject("list").map { lists.firstIndex(of: $0.objectID) ?? -2 } ?? -1
                shown.values[thing.objectID] = numbers + [list]
                shown.positions[thing.objectID] = Self.position(of: thing)
            }
            for first in 0..<4 {
                let found = try context.fetchIDs(EntityFetchRequest("Thing", matching: .equal("first", .int(Int64(first)))))
                // Makes the comparison fail if a query and the objects disagree, because no state of the model looks like this.
                if Set(found) != Set(shown.values.filter { $0.value[0] == first && !lists.contains($0.key) }.keys) {
                    for id in found { shown.values[id] = [-2] }
                }
            }
            shown.lists = lists.map { context.object(with: $0).relatedObjects("things").map(\.objectID) }
            return shown
        }
    }

    private func describe(_ shown: Shown, _ wanted: [Int: ContextModel.Values]) -> String? {
        var found: [Int: ContextModel.Values] = [:]
        for (number, id) in ids.enumerated() {
            let position = positions.firstIndex(of: shown.positions[id] ?? Data()) ?? -3
            found[number] = shown.values[id].map { $0 + [position] }
        }
        if found == wanted, shown.values.count == wanted.count { return nil }
        let lines = Set(found.keys).union(wanted.keys).sorted().filter { found[$0] != wanted[$0] }.map {
            "object \($0) as \(found[$0].map { "\($0)" } ?? "nothing"), should be \(wanted[$0].map { "\($0)" } ?? "nothing")"
        }
        return "shows " + lines.joined(separator: "; ")
    }
}
