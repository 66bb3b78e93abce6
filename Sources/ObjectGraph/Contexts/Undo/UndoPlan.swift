import StoreInterface
import StoreModel

/// The changes that revert a step in the present state of a context, as layers, and the conflicts that were found.
///
/// Each property is merged by its three values: the one that the step left, the present one, and the wanted one. Planning changes nothing.
struct UndoPlan {
    let context: ManagedObjectContext
    let step: UndoStep
    let isRedo: Bool
    private let policy: UndoPolicy
    /// The reverted objects and pairs.
    private(set) var layer: Layer
    /// The changes that delete rules require in objects that are not part of the step. Only the policy `force` makes them.
    private(set) var consequences: Layer
    private(set) var conflicts: [UndoConflict] = []
    /// The collections that have begun anew with other types since the step. Bytes of the former types are not written to them.
    private(set) var retyped: Set<CollectionName> = []
    /// Objects that are not deleted, because other objects are related to them.
    private var kept: Set<ObjectAddress> = []
    private var deleted: [ObjectAddress] = []
    /// The objects with the places of a member at present, by order and member, then by the owner of the list, as far as they were read.
    var knownPlaces: [ObjectAddress: [ObjectKey: [ObjectKey]]] = [:]
    /// Returns whether a pair is linked at present. Reads each list once.
    lazy var isLinked = context.linkedPairs(in: view.layers)
    /// Returns whether a pair is linked without the unsaved changes, which others may have linked again.
    lazy var isLinkedBelow = context.linkedPairs(in: Array(view.layers.dropFirst(context.layerStack.notInFlight.count)))

    private var schema: StoreSchema { context.storedModel.storeSchema }
    var view: LayeredView { context.layerStack.view }
    private var layers: [Layer] { [consequences, layer].filter { !$0.isEmpty } }

    /// The layers to add over the context's changes, oldest first and sealed.
    var sealedLayers: [Layer] { layers.reversed() }

    init(_ context: ManagedObjectContext, step: UndoStep, isRedo: Bool, policy: UndoPolicy) throws {
        self.context = context
        self.step = step
        self.isRedo = isRedo
        self.policy = policy
        layer = Layer(schema: context.storedModel.storeSchema)
        consequences = layer
        try make()
        conflicts.sort()
        conflicts = try conflicts.map { try $0.named(in: context, reading: [context.layerStack.view], step: step) }
        if policy == .error, !conflicts.isEmpty { throw UndoError.conflicts(conflicts) }
    }

    private mutating func make() throws {
        var blocked: [UndoConflict] = []
        while true {
            layer = Layer(schema: schema)
            consequences = Layer(schema: schema)
            conflicts = blocked
            deleted = []
            try findRetyped()
            // Deletions first, because they free keys of collections.
            for (address, change) in step.objects where (isRedo ? change.after : change.before) == nil {
                try plan(address, change)
            }
            for (address, change) in step.objects where (isRedo ? change.after : change.before) != nil {
                try plan(address, change)
            }
            try keepTypes()
            try addMissingTypes()
            try settleReferences()
            try settlePairs()
            try planLinks()
            let linked = try unlinkDeleted()
            layer.seal()
            let (related, denied) = try settleConsequences()
            consequences.seal()
            let newlyBlocked = policy == .skip ? linked + related + denied : denied
            conflicts += linked + related + denied
            guard policy != .error, !newlyBlocked.isEmpty else { return }
            // Without these deletions, others may not be possible either. Each round keeps more objects, so the rounds end.
            blocked += newlyBlocked
            for conflict in newlyBlocked {
                kept.insert(ObjectAddress(entity: conflict.objectID.entity, key: conflict.objectID.key))
            }
        }
    }

    // MARK: Objects

