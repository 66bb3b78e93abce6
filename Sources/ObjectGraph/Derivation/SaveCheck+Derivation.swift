import StoreInterface
import StoreModel

/// Computes derived values inside the writer's transaction, against the state that the save follows (S200).
///
/// A derived value is written with the save that changes what it is derived from, whichever context, child, batch or process made that
/// save. It is never compared between contexts, so that it makes no conflict.
extension SaveCheck {
    /// Whether another save has changed an object since the context read it, beyond its derived values.
    func hasChanged(_ entity: EntityIndex, key: ObjectKey, base: LayeredView, theirs: RowVersion?) throws -> Bool {
        let before = try base.version(entity, key)
        let isSame = numbers.areSame(before, theirs)
        if isSame, !numbers.isRewritten(before) { return false }
        let derived = writer.derived?.sets[entity] ?? ColumnSet()
        guard isSame || !derived.isEmpty || numbers.isWithdrawn(before), before != nil, theirs != nil else { return true }
        // The other save may have changed derived values only. A save that was rewritten may have other values, and one that was withdrawn
        // may have been saved again with the same.
        let current = state.view
        for column in writer.store.schema.entities[entity].columnIndices where !derived.contains(column) {
            let (before, after) = try (
                base.value(entity, key: key, column: column), current.value(entity, key: key, column: column)
            )
            if !Value.areSame(before, after) { return true }
        }
        return false
    }

    /// Drops derived values from the updates of the layer. A batch may contain some, and a deferred save that is checked again has those
    /// of its first check. Rows that set all columns keep them, and are corrected by ``deriveValues()``.
    mutating func forgetDerivedValues() {
        guard let derived = writer.derived else { return }
        var affected: [ObjectAddress] = []
        for (entity, columns) in derived.sets.enumerated(as: EntityIndex.self) where !columns.isEmpty {
            layer.forEachRow(of: entity, \.updated) { key, row in
                let set = row.set
                if !set.intersection(columns).isEmpty, set.count < row.columnCount {
                    affected.append(.init(entity: entity, key: key))
                }
            }
        }
        for address in affected {
            let layer = writable()
            guard let row = layer.row(address.entity, address.key)?.copy(layer: layer.id) else { continue }
            derived.sets[address.entity].forEach { row.clear($0) }
            if row.set.isEmpty {
                layer.remove(entity: address.entity, key: address.key)
            } else {
                layer.put(row, entity: address.entity, key: address.key)
            }
        }
    }

    /// Writes the derived values that the layer changes. Everything else of the layer has been checked.
    ///
    /// Counts and sums of integers over a column of references cost O(changed objects). Other aggregates read the related objects of each
    /// object whose value may change. A value at the end of a path is written to each object that leads there.
    mutating func deriveValues() throws {
        guard let derived = writer.derived else { return }
        for column in derived.columns {
            var changes = DerivedChanges(column, layer: layer, before: state.view, after: after, rules: request.rules)
            try changes.collect()
            try write(changes, of: column, derived)
        }
    }

    private mutating func write(_ changes: DerivedChanges, of column: DerivedColumns.Column, _ derived: DerivedColumns) throws {
        // Each view refers to the layer before it was written: derived columns are read by none.
        let (before, after) = (state.view, after)
        for (key, difference) in changes.differences {
            guard try mayWrite(column.entity, key) else { continue }
            let old = try before.value(column.entity, key: key, column: column.column) ?? .null
            let start = old.referencelessInteger
            let (sum, overflows) = start.addingReportingOverflow(difference)
            let value = try overflows ? derived.value(of: column, key, in: after) : column.type.widened(.int(sum))
            try put(column, key: key, value: value, old: old)
        }
        for key in changes.recomputed {
            guard try mayWrite(column.entity, key) else { continue }
            try put(
                column, key: key, value: try derived.value(of: column, key, in: after),
                old: before.value(column.entity, key: key, column: column.column))
        }
    }

