import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// Changes of objects and of their order, and their undo.
extension Exploration {
    /// One change of a context, by the numbers of the model.
    fileprivate enum Edit: Sendable {
        case insert([Int], list: Int)
        case set(Int, column: Int, Int)
        case delete(Int)
        case join(Int, list: Int)
        case arrange(list: Int, [Int])
    }

    /// The effects of a change that the model does not determine: the new object, and the positions of things in their lists.
    private struct Made: Sendable {
        var inserted: ObjectID?
        /// The things of each list, in their order.
        var lists: [[ObjectID]]
        /// The position of each thing that the context shows.
        var positions: [ObjectID: Data]
    }

    private static let positionName = "position in list"

    // MARK: Editing

    mutating func edit(_ step: ContextStep, _ number: Int) async throws -> String? {
        guard step.kind == .group else {
            guard let edit = edit(step, step.kind, number) else { return nil }
            let made = try await make([edit], number, grouped: false)
            return note([edit], made, number, isUndone: false)
        }
        let kinds: [ContextStep.Kind] = [.update, .join, .delete, .insert, .update, .move]
        // The second edit must not refer to what the first deletes.
        let first = edit(step, .update, number)
        let second = edit(step, kinds[step.value % kinds.count], number)
        let edits = [first, second].compactMap(\.self)
        let isUndone = step.column == 0 && model.contexts[number].undo != nil
        let made = try await make(edits, number, grouped: true)
        if let difference = note(edits, made, number, isUndone: isUndone) { return difference }
        return isUndone ? try await undoNested(number, edits.count) : nil
    }

    private func edit(_ step: ContextStep, _ kind: ContextStep.Kind, _ number: Int) -> Edit? {
        if kind == .insert { return .insert([step.value % 4, step.value, step.column], list: step.value % 3 - 1) }
        let shown = model.contexts[number].shown
        if kind == .update, step.value % 5 == 0, shown[step.object % Self.listCount] != nil {
            return .set(step.object % Self.listCount, column: 0, step.value % 4)
        }
        guard let object = thing(step, number) else { return nil }
        let list = shown[object]?[ContextModel.list] ?? -1
        switch kind {
        case .update: return .set(object, column: step.column, step.value % (step.column == 0 ? 4 : 40))
        case .delete: return .delete(object)
        case .join: return .join(object, list: step.value % 3 - 1)
        case .move:
            var members = order(number)[max(0, list)]
            if list < 0 { return .join(object, list: step.value % 2) }
            members.removeAll { $0 == object }
            members.insert(object, at: step.value % (members.count + 1))
            return .arrange(list: list, members)
        default:
            // The members in another order, with the object as a new one, and sometimes without the first one.
            var members = order(number)[step.value % 2]
            if step.column == 0, !members.isEmpty { members.removeFirst() }
            members = members.reversed().filter { $0 != object }
            return .arrange(list: step.value % 2, members + [object])
        }
    }

    /// Makes changes in one block, and returns what the context shows then.
    private func make(_ edits: [Edit], _ number: Int, grouped: Bool) async throws -> Made {
        let (ids, shown) = (ids, model.contexts[number].shown)
        return try await contexts[number].perform { context throws in
            var made = Made(lists: [], positions: [:])
            let history = grouped ? context.undoHistory : nil
            history?.beginGroup("group")
            for edit in edits {
                switch edit {
                case .insert(let values, let list):
                    let thing = context.insert("Thing")
                    for (name, value) in zip(Self.columns, values) { thing[name] = .int(Int64(value)) }
                    if list >= 0, shown[list] != nil { thing.setRelatedObject("list", to: context.object(with: ids[list])) }
                    made.inserted = thing.objectID
                case .set(let object, let column, let value):
                    let name = object < Self.listCount ? "title" : Self.columns[column]
                    context.object(with: ids[object])[name] = .int(Int64(value))
                case .delete(let object): context.delete(context.object(with: ids[object]))
                case .join(let object, let list):
                    context.object(with: ids[object]).setRelatedObject(
                        "list", to: list < 0 ? nil : context.object(with: ids[list]))
                case .arrange(let list, let members):
                    context.object(with: ids[list]).setRelatedObjects("things", to: members.map { context.object(with: ids[$0]) })
                }
            }
            history?.endGroup()
            made.lists = (0..<Self.listCount).map { context.object(with: ids[$0]).relatedObjects("things").map(\.objectID) }
            for thing in try context.fetch(EntityFetchRequest("Thing")) {
                made.positions[thing.objectID] = Self.position(of: thing)
            }
            return made
        }
    }

    static func position(of thing: ManagedObject) -> Data {
        if case .data(let bytes) = thing[positionName] { bytes } else { Data() }
    }