    private mutating func plan(_ address: ObjectAddress, _ change: UndoStep.ObjectChange) throws {
        if !retyped.isEmpty, (isRedo ? change.after : change.before) != nil, isRetyped(address) { return }
        let exists = try context.exists(address.entity, address.key)
        switch isRedo ? (change.before, change.after) : (change.after, change.before) {
        case (let expected?, nil):
            if let found = try exists ? address : holder(address, expected) { planDeletion(found, change, expected: expected) }
        case (nil, let wanted?): try planInsertion(address, change, wanted: wanted, exists: exists)
        case (let expected?, let wanted?):
            let moved = try exists ? nil : holder(address, key: step.keys[address.key])
            planUpdate(moved ?? address, change, expected: expected, wanted: wanted, exists: exists || moved != nil)
        case (nil, nil): break
        }
    }

    /// Whether saves derive the values of a column, so that no one sets them.
    private func isDerived(_ column: ColumnIndex, _ address: ObjectAddress) -> Bool {
        context.storedModel.entities[address.entity].columns[column].derivation != nil
    }

    func present(_ address: ObjectAddress, _ column: ColumnIndex) -> Value? {
        context.readBelow(address.entity, key: address.key, column: column)
    }

    /// Returns nil if only the group has changed a property. Otherwise returns the value that was lost: the group's value that others have
    /// replaced since, or a value of others that the group has replaced.
    private func lostValue(
        _ address: ObjectAddress, _ column: ColumnIndex, expected: Row, contested: Row?
    ) -> (value: Value, byGroup: Bool)? {
        if !Value.areSame(present(address, column), expected[column]) { return (expected[column], false) }
        guard let contested, contested.isSet(column) else { return nil }
        return (contested[column], true)
    }

    private mutating func planDeletion(_ address: ObjectAddress, _ change: UndoStep.ObjectChange, expected: Row) {
        guard !kept.contains(address) else { return }
        let changed = expected.columnIndices.compactMap { column in
            expected.isSet(column) && !isDerived(column, address)
                ? lostValue(address, column, expected: expected, contested: change.contested).map { (column, $0) } : nil
        }
        // Others have renamed the type of a collection's values. Their record stays, and is no conflict.
        if !changed.isEmpty, address.entity == context.capabilities.keyedValues, KeyedColumn.collection(of: expected) != nil {
            return
        }
        for (column, lost) in changed {
            add(.changed, address: address, column: column, expected: lost.value, isReplacedByGroup: lost.byGroup)
        }
        if !changed.isEmpty, policy == .skip, !isPlaceOfRemovedPair(address, expected) { return }
        let row = deletion(of: address, layer.id)
        if address.entity == context.capabilities.keyedValues, !row.isSet(KeyedColumn.key) {
            row[KeyedColumn.key] = expected[KeyedColumn.key]
        }
        // The step reverts these references too, so delete rules must not follow them when the deletion is saved.
        for case .toOne(let column) in context.capabilities.rules.outgoing[address.entity].map(\.kind)
        where present(address, column) == expected[column] {
            row[column] = .null
        }
        layer.put(row, entity: address.entity, key: address.key)
        deleted.append(address)
    }

    /// Returns the row of a deletion. The last values of an object that was never saved are nowhere else (S054).
    func deletion(of address: ObjectAddress, _ layer: UInt64) -> Row {
        let count = context.storedModel.entities[address.entity].columns.count
        let row = Row.make(kind: .delete, layer: layer, columnCount: count)
        guard context.layerStack.pendingKind(address.entity, address.key) == .insert else { return row }
        for column in row.columnIndices { row[column] = present(address, column) ?? .null }
        return row
    }

    /// Drops the deletions of the types of collections that have entries after the plan (S190). The step did not make these entries.
    private mutating func keepTypes() throws {
        guard let entity = context.capabilities.keyedValues else { return }
        let after = LayeredView(base: view.base, layers: [layer] + view.layers)
        var kept: [ObjectAddress] = []
        for address in deleted where address.entity == entity {
            guard let row = layer.row(entity, address.key), row.isSet(KeyedColumn.key),
                let name = KeyedColumn.collection(of: row), try after.keyedObject(entity, KeyedColumn.typesKey(name)) == nil,
                try after.hasEntries(entity, of: name)
            else { continue }
            layer.remove(entity: entity, key: address.key)
            kept.append(address)
        }
        deleted.removeAll(where: kept.contains)
    }

