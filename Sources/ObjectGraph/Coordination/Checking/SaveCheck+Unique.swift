import StoreInterface
import StoreModel

/// Checks unique constraints (S108): no two objects have the same values in all columns of a constraint. Nulls are distinct.
///
/// Only values after the save count, so two objects may swap their values. Policies resolve a duplicate as follows:
/// - A new object duplicates a row of the store: `objectTrump` and `overwrite` write its values to that row, `storeTrump` and
///   `rollback` drop it. References to the new object then refer to the row.
/// - An updated object duplicates a row of the store: `storeTrump` drops the change of these columns, `rollback` drops the object's
///   changes. Other policies throw.
/// - Two objects of one save have the same values (S176): the save is settled as if each object had been saved on its own, first the
///   updated objects, then the new objects, each group in the order of keys. The objects of the earlier saves count as rows of the
///   store. Of two new objects the first lives, under `objectTrump` and `overwrite` with the values of the last. If these break another
///   constraint, the save throws, as for any updated object.
/// - The objects are of different classes (S181): no object takes the place of another. A new object to which nothing is related can be
///   dropped, and otherwise the save throws.
extension SaveCheck {
    struct UniqueConstraint {
        var entity: EntityIndex
        var columns: [ColumnIndex]
    }

    /// A changed object and the object that has the same values: a row of the store, or another object of the save.
    struct UniquenessConflict {
        var constraint: UniqueConstraint
        var values: [Value]
        var ours: ObjectKey
        var theirs: ObjectKey
    }

    mutating func checkUnique() throws {
        var mayFree = layer.mayDelete
        // A resolution may make references equal that are unique themselves. Each round removes at least one object or value.
        while let conflicts = try firstUniquenessConflicts() {
            // An object that goes with a deletion holds no unique value.
            if mayFree {
                mayFree = false
                try deleteDependents()
                continue
            }
            var replaced: [ObjectKey: ObjectKey] = [:]
            let constraints = conflicts.map { $0[0].constraint }
            if constraints.count == 1 {
                for conflict in conflicts[0] { try resolve(conflict, &replaced) }
            } else {
                try settleInOrder(constraints, &replaced)
            }
            if !replaced.isEmpty { try redirect(constraints[0].entity, Self.ends(of: replaced)) }
        }
    }

    /// Returns the conflicts of the first entity that has any, those of each constraint together; nil if there are none.
    private func firstUniquenessConflicts() throws -> [[UniquenessConflict]]? {
        let layer = layer
        for (entity, schema) in writer.store.schema.entities.enumerated(as: EntityIndex.self) {
            guard let changes = layer.entity(entity) else { continue }
            var found: [[UniquenessConflict]] = []
            for (column, definition) in schema.columns.enumerated(as: ColumnIndex.self) where definition.index == .unique {
                let conflicts = try uniquenessConflicts(
                    changes, constraint: .init(entity: entity, columns: [column]), in: layer)
                if !conflicts.isEmpty { found.append(conflicts) }
            }
            for index in schema.indexes where index.kind == .unique {
                let conflicts = try uniquenessConflicts(
                    changes, constraint: .init(entity: entity, columns: index.columns), in: layer)
                if !conflicts.isEmpty { found.append(conflicts) }
            }
            if !found.isEmpty { return found }
        }
        return nil
    }

    /// Settles the changed objects of an entity one after the other (S176). If one constraint drops an object, no later object conflicts
    /// with it by another constraint. O(changed objects · constraints).
    private mutating func settleInOrder(
        _ constraints: [UniqueConstraint], _ replaced: inout [ObjectKey: ObjectKey]
    ) throws {
        let entity = constraints[0].entity
        let isMerging: Bool
        switch request.policy {
        case .objectTrump, .overwrite: isMerging = true
        default: isMerging = false
        }
        // The object with each combination of values, by constraint.
        var holders = constraints.map { _ in [[Value]: ObjectKey]() }
        for place in addresses(\.updated, where: { $0 == entity }) + addresses(\.inserted, where: { $0 == entity }) {
            while let conflict = try firstConflict(of: place.key, constraints, &holders) {
                let isNew = layer.row(entity, place.key)?.kind == .insert
                try resolve(conflict, &replaced)
                // The object that lives has got the values of the new one. Neither it nor an object before it can give way.
                if isNew, isMerging, let other = try firstConflict(of: conflict.theirs, constraints, &holders) {
                    throw duplicate(other)
                }
            }
        }
    }