    /// Makes the same changes in the model. Takes the new positions of members from the context, after checking that their order is as it
    /// was asked for.
    private mutating func note(_ edits: [Edit], _ made: Made, _ number: Int, isUndone: Bool) -> String? {
        if let id = made.inserted { ids.append(id) }
        var wanted = order(number)
        for edit in edits { change(&wanted, edit) }
        let ids = ids
        let found = made.lists.map { $0.map { id in ids.firstIndex(of: id) ?? -1 } }
        guard found == wanted else { return "the lists of context \(number) are \(found), should be \(wanted)" }
        let (numbers, inserted) = (made.positions.mapValues { self.number(of: $0) }, ids.count - 1)
        model.recording(number) { model in
            for edit in edits { model.contexts[number].make(edit, inserted: inserted) }
            for (object, values) in model.contexts[number].shown where object >= Self.listCount {
                let position = numbers[ids[object]] ?? 0
                if values[ContextModel.position] != position {
                    model.contexts[number].update(object, ContextModel.position, position)
                }
            }
        }
        return nil
    }

    private func change(_ lists: inout [[Int]], _ edit: Edit) {
        switch edit {
        case .insert(_, let list): if list >= 0 { lists[list].append(ids.count - 1) }
        case .set: break
        case .delete(let object): for list in lists.indices { lists[list].removeAll { $0 == object } }
        case .join(let object, let list):
            if list >= 0, lists[list].contains(object) { return }
            for list in lists.indices { lists[list].removeAll { $0 == object } }
            if list >= 0 { lists[list].append(object) }
        case .arrange(let list, let members):
            for other in lists.indices where other != list { lists[other].removeAll(where: members.contains) }
            lists[list] = members
        }
    }

    private mutating func number(of position: Data) -> Int {
        if let known = positions.firstIndex(of: position) { return known }
        positions.append(position)
        return positions.count - 1
    }

    /// The things of each list in a context of the model, in their order: by position, then by key.
    func order(_ number: Int) -> [[Int]] {
        let shown = model.contexts[number].shown
        return (0..<Self.listCount).map { list in
            shown.filter { $0.value[ContextModel.list] == list && $0.key >= Self.listCount }
                .map { (object: $0.key, position: positions[$0.value[ContextModel.position]]) }
                .sorted { first, second in
                    first.position == second.position
                        ? ids[first.object].key < ids[second.object].key
                        : first.position.lexicographicallyPrecedes(second.position)
                }
                .map(\.object)
        }
    }

    // MARK: Undo

    private mutating func undoNested(_ number: Int, _ count: Int) async throws -> String? {
        // The group of a block is undone like the nested group that has all its changes.
        guard count > 0, model.contexts[number].undo?.newest(isRedo: false) != nil else { return nil }
        return try await revert(isRedo: false, .error, number)
    }

    mutating func revert(_ step: ContextStep, _ number: Int) async throws -> String? {
        guard model.contexts[number].undo != nil else { return nil }
        return try await revert(isRedo: step.kind == .redo, UndoModel.Policy.allCases[step.value % 3], number)
    }

    private mutating func revert(isRedo: Bool, _ policy: UndoModel.Policy, _ number: Int) async throws -> String? {
        let expected = model.revert(number, isRedo: isRedo, policy)
        let chosen: UndoPolicy =
            switch policy {
            case .error: .error
            case .skip: .skip
            case .force: .force
            }
        let found = try await contexts[number].perform { context throws -> String? in
            do {
                let conflicts =
                    try isRedo
                    ? context.undoHistory?.redo(onConflict: chosen) : context.undoHistory?.undo(onConflict: chosen)
                return (conflicts ?? []).isEmpty ? nil : "\(conflicts ?? [])"
            } catch UndoError.conflicts(let conflicts) {
                return "\(conflicts)"
            }
        }
        if (found != nil) == expected { return nil }
        return expected ? "no conflicts were found" : "unexpected conflicts: \(found ?? "")"
    }
}

extension ContextModel.Context {
    fileprivate mutating func make(_ edit: Exploration.Edit, inserted: Int) {
        switch edit {
        case .insert(let values, let list): insert(inserted, values + [list, 0])
        case .set(let object, let column, let value): update(object, column, value)
        case .delete(let object): delete(object)
        case .join(let object, let list): update(object, ContextModel.list, list)
        case .arrange(let list, let members):
            for (object, values) in shown where values[ContextModel.list] == list && object >= Exploration.listCount {
                if !members.contains(object) { update(object, ContextModel.list, -1) }
            }
            for object in members { update(object, ContextModel.list, list) }
        }
    }
}