    /// Finds the collections of the step that have other types now. Adds a conflict for each in which the step would set an entry or the
    /// types.
    private mutating func findRetyped() throws {
        retyped = []
        guard let entity = context.capabilities.keyedValues else { return }
        for (name, recorded) in step.types.sorted(by: { $0.key < $1.key }) {
            guard case .data(let ours) = recorded.value, let types = CollectionTypes(bytes: ours),
                let object = try view.keyedObject(entity, KeyedColumn.typesKey(name.text)), object != recorded.object,
                case .data(let theirs)? = try view.value(entity, key: object, column: KeyedColumn.value)
            else { continue }
            let present = CollectionTypes(bytes: theirs)
            if let present, present.areTypes(of: types) { continue }
            retyped.insert(name)
            let isSet = step.objects.contains { address, change in
                (isRedo ? change.after : change.before) != nil && collection(of: address) == name
            }
            guard isSet else { continue }
            conflicts.append(
                UndoConflict(
                    kind: .changed, objectID: ObjectID(store: context.storeIdentity, entity: entity, key: object),
                    entityName: name.text, property: "types", expected: .string("\(types)"),
                    present: .string(present.map { "\($0)" } ?? "types that cannot be read"), wanted: .string("\(types)")))
        }
    }

    /// Returns the collection to which an object of the step belongs, as an entry or as the record of the types.
    private func collection(of address: ObjectAddress) -> CollectionName? {
        guard address.entity == context.capabilities.keyedValues, case .data(let key)? = step.keys[address.key] else {
            return nil
        }
        return KeyedColumn.name(inKey: key)
    }

    private func isRetyped(_ address: ObjectAddress) -> Bool { collection(of: address).map(retyped.contains) ?? false }

    /// Adds the records of types that the entries of the plan need, and that were deleted since the step (S190).
    private mutating func addMissingTypes() throws {
        guard let entity = context.capabilities.keyedValues else { return }
        for (name, recorded) in step.types {
            let key = KeyedColumn.typesKey(name.text)
            let after = LayeredView(base: view.base, layers: [layer] + view.layers)
            guard layer.hasEntries(entity, of: name.text), try after.keyedObject(entity, key) == nil else { continue }
            let row = Row.make(kind: .insert, layer: layer.id, columnCount: 2)
            row.fill(with: [.data(key), recorded.value])
            let place = ObjectAddress(entity: entity, key: recorded.object)
            let change = UndoStep.ObjectChange(before: row, after: nil)
            try planInsertion(place, change, wanted: row, exists: context.exists(entity, recorded.object))
        }
    }

    private mutating func planInsertion(
        _ address: ObjectAddress, _ change: UndoStep.ObjectChange, wanted: Row, exists: Bool
    ) throws {
        if exists { return planValues(of: address, wanted) }
        if context.capabilities.rules.isOrder(address.entity), try hasPlace(wanted, address.entity) { return }
        if let holder = try holder(address, wanted) { return planValues(of: holder, wanted) }
        let place = try removedHolder(address, wanted) ?? address
        let row = wanted.copy(layer: layer.id)
        row.kind = .insert
        row.fill(with: context.storedModel.entities[place.entity].defaults)
        try takeNewerValues(of: place, to: row, last: change.last)
        settleContested(place, change, wanted: wanted, restored: row)
        layer.put(row, entity: place.entity, key: place.key)
    }

    /// Adds a conflict for each value of a restored object that the group has changed before it deleted the object, and that others have
    /// changed too: between two changes of the group, or after its last save.
    private mutating func settleContested(
        _ address: ObjectAddress, _ change: UndoStep.ObjectChange, wanted: Row, restored row: Row
    ) {
        guard let last = change.last else { return }
        for column in row.columnIndices where last.isSet(column) && !isDerived(column, address) {
            let isNewer = !Value.areSame(row[column], wanted[column])
            let isContested = change.contested?.isSet(column) ?? false
            guard isNewer || isContested else { continue }
            let lost = isContested ? change.contested?[column] : last[column]
            add(
                .changed, address: address, column: column, expected: lost, wanted: wanted[column],
                isReplacedByGroup: isContested)
            if policy == .force { row[column] = wanted[column] } else if !isNewer { row[column] = last[column] }
        }
    }