    /// Returns the first conflict of a changed object with the store and with the objects that were settled before. If there is none, adds
    /// its values to those of the settled objects.
    private func firstConflict(
        of key: ObjectKey, _ constraints: [UniqueConstraint], _ holders: inout [[[Value]: ObjectKey]]
    ) throws -> UniquenessConflict? {
        let (layer, entity) = (layer, constraints[0].entity)
        guard let row = layer.row(entity, key), row.kind != .delete else { return nil }
        var own: [(constraint: Int, values: [Value])] = []
        for (number, constraint) in constraints.enumerated() {
            let types = writer.store.schema.entities[entity].types(having: constraint.columns)
            guard let values = try uniqueValues(of: key, row, constraint, types: types) else { continue }
            var theirs = holders[number][values]
            // The known object may have been dropped, or may have got other values since.
            if let known = theirs, try known == key || !has(values, known, constraint: constraint, types: types) { theirs = nil }
            theirs = try theirs ?? holder(of: values, constraint: constraint, in: layer, key: key)
            if let theirs { return UniquenessConflict(constraint: constraint, values: values, ours: key, theirs: theirs) }
            own.append((number, values))
        }
        for (number, values) in own { holders[number][values] = key }
        return nil
    }

    /// Whether the save still gives an object these values.
    private func has(_ values: [Value], _ key: ObjectKey, constraint: UniqueConstraint, types: Set<Int64>?) throws -> Bool {
        guard let row = layer.row(constraint.entity, key) else { return false }
        return try uniqueValues(of: key, row, constraint, types: types) == values
    }

    /// Returns the values of a changed object in the columns of a constraint. nil if the save changes none of them, or if the constraint
    /// does not hold for the object: one of the values is null, or the object is of another type.
    ///
    /// - Parameter types: The types of the objects for which the constraint holds; nil for all.
    private func uniqueValues(
        of key: ObjectKey, _ row: Row, _ constraint: UniqueConstraint, types: Set<Int64>?
    ) throws -> [Value]? {
        let (entity, columns) = (constraint.entity, constraint.columns)
        guard columns.contains(where: row.isSet) else { return nil }
        let values = try columns.map { column in
            try row.isSet(column) ? row[column] : state.view.value(entity, key: key, column: column) ?? .null
        }
        if values.contains(where: \.isNull) { return nil }
        return try isOne(of: types, entity, key) ? values : nil
    }

    private func uniquenessConflicts(_ changes: EntityLayer, constraint: UniqueConstraint, in layer: Layer) throws
        -> [UniquenessConflict]
    {
        // The object with each combination of values that keeps them if a policy can settle the conflict.
        var holders: [[Value]: ObjectKey] = [:]
        var conflicts: [UniquenessConflict] = []
        let types = writer.store.schema.entities[constraint.entity].types(having: constraint.columns)
        for number in changes.sortedPageNumbers {
            guard let page = changes.page(number) else { continue }
            for slot in SlotIterator(page.inserted | page.updated) {
                guard let row = page[slot] else { continue }
                let key = PageAddress.key(page: number, slot: slot)
                guard let values = try uniqueValues(of: key, row, constraint, types: types) else { continue }
                let known =
                    try holders.updateValue(key, forKey: values)
                    ?? holder(of: values, constraint: constraint, in: layer, key: key)
                guard let known else { continue }
                // An updated object is older than a new one, whatever their keys.
                let isOlder = row.kind == .update && layer.row(constraint.entity, known)?.kind == .insert
                let (ours, theirs) = isOlder ? (known, key) : (key, known)
                holders[values] = theirs
                conflicts.append(UniquenessConflict(constraint: constraint, values: values, ours: ours, theirs: theirs))
            }
        }
        return conflicts
    }