    /// Whether the object exists after the save.
    private func mayWrite(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        guard let row = layer.row(entity, key) else { return try state.view.exists(entity, key) }
        switch row.kind {
        case .insert: return true
        case .delete: return false
        case .update: return try row.set.count == row.columnCount || state.view.exists(entity, key)
        }
    }

    private mutating func put(_ column: DerivedColumns.Column, key: ObjectKey, value: Value, old: Value?) throws {
        let known = layer.row(column.entity, key)
        if let known, known.isSet(column.column) {
            if Value.areSame(known[column.column], value) { return }
        } else if Value.areSame(old, value) {
            return
        }
        let schema = writer.store.schema.entities[column.entity]
        // A text may become longer in lower case.
        if let error = StoreError.tooLarge(value, in: schema, column.column) { throw error }
        guard schema.columns[column.column].accepts(value) else {
            var errors = ValidationErrors()
            errors.append(
                ObjectID(store: writer.store.identity, entity: column.entity, key: key),
                InvalidValue(schema, column: column.column, value: value), listingAtMost: ValidationErrors.listedByWriter)
            throw SaveError.validation(errors)
        }
        let layer = writable()
        if let known, known.layer == layer.id {
            known[column.column] = value
            return
        }
        let row =
            known?.copy(layer: layer.id) ?? Row.make(kind: .update, layer: layer.id, columnCount: schema.columns.count)
        row[column.column] = value
        layer.put(row, entity: column.entity, key: key)
    }
}

/// The objects whose value of one derived column a layer may change.
private struct DerivedChanges {
    private let derived: DerivedColumns.Column
    private let layer: Layer
    private let before: LayeredView
    private let after: LayeredView
    private let rules: RelationshipRules
    /// The differences from the values before the save.
    private(set) var differences: [ObjectKey: Int64] = [:]
    /// The objects whose values are computed anew.
    private(set) var recomputed: Set<ObjectKey> = []

    init(
        _ derived: DerivedColumns.Column, layer: Layer, before: LayeredView, after: LayeredView, rules: RelationshipRules
    ) {
        self.derived = derived
        self.layer = layer
        self.before = before
        self.after = after
        self.rules = rules
    }

    mutating func collect() throws {
        collectOwn()
        switch derived.derivation.relation {
        case .referrers(let entity, let column): try collectReferrers(entity, column)
        case .link(let link, let direction, let far): try collectPartners(link, direction: direction, far: far)
        case nil: try collectPath()
        }
        if !recomputed.isEmpty { for key in recomputed { differences[key] = nil } }
    }

    /// Adds the rows that have a value of the derived column, which may be wrong: new objects, and updates that set all columns.
    private mutating func collectOwn() {
        let column = derived.column
        let isSummed = isSummed
        for mask in [\LayerPage.inserted, \.updated] {
            layer.forEachRow(of: derived.entity, mask) { key, row in
                guard row.isSet(column) else { return }
                if !isSummed {
                    if row.kind == .update || row[column] != derived.missing || derived.derivation.relation == nil {
                        recomputed.insert(key)
                    }
                } else if row.kind == .update || row[column] != derived.missing {
                    differences[key, default: 0] += 0
                }
            }
        }
        guard mayFindReferrers else { return }
        layer.forEachRow(of: derived.entity, \.inserted) { key, _ in recomputed.insert(key) }
    }

    private var isSummed: Bool {
        if case .referrers = derived.derivation.relation { derived.isSummable } else { false }
    }

    /// Whether references to a missing object may exist, so that an object which is inserted with its old id has related objects at once.
    private var mayFindReferrers: Bool {
        guard case .referrers(let entity, let column) = derived.derivation.relation else { return false }
        return rules.dangling[entity].contains(column)
    }

    // MARK: Aggregates