    /// Returns the object that has the key of a keyed value now; nil if there is none, or if the object is no keyed value.
    private func holder(_ address: ObjectAddress, _ row: Row) throws -> ObjectAddress? {
        address.entity == context.capabilities.keyedValues ? try holder(address, key: row[KeyedColumn.key]) : nil
    }

    private func holder(_ address: ObjectAddress, key: Value?) throws -> ObjectAddress? {
        guard address.entity == context.capabilities.keyedValues, case .data(let key)? = key,
            let holder = try view.keyedObject(address.entity, key), layer.row(address.entity, holder)?.kind != .delete
        else { return nil }
        return ObjectAddress(entity: address.entity, key: holder)
    }

    /// Returns the object below this context's changes that has the key of a keyed value and is deleted here, because others have removed and
    /// set the key since; nil if there is none.
    private func removedHolder(_ address: ObjectAddress, _ row: Row) throws -> ObjectAddress? {
        guard address.entity == context.capabilities.keyedValues, case .data(let key) = row[KeyedColumn.key] else { return nil }
        let count = context.layerStack.sealed.count + 1
        let below = LayeredView(base: view.base, layers: Array(view.layers.dropFirst(count)))
        guard let holder = try below.keyedObject(address.entity, key), holder != address.key,
            context.layerStack.pendingKind(address.entity, holder) == .delete
        else { return nil }
        return ObjectAddress(entity: address.entity, key: holder)
    }

    /// Plans the values of an object that should have to be inserted, and exists already.
    private mutating func planValues(of address: ObjectAddress, _ wanted: Row) {
        let different = wanted.columnIndices.filter {
            !isDerived($0, address) && !Value.areSame(present(address, $0), wanted[$0])
        }
        guard !different.isEmpty else { return }
        add(.exists, address: address, column: nil)
        guard policy == .force else { return }
        let row = Row.make(kind: .update, layer: layer.id, columnCount: wanted.columnCount)
        for column in different { row[column] = wanted[column] }
        put(row, address: address, wanted: wanted)
    }

    private mutating func planUpdate(
        _ address: ObjectAddress, _ change: UndoStep.ObjectChange, expected: Row, wanted: Row, exists: Bool
    ) {
        guard exists else { return add(.deleted, address: address, column: nil) }
        let row = Row.make(kind: .update, layer: layer.id, columnCount: wanted.columnCount)
        for column in wanted.columnIndices where wanted.isSet(column) && !isDerived(column, address) {
            // The step also has positions that are the same before and after.
            if Value.areSame(expected[column], wanted[column]) || Value.areSame(present(address, column), wanted[column])
                || isBesideReference(column, of: address, from: expected, to: wanted)
            {
                continue
            }
            if let lost = lostValue(address, column, expected: expected, contested: change.contested) {
                add(
                    .changed, address: address, column: column, expected: lost.value, wanted: wanted[column],
                    isReplacedByGroup: lost.byGroup)
                if policy == .skip { continue }
            }
            row[column] = wanted[column]
        }
        if !row.set.isEmpty { put(row, address: address, wanted: wanted) }
    }

    private func put(_ row: Row, address: ObjectAddress, wanted: Row) {
        // A changed row of a keyed value always has the key.
        if address.entity == context.capabilities.keyedValues, !row.isSet(KeyedColumn.key) {
            row[KeyedColumn.key] = present(address, KeyedColumn.key) ?? wanted[KeyedColumn.key]
        }
        layer.put(row, entity: address.entity, key: address.key)
    }

    // MARK: Relationships

    /// Returns whether an object exists after the plan.
    private func willExist(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        switch layer.row(entity, key)?.kind {
        case .insert: true
        case .delete: false
        case .update, nil: try context.exists(entity, key)
        }
    }