    /// Returns another object that has these values and whose values in these columns this save does not change.
    private func holder(
        of values: [Value], constraint: UniqueConstraint, in layer: Layer, key: ObjectKey
    ) throws -> ObjectKey? {
        let view = state.view
        let (entity, columns) = (constraint.entity, constraint.columns)
        var candidates =
            columns.count == 1
            ? try state.base.lookup(entity, column: columns[0], value: values[0])
            : try state.base.lookup(entity, columns: columns, values: values)
        for deferred in state.deferred {
            for (column, value) in zip(columns, values) {
                candidates += deferred.candidates(entity: entity, column: column, value: value)
            }
        }
        let types = writer.store.schema.entities[entity].types(having: columns)
        return try candidates.first { other in
            guard try other != key && isOne(of: types, entity, other) else { return false }
            if let own = layer.row(entity, other), own.kind == .delete || columns.contains(where: own.isSet) { return false }
            return try zip(columns, values).allSatisfy { try view.value(entity, key: other, column: $0) == $1 }
        }
    }

    /// Returns whether an object is of one of some types; nil for all.
    private func isOne(of types: Set<Int64>?, _ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        guard let types, let column = writer.store.schema.entities[entity].typeColumn else { return true }
        guard case .int(let type)? = try after.value(entity, key: key, column: column) else { return false }
        return types.contains(type)
    }

    // MARK: Resolving

    private mutating func resolve(_ conflict: UniquenessConflict, _ replaced: inout [ObjectKey: ObjectKey]) throws {
        let entity = conflict.constraint.entity
        guard let row = layer.row(entity, conflict.ours) else { return }
        if row.kind == .insert, try !mayReplace(conflict) { throw duplicate(conflict) }
        switch (request.policy, row.kind) {
        case (.objectTrump, .insert), (.overwrite, .insert):
            let layer = writable()
            let merged = try merged(row, conflict, with: layer.row(entity, conflict.theirs), layer: layer.id)
            releasePartners(of: conflict.theirs, entity, keeping: merged, replaced)
            layer.put(merged, entity: entity, key: conflict.theirs)
            layer.remove(entity: entity, key: conflict.ours)
            let (ours, theirs) = (
                ObjectAddress(entity: entity, key: conflict.ours), ObjectAddress(entity: entity, key: conflict.theirs)
            )
            restored[theirs] = restored.removeValue(forKey: ours)
            replaced[conflict.ours] = conflict.theirs
        case (.storeTrump, .insert), (.rollback, .insert):
            let kept = try partners(of: conflict.theirs, entity, instead: row)
            releasePartners(of: conflict.ours, entity, keeping: kept, replaced)
            writable().remove(entity: entity, key: conflict.ours)
            replaced[conflict.ours] = conflict.theirs
        case (.storeTrump, .update):
            let layer = writable()
            let rest = row.copy(layer: layer.id)
            for column in conflict.constraint.columns where rest.isSet(column) {
                rest.clear(column)
                // The object stays at its former position in its former list.
                for reference in request.rules.ordered[entity] where reference.column == column { rest.clear(reference.position) }
            }
            if rest.set.isEmpty {
                layer.remove(entity: entity, key: conflict.ours)
            } else {
                layer.put(rest, entity: entity, key: conflict.ours)
            }
        case (.rollback, .update):
            writable().remove(entity: entity, key: conflict.ours)
        default:
            throw duplicate(conflict)
        }
    }