    private mutating func collectReferrers(_ entity: EntityIndex, _ reference: ColumnIndex) throws {
        let column = derived.derivation.column
        let isSummed = isSummed
        var changes: [(owner: ObjectKey, difference: Int64)] = []
        let before = before
        try layer.forEachRow(of: entity, \.touched) { key, row in
            let isSet = row.kind != .delete && (row.isSet(reference) || column.map(row.isSet) ?? false)
            guard row.kind != .update || isSet else { return }
            let known = row.kind == .insert ? nil : try before.value(entity, key: key, column: reference)
            // The store drops an update of a missing object, unless it sets all columns.
            if known == nil, row.kind == .delete || row.kind == .update && row.set.count < row.columnCount { return }
            let old = known?.referenceKey
            let new = row.kind == .delete ? nil : row.isSet(reference) ? row[reference].referenceKey : old
            var (oldValue, newValue): (Value, Value) = (.int(1), .int(1))
            if let column {
                oldValue = try old.flatMap { _ in try before.value(entity, key: key, column: column) } ?? .null
                newValue = row.kind != .delete && row.isSet(column) ? row[column] : oldValue
                if old == nil, new != nil, known != nil, !row.isSet(column) {
                    newValue = try before.value(entity, key: key, column: column) ?? .null
                }
            }
            if old == new, oldValue == newValue { return }
            if let old { changes.append((old, isSummed ? 0 &- oldValue.integer : 0)) }
            if let new { changes.append((new, newValue.integer)) }
        }
        for change in changes {
            if isSummed {
                // A difference may not fit although the sum does. The negative of the least number does not either.
                let (sum, overflows) = (differences[change.owner] ?? 0).addingReportingOverflow(change.difference)
                differences[change.owner] = sum
                if overflows || change.difference == .min { recomputed.insert(change.owner) }
            } else {
                recomputed.insert(change.owner)
            }
        }
    }

    private mutating func collectPartners(_ link: LinkIndex, direction: LinkDirection, far: EntityIndex) throws {
        let pairs = layer.links[link]
        recomputed.formUnion((direction == .forward ? pairs.forward : pairs.backward).keys)
        let back = Relation.link(link, direction == .forward ? .backward : .forward, destination: derived.entity)
        var owners: [ObjectKey] = []
        let (before, after) = (before, after)
        try layer.forEachRow(of: far, \.deleted) { key, _ in owners += try before.related(back, to: key) }
        if let column = derived.derivation.column {
            try layer.forEachRow(of: far, \.updated) { key, row in
                if row.isSet(column) { owners += try after.related(back, to: key) }
            }
        }
        recomputed.formUnion(owners)
    }

    // MARK: Paths

    private mutating func collectPath() throws {
        let path = derived.derivation.path
        for (position, entity) in derived.pathEntities.enumerated() {
            let isLast = position == path.count
            guard let column = isLast ? derived.derivation.column : path[position] else { continue }
            var found: [ObjectKey] = []
            layer.forEachRow(of: entity, \.touched) { key, row in
                switch row.kind {
                case .update: if row.isSet(column) { found.append(key) }
                case .delete: if position > 0 { found.append(key) }
                case .insert:
                    let mayBeReferred =
                        position == 0 || rules.dangling[derived.pathEntities[position - 1]].contains(path[position - 1])
                    if mayBeReferred { found.append(key) }
                }
            }
            try addDependants(of: found, at: position)
        }
    }

    /// Adds the objects that lead to these objects along the path.
    private mutating func addDependants(of keys: [ObjectKey], at position: Int) throws {
        var keys = Set(keys)
        for step in (0..<position).reversed() {
            if keys.isEmpty { return }
            let relation = Relation.referrers(entity: derived.pathEntities[step], column: derived.derivation.path[step])
            var before: Set<ObjectKey> = []
            for key in keys { before.formUnion(try after.related(relation, to: key)) }
            keys = before
        }
        recomputed.formUnion(keys)
    }
}

extension Value {
    /// The number of an integer column; 0 for null.
    fileprivate var referencelessInteger: Int64 {
        if case .uint(let number) = self { Int64(clamping: number) } else { integer }
    }
}