    /// Drops references to objects that do not exist.
    private mutating func settleReferences() throws {
        for address in step.objects.keys {
            let references = context.capabilities.rules.references[address.entity]
            guard let row = layer.row(address.entity, address.key), row.kind != .delete else { continue }
            let columns = context.storedModel.entities[address.entity].columns
            for column in columns.indices(as: ColumnIndex.self) where references.contains(column) && row.isSet(column) {
                guard let key = row[column].referenceKey, let destination = columns[column].destination,
                    try !willExist(destination, key)
                else { continue }
                add(.missingDestination, address: address, column: column, wanted: row[column])
                if row.kind == .insert || policy == .force { row[column] = .null } else { row.clear(column) }
            }
            try settlePositions(of: address, row)
            if row.set.isEmpty { layer.remove(entity: address.entity, key: address.key) }
        }
    }

    /// Drops one end of a one-to-one relationship if the other end stays as it is (S052), because it has been changed since.
    private func settlePairs() throws {
        let rules = context.capabilities.rules
        // The policy `force` reverts both ends, and the context then releases the objects that were related since.
        guard rules.hasPairs, policy != .force else { return }
        var hasDropped = true
        while hasDropped {
            hasDropped = false
            for address in step.objects.keys {
                guard let row = layer.row(address.entity, address.key), row.kind != .delete else { continue }
                for pair in rules.pairs[address.entity] where row.isSet(pair.column) {
                    if try agrees(pair, of: address, row: row) { continue }
                    if row.kind == .insert {
                        // The column of a new object stays set, so that another round would not change it.
                        if row[pair.column].isNull { continue }
                        row[pair.column] = .null
                    } else {
                        row.clear(pair.column)
                    }
                    hasDropped = true
                }
                if row.set.isEmpty { layer.remove(entity: address.entity, key: address.key) }
            }
        }
    }

    /// Returns whether the planned end of a pair agrees with its partners after the plan: the wanted one refers back, and the present one
    /// does not.
    private func agrees(_ pair: RelationshipRules.Pair, of address: ObjectAddress, row: Row) throws -> Bool {
        let after = LayeredView(base: view.base, layers: [layer] + view.layers)
        func partner(of key: ObjectKey) throws -> ObjectKey? {
            try after.value(pair.destination, key: key, column: pair.back)?.referenceKey
        }
        let (wanted, former) = (row[pair.column].referenceKey, present(address, pair.column)?.referenceKey)
        if let wanted, try partner(of: wanted) != address.key { return false }
        guard let former, former != wanted else { return true }
        return try partner(of: former) != address.key
    }

    private mutating func planLinks() throws {
        for (pair, isLinkedAfter) in step.links {
            let wanted = isRedo ? isLinkedAfter : !isLinkedAfter
            guard isLinked(pair) != wanted else {
                continue
            }
            if isRedo, !wanted, try isHeld(pair) { continue }
            let ends = schema.links[pair.link]
            guard try !wanted || willExist(ends.source, pair.source) && willExist(ends.destination, pair.destination) else {
                let source = ObjectAddress(entity: ends.source, key: pair.source)
                let destination = ObjectAddress(entity: ends.destination, key: pair.destination)
                let isSourceThere = try willExist(ends.source, pair.source)
                let (address, missing) = isSourceThere ? (source, destination) : (destination, source)
                // The group has deleted an object to which it had added the pair.
                if isRedo, isDeletion(missing) { continue }
                if try willExist(address.entity, address.key) {
                    var missed = conflict(.missingDestination, address: address, column: nil, wanted: .reference(missing.key))
                    missed.form.destination = context.storedModel.entities[missing.entity].name
                    conflicts.append(missed)
                }
                continue
            }
            layer.setLink(pair.link, from: pair.source, to: pair.destination, linked: wanted)
            if !wanted { try deletePlaces(of: pair) }
        }
    }

    /// Whether the group deletes an object.
    private func isDeletion(_ address: ObjectAddress) -> Bool { step.objects[address].map { $0.after == nil } ?? false }