    /// Returns the row of a new object, as it is written to the object with the same unique value.
    ///
    /// An object that others have deleted, and that `objectTrump` writes again, is also new. Of it, only the properties that the context
    /// has changed are written, because that policy merges by property (S103).
    private func merged(_ row: Row, _ conflict: UniquenessConflict, with known: Row?, layer: UInt64) throws -> Row {
        let merged = row.copy(layer: layer)
        merged.kind = known?.kind == .insert ? .insert : .update
        let entity = conflict.constraint.entity
        // A stored member keeps its place in its list, whether the new object came into that list itself or with another that was merged.
        for reference in request.rules.ordered[entity] where merged.kind == .update {
            let list = try state.view.value(entity, key: conflict.theirs, column: reference.column)?.referenceKey
            guard let list, list == row[reference.column].referenceKey else { continue }
            try keepPosition(in: merged, of: conflict.theirs, entity, reference)
        }
        guard case .objectTrump = request.policy, entity != keyedValues, let change = folded.row(entity, conflict.ours),
            change.kind == .update
        else { return merged }
        var changed = request.changedOfDeleted[.init(entity: entity, key: conflict.ours)] ?? change.set
        // A position goes with its list.
        for reference in request.rules.ordered[entity] where !changed.contains(reference.column) {
            let list = try after.value(entity, key: conflict.theirs, column: reference.column)
            if list != row[reference.column] { changed.remove(reference.position) }
        }
        row.set.forEach { column in
            if changed.contains(column) { return }
            if let known, known.isSet(column) { merged[column] = known[column] } else { merged.clear(column) }
        }
        return merged
    }

    /// Leaves a stored member at its place in the list that it is in: at the stored position, or where the context has moved it.
    ///
    /// - Parameter row: The change of the member, with the position that it gets from a replaced object.
    private func keepPosition(
        in row: Row, of key: ObjectKey, _ entity: EntityIndex, _ reference: OrderedReference
    ) throws {
        row.clear(reference.position)
        guard let own = folded.row(entity, key), own.kind == .update, own.isSet(reference.position) else { return }
        let list =
            try own.isSet(reference.column)
            ? own[reference.column] : request.base.view.value(entity, key: key, column: reference.column) ?? .null
        if list.referenceKey == row[reference.column].referenceKey { row[reference.position] = own[reference.position] }
    }

    /// Whether the merge policy may settle a conflict of a new object. Objects of two classes never replace each other, because an object
    /// keeps its class, and a relationship to a class leads to objects of that class only (S181). Then a policy can only drop a new object
    /// to which nothing is related.
    private func mayReplace(_ conflict: UniquenessConflict) throws -> Bool {
        let entity = conflict.constraint.entity
        guard let column = writer.store.schema.entities[entity].typeColumn else { return true }
        let after = after
        func type(_ key: ObjectKey) throws -> Value {
            let type = try after.value(entity, key: key, column: column) ?? .null
            return type.isNull ? .int(0) : type
        }
        if try type(conflict.ours) == type(conflict.theirs) { return true }
        switch request.policy {
        case .storeTrump, .rollback: return try !isRelated(entity, conflict.ours)
        case .error, .objectTrump, .overwrite, .custom: return false
        }
    }