    /// Whether a pair of two objects that the group deletes stays. This is so if neither can be deleted now, or if only one can and its deny
    /// rule keeps the pair.
    private func isHeld(_ pair: ChangeLog.ChangedPair) throws -> Bool {
        let link = schema.links[pair.link]
        let source = ObjectAddress(entity: link.source, key: pair.source)
        let destination = ObjectAddress(entity: link.destination, key: pair.destination)
        guard isDeletion(source), isDeletion(destination) else { return false }
        let stay = (try willExist(source.entity, source.key), try willExist(destination.entity, destination.key))
        if stay.0 == stay.1 { return stay.0 }
        let direction: LinkDirection = stay.0 ? .backward : .forward
        let deleted = stay.0 ? destination : source
        return context.capabilities.rules.rule(of: pair.link, direction, from: deleted.entity) == .deny
    }

    /// Removes the remaining pairs of deleted objects. Returns a conflict for each object with pairs that the step did not make.
    private mutating func unlinkDeleted() throws -> [UndoConflict] {
        var found: [UndoConflict] = []
        for address in deleted {
            var isLinked = false
            for (number, link) in schema.links.enumerated(as: LinkIndex.self)
            where !context.capabilities.rules.links[number].mayDangle {
                if link.source == address.entity {
                    for other in try view.related(.link(number, .forward, destination: link.destination), to: address.key)
                    where layer.links[number].forward[address.key]?[other] == nil {
                        let isThere = try willExist(link.destination, other)
                        if isThere, isRuled(number, .forward, of: address.entity) { continue }
                        layer.setLink(number, from: address.key, to: other, linked: false)
                        isLinked = isLinked || isThere
                    }
                }
                if link.destination == address.entity {
                    for other in try view.related(.link(number, .backward, destination: link.source), to: address.key)
                    where layer.links[number].backward[address.key]?[other] == nil {
                        let isThere = try willExist(link.source, other)
                        if isThere, isRuled(number, .backward, of: address.entity) { continue }
                        layer.setLink(number, from: other, to: address.key, linked: false)
                        isLinked = isLinked || isThere
                    }
                }
            }
            if isLinked { found.append(conflict(.referenced, address: address, column: nil)) }
        }
        return found
    }

    /// Whether a rule decides about the objects at the other ends: see ``settleConsequences()``.
    private func isRuled(_ link: LinkIndex, _ direction: LinkDirection, of entity: EntityIndex) -> Bool {
        context.capabilities.rules.rule(of: link, direction, from: entity) != nil
    }

    /// Removes the pairs of the objects that a cascade deletes. A save removes only the pairs of deleted objects that were saved.
    ///
    /// - Parameter planned: The objects that the plan deletes.
    private mutating func unlinkConsequences(_ planned: Set<ObjectAddress>) throws {
        for address in planned {
            for (number, link) in schema.links.enumerated(as: LinkIndex.self)
            where !context.capabilities.rules.links[number].mayDangle {
                if link.source == address.entity {
                    for other in try view.related(.link(number, .forward, destination: link.destination), to: address.key)
                    where planned.contains(ObjectAddress(entity: link.destination, key: other))
                        || !isRuled(number, .forward, of: address.entity)
                    {
                        consequences.setLink(number, from: address.key, to: other, linked: false)
                    }
                }
                if link.destination == address.entity {
                    for other in try view.related(.link(number, .backward, destination: link.source), to: address.key)
                    where planned.contains(ObjectAddress(entity: link.source, key: other))
                        || !isRuled(number, .backward, of: address.entity)
                    {
                        consequences.setLink(number, from: other, to: address.key, linked: false)
                    }
                }
            }
        }
    }

    /// Applies delete rules to the objects that still refer to deleted ones. Returns a conflict for each deleted object with such objects,
    /// those whose deletion a rule denies apart. A rule that denies a part of a cascade denies the deletion with which the cascade begins.
    ///
    /// The relations that the step made are reverted before, so the remaining ones were made since.
    private mutating func settleConsequences() throws -> (related: [UndoConflict], denied: [UndoConflict]) {
        let rules = context.capabilities.rules
        var related: Set<ObjectAddress> = []
        var maybeDenied: [(address: ObjectAddress, origin: ObjectAddress)] = []
        for address in deleted where rules.hasConsequences(address.entity) {
            let known = try remainingConsequences(of: address, rules)
            if step.objects[address] != nil, !known.isEmpty { related.insert(address) }
            if known.contains(where: \.isDenial) { maybeDenied.append((address, address)) }
        }
        // Only the policy `force` makes the consequences, which may delete what has denied a deletion.
        if policy == .force { maybeDenied += try cascade(rules) }
        let denied = try Set(
            maybeDenied.filter { try remainingConsequences(of: $0.address, rules).contains(where: \.isDenial) }.map(\.origin))
        return (
            related.subtracting(denied).map { conflict(.referenced, address: $0, column: nil) },
            denied.map { conflict(.referenced, address: $0, column: nil) }
        )
    }

    /// Makes the consequences of the deletions. Returns the objects of cascades whose deletion a rule denies while others still refer to them,
    /// each with the deletion with which its cascade begins.
    private mutating func cascade(_ rules: RelationshipRules) throws -> [(address: ObjectAddress, origin: ObjectAddress)] {
        var maybeDenied: [(address: ObjectAddress, origin: ObjectAddress)] = []
        var waiting = deleted.map { (address: $0, origin: $0) }
        var isPlanned = Set(deleted)
        while let (address, origin) = waiting.popLast() {
            guard rules.hasConsequences(address.entity) else { continue }
            for consequence in try remainingConsequences(of: address, rules) {
                switch consequence {
                case .clear(let entity, let key, let column):
                    let count = context.storedModel.entities[entity].columns.count
                    let row =
                        consequences.row(entity, key) ?? Row.make(kind: .update, layer: consequences.id, columnCount: count)
                    row[column] = .null
                    consequences.put(row, entity: entity, key: key)
                case .delete(let entity, let key, _):
                    let other = ObjectAddress(entity: entity, key: key)
                    guard isPlanned.insert(other).inserted else { continue }
                    consequences.put(deletion(of: other, consequences.id), entity: entity, key: key)
                    waiting.append((other, origin))
                case .deny: maybeDenied.append((address, origin))
                }
            }
        }
        if !consequences.isEmpty { try unlinkConsequences(isPlanned) }
        return maybeDenied
    }

    /// Returns the consequences of a deletion for the objects that refer to the object after the plan.
    private func remainingConsequences(
        of address: ObjectAddress, _ rules: RelationshipRules
    ) throws -> [DeletionConsequence] {
        let after = LayeredView(base: view.base, layers: [consequences, layer] + view.layers)
        let expected = step.objects[address].flatMap { isRedo ? $0.before : $0.after }
        let known = try rules.consequences(of: address.entity, address.key, in: after) { column in
            let value = present(address, column)
            return value == expected?[column] ? nil : value?.referenceKey
        }
        // The program has deleted the object in spite of such a rule. The save refuses it, as it did before the undo.
        return isRedo && step.denied.contains(address) ? known.filter { !$0.isDenial } : known
    }

    // MARK: Conflicts

    private mutating func add(
        _ kind: UndoConflict.Kind, address: ObjectAddress, column: ColumnIndex?, expected: Value? = nil, wanted: Value? = nil,
        isReplacedByGroup: Bool = false
    ) {
        var added = conflict(kind, address: address, column: column, expected: expected, wanted: wanted)
        added.isReplacedByGroup = isReplacedByGroup
        conflicts.append(added)
    }

    private func conflict(
        _ kind: UndoConflict.Kind, address: ObjectAddress, column: ColumnIndex?, expected: Value? = nil, wanted: Value? = nil
    ) -> UndoConflict {
        var conflict = UndoConflict(kind, at: address, column: column, in: context)
        conflict.expected = expected
        conflict.present = column.flatMap { present(address, $0) }
        conflict.wanted = wanted
        return conflict
    }
}

extension [UndoConflict] {
    fileprivate mutating func sort() {
        sort {
            ($0.objectID.entity, $0.objectID.key, $0.property ?? "") < ($1.objectID.entity, $1.objectID.key, $1.property ?? "")
        }
    }
}