    /// Whether an object of this save refers to a new object, or has a pair with it.
    private func isRelated(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        let (schema, after) = (writer.store.schema, after)
        for (number, definition) in schema.entities.enumerated(as: EntityIndex.self) {
            for column in definition.columnIndices where definition.columns[column].destination == entity {
                if try !after.related(.referrers(entity: number, column: column), to: key).isEmpty { return true }
            }
        }
        for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
            let changes = layer.links[number]
            if link.source == entity, changes.forward[key]?.values.contains(true) == true { return true }
            if link.destination == entity, changes.backward[key]?.values.contains(true) == true { return true }
        }
        return false
    }

    /// Returns the partners of the object that lives. A stored object may get that of the new one where the save does not set its partner
    /// and it has none.
    private func partners(of key: ObjectKey, _ entity: EntityIndex, instead row: Row) throws -> Row {
        let known = layer.row(entity, key)
        if let known, known.kind == .insert { return known }
        let kept = row.copy(layer: layer.id)
        for pair in request.rules.pairs[entity] {
            let own = try after.value(entity, key: key, column: pair.column) ?? .null
            if !own.isNull || known?.isSet(pair.column) == true { kept[pair.column] = own }
        }
        return kept
    }

    /// Clears the one-to-one references of this save to an object that is merged with another, unless the merged object keeps them.
    ///
    /// - Parameter replaced: The objects that were merged before. References to these are redirected later.
    private mutating func releasePartners(
        of key: ObjectKey, _ entity: EntityIndex, keeping kept: Row, _ replaced: [ObjectKey: ObjectKey]
    ) {
        func end(_ key: ObjectKey?) -> ObjectKey? {
            var end = key
            while let known = end, let next = replaced[known] { end = next }
            return end
        }
        guard request.rules.hasPairs, let row = layer.row(entity, key) else { return }
        for pair in request.rules.pairs[entity] where row.isSet(pair.column) && row[pair.column] != kept[pair.column] {
            guard let partner = row[pair.column].referenceKey, hasSet(pair.back, entity: pair.destination, key: partner),
                end(layer.row(pair.destination, partner)?[pair.back].referenceKey) == key
            else { continue }
            put(.null, entity: pair.destination, key: partner, column: pair.back)
        }
    }

    /// Returns the last object of each chain of replacements.
    private static func ends(of replaced: [ObjectKey: ObjectKey]) -> [ObjectKey: ObjectKey] {
        replaced.mapValues { first in
            var end = first
            while let next = replaced[end] { end = next }
            return end
        }
    }

    /// Redirects references and pairs of objects that are not inserted to the objects that replace them. O(rows of the layer), and
    /// O(members) for each ordered list that gets more of them or whose new members are replaced.
    private mutating func redirect(_ entity: EntityIndex, _ replaced: [ObjectKey: ObjectKey]) throws {
        let layer = writable()
        let schema = writer.store.schema
        for (number, definition) in schema.entities.enumerated(as: EntityIndex.self) {
            let columns = definition.columnIndices.filter { definition.columns[$0].destination == entity }
            if !columns.isEmpty { try redirect(columns, of: number, replaced) }
        }
        for (number, link) in schema.links.enumerated(as: LinkIndex.self)
        where link.source == entity || link.destination == entity {
            for (source, pairs) in layer.links[number].forward {
                for (destination, isLinked) in pairs {
                    let newSource = link.source == entity ? replaced[source] ?? source : source
                    let newDestination = link.destination == entity ? replaced[destination] ?? destination : destination
                    guard newSource != source || newDestination != destination else { continue }
                    layer.forgetLink(number, from: source, to: destination)
                    if isLinked { layer.setLink(number, from: newSource, to: newDestination, linked: true) }
                }
            }
        }
    }

    /// A member that comes into an ordered list because an object was replaced: the one that had the list, or the member itself.
    private struct Arrival {
        var row: Row
        var reference: OrderedReference
        /// The replaced object that had the list; nil if only the member was replaced. Then it keeps its position.
        var former: ObjectKey?
        /// The place of the member in the list that it was in.
        var member: Arrangement.Member

        /// Members that keep their positions come first, so that the others come after them.
        static func precedes(_ a: Arrival, _ b: Arrival) -> Bool {
            switch (a.former, b.former) {
            case (nil, _?): true
            case (_?, nil): false
            case (let x?, let y?) where x != y: x < y
            default: Arrangement.Member.precedes(a.member, b.member)
            }
        }
    }

    /// Redirects the references in some columns of an entity. A position has a meaning only in the list for which it was made, so members
    /// of the lists of replaced objects get new ones (S107).
    private mutating func redirect(
        _ columns: [ColumnIndex], of entity: EntityIndex, _ replaced: [ObjectKey: ObjectKey]
    ) throws {
        let layer = writable()
        guard let changes = layer.entity(entity) else { return }
        let (view, stored) = (after, state.view)
        var arrivals: [Arrival] = []
        for pageNumber in changes.sortedPageNumbers {
            guard let page = changes.page(pageNumber) else { continue }
            for slot in SlotIterator(page.inserted | page.updated) {
                guard let row = page[slot] else { continue }
                let moved = columns.compactMap { column -> (column: ColumnIndex, old: ObjectKey, new: ObjectKey)? in
                    guard row.isSet(column), let old = row[column].referenceKey, let new = replaced[old] else { return nil }
                    return (column, old, new)
                }
                guard !moved.isEmpty else { continue }
                let key = PageAddress.key(page: pageNumber, slot: slot)
                let copy = row.copy(layer: layer.id)
                for (column, old, new) in moved {
                    copy[column] = .reference(new)
                    for reference in request.rules.ordered[entity] where reference.column == column {
                        // In the store, the member is in this list already. It keeps its place there.
                        if row.kind == .update, try stored.value(entity, key: key, column: column)?.referenceKey == new {
                            try keepPosition(in: copy, of: key, entity, reference)
                            continue
                        }
                        let position = Position(try view.value(entity, key: key, column: reference.position) ?? .null)
                        copy[reference.position] = .null
                        arrivals.append(
                            Arrival(row: copy, reference: reference, former: old, member: .init(key: key, position: position)))
                    }
                }
                // Another member was replaced. Its pair may have a place already.
                if request.rules.isOrder(entity), row.kind == .insert, !moved.contains(where: { $0.column == OrderEntity.owner })
                {
                    let member = Arrangement.Member(key: key, position: Position(copy[OrderEntity.position]))
                    arrivals.append(Arrival(row: copy, reference: OrderEntity.reference, former: nil, member: member))
                }
                layer.put(copy, entity: entity, key: key)
            }
        }
        if !arrivals.isEmpty { try append(arrivals.sorted(by: Arrival.precedes), of: entity) }
    }

    /// Puts members at the ends of the lists into which they come, unless they keep their positions. Their rows are in the layer.
    ///
    /// A pair of a many-to-many relationship keeps its stored place, or else the first of its new places. O(members) per list.
    private mutating func append(_ arrivals: [Arrival], of entity: EntityIndex) throws {
        let layer = writable()
        let view = after
        let arriving = Set(arrivals.map(\.member.key))
        // The places of the members, by the object that has the list.
        var placed: [ObjectKey: [ObjectKey: ObjectKey]] = [:]
        var ends = ListEnds()
        for arrival in arrivals {
            let (key, row, reference) = (arrival.member.key, arrival.row, arrival.reference)
            guard let owner = row[reference.column].referenceKey else { continue }
            if request.rules.isOrder(entity), row.kind == .insert, let member = row[OrderEntity.member].referenceKey {
                if placed[owner] == nil { placed[owner] = try view.places(of: owner, entity, without: arriving) }
                if let other = placed[owner]?[member] {
                    let isFirst = precedesNewPlace(arrival, other, of: entity)
                    layer.remove(entity: entity, key: isFirst ? other : key)
                    if !isFirst { continue }
                }
                placed[owner]?[member] = key
            }
            if arrival.former != nil {
                row[reference.position] = try ends.append(key, of: entity, to: owner, reference, in: view).value
            }
        }
    }

    /// Whether a member keeps a position before another place of its pair, which the save has made too.
    private func precedesNewPlace(_ arrival: Arrival, _ other: ObjectKey, of entity: EntityIndex) -> Bool {
        guard arrival.former == nil, let row = layer.row(entity, other), row.kind == .insert else { return false }
        return Arrangement.Member.precedes(
            arrival.member, .init(key: other, position: Position(row[OrderEntity.position])))
    }

    private func duplicate(_ conflict: UniquenessConflict) -> SaveError {
        let (constraint, keys) = (conflict.constraint, [conflict.theirs, conflict.ours])
        let schema = writer.store.schema.entities[constraint.entity]
        let properties = constraint.columns.map { schema.columns[$0].name }
        let entity = schema.entity(declaring: properties)
        for (column, property) in zip(constraint.columns, properties) {
            UniqueForms.note(request.rules.form(of: column, in: constraint.entity), of: property, in: entity)
        }
        return .uniqueConstraint(
            entity: entity, properties: properties, values: conflict.values,
            objects: keys.map { ObjectID(store: writer.store.identity, entity: constraint.entity, key: $0) })
    }
}
