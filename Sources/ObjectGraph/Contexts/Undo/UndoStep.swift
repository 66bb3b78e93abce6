import StoreInterface
import StoreModel

/// The difference that a group of changes made: for each changed object and pair, the state before and after.
///
/// A step keeps rows, not layers or snapshots, so it neither retains pages of the store nor depends on later saves.
struct UndoStep {
    /// The change of one object. A row that is nil stands for an object that does not exist.
    ///
    /// If the object exists before and after, both rows have exactly the changed columns set, and those of ``positions``. Otherwise the
    /// only row has all columns. Rows may be shared with sealed layers and are never changed.
    struct ObjectChange {
        var before: Row?
        var after: Row?
        /// The positions in ordered lists that both rows have beside changed references, also if the position has not changed: an object
        /// that leaves its list keeps it. A position is only valid in the list beside it (S046).
        var positions = ColumnSet()
        /// The values that the step found between two of its changes and had not set, usually those of others. Reverting the step would lose
        /// them.
        var contested: Row?
        /// For an object that the step deletes: the last values of the columns that it had changed before, or that are contested.
        var last: Row?
    }

    private(set) var objects: [ObjectAddress: ObjectChange] = [:]
    /// The changed pairs of links, each with whether the pair is linked afterwards. Before, it was the opposite.
    private(set) var links: [ChangeLog.ChangedPair: Bool] = [:]
    /// The keys of changed keyed values, by their objects. A change of a value alone does not contain its key.
    private(set) var keys: [ObjectKey: Value] = [:]
    /// The pairs of changed positions in many-to-many relationships. A change of a position alone does not contain its pair.
    private(set) var places: [ObjectAddress: PlacedPair] = [:]
    /// The records of the types of the collections in which the step changes entries or the types themselves.
    private(set) var types: [CollectionName: RecordedTypes] = [:]
    /// The pairs of deleted objects that a rule keeps as long as their other end exists.
    private var held: [ChangeLog.ChangedPair: HeldPair] = [:]

    /// The objects whose deletion a rule denied already when it was undone. A redo leaves the decision to the save.
    var denied: Set<ObjectAddress> = []

    /// A record of the types of a collection, as bytes. A renamed type keeps the object. A collection that begins anew has another one.
    struct RecordedTypes {
        var object: ObjectKey
        var value: Value
    }

    private struct HeldPair {
        var deleted: ObjectAddress
        var other: ObjectAddress
    }

    /// The approximate memory of the step, counting rows that are shared with unsaved changes.
    private(set) var byteCount = 0

    var isEmpty: Bool { objects.isEmpty && links.isEmpty }

    // MARK: Adding changes

    mutating func set(_ change: ObjectChange?, at address: ObjectAddress) {
        if let old = objects[address] { byteCount -= old.byteCount }
        objects[address] = change
        if let change { byteCount += change.byteCount }
    }

    mutating func set(_ pair: ChangeLog.ChangedPair, linked: Bool) {
        if links.updateValue(linked, forKey: pair) == nil { byteCount += Self.bytesPerPair }
    }

    mutating func note(key: Value, of object: ObjectKey) {
        if keys.updateValue(key, forKey: object) == nil { byteCount += Self.bytesPerPair + key.heapByteCount }
    }

    mutating func note(place pair: PlacedPair, at address: ObjectAddress) {
        if places.updateValue(pair, forKey: address) == nil { byteCount += Self.bytesPerPair }
    }

    mutating func note(types recorded: RecordedTypes, of collection: CollectionName) {
        if types.updateValue(recorded, forKey: collection) == nil {
            byteCount += Self.bytesPerPair + recorded.value.heapByteCount
        }
    }

    /// Records the pair of a deleted object, which ends only if the group also deletes its other end.
    mutating func hold(_ pair: ChangeLog.ChangedPair, of deleted: ObjectAddress, until other: ObjectAddress) {
        if held.updateValue(HeldPair(deleted: deleted, other: other), forKey: pair) == nil { byteCount += Self.bytesPerPair }
    }

    private func ends(_ address: ObjectAddress) -> Bool { objects[address].map { $0.after == nil } ?? false }

    /// Appends the changes of a later step. Changes that cancel each other disappear.
    mutating func append(_ newer: UndoStep) {
        if isEmpty {
            self = newer
            return
        }
        // The objects that this step inserts and the newer one deletes.
        var gone: Set<ObjectAddress> = []
        for (address, change) in newer.objects {
            if let own = objects[address], own.before == nil, change.after == nil { gone.insert(address) }
            set(objects[address].map { $0.followed(by: change) } ?? change, at: address)
        }
        for (pair, linked) in newer.links {
            // Two changes of a pair cancel each other, unless a change that is not recorded has taken the first one back.
            if links[pair] == !linked {
                forget(pair)
            } else {
                set(pair, linked: linked)
            }
        }
        for (object, key) in newer.keys { note(key: key, of: object) }
        for (address, pair) in newer.places { note(place: pair, at: address) }
        for (collection, recorded) in newer.types { note(types: recorded, of: collection) }
        for (pair, place) in newer.held {
            // Neither before nor after the changes is there an object that could have the pair.
            if gone.contains(place.deleted) { forget(pair) } else { hold(pair, of: place.deleted, until: place.other) }
        }
        for (pair, place) in held where ends(place.deleted) && ends(place.other) {
            held[pair] = nil
            byteCount -= Self.bytesPerPair
            if links[pair] == nil { set(pair, linked: false) }
        }
    }

    private mutating func forget(_ pair: ChangeLog.ChangedPair) {
        if links.removeValue(forKey: pair) != nil { byteCount -= Self.bytesPerPair }
    }

    /// Adapts one side of the step to later values that are not undone by themselves, so that they are no conflict.
    ///
    /// - Parameters:
    ///   - later: The later values.
    ///   - isUndone: Whether this step has been undone, so that its states before are the present ones.
    /// - Returns: The values of columns that the step does not have.
    mutating func adapt(to later: [ObjectAddress: Row], isUndone: Bool) -> [ObjectAddress: Row] {
        var left: [ObjectAddress: Row] = [:]
        for (address, new) in later {
            guard let own = objects[address] else {
                left[address] = new
                continue
            }
            // For a step that has inserted or deleted the object, older values are none of the present ones.
            guard let present = isUndone ? own.before : own.after else { continue }
            let (row, rest) = (present.copy(layer: 0), new.copy(layer: 0))
            row.set.forEach { column in
                guard new.isSet(column) else { return }
                row[column] = new[column]
                rest.clear(column)
            }
            var adapted = own
            if isUndone { adapted.before = row } else { adapted.after = row }
            set(adapted, at: address)
            if !rest.set.isEmpty { left[address] = rest }
        }
        return left
    }

    private static let bytesPerPair = 64
}

extension UndoStep.ObjectChange {
    /// Returns the change of an object that existed before and exists afterwards, limited to the columns that differ. Returns nil if
    /// none do.
    ///
    /// - Parameter positions: The columns that the change has also if they do not differ.
    /// - Precondition: Both rows have the same columns set.
    static func update(from before: Row, to after: Row, positions: ColumnSet = ColumnSet()) -> Self? {
        var (same, unchangedCount) = (ColumnSet(), 0)
        before.set.forEach { column in
            guard Value.areSame(before[column], after[column]) else { return }
            unchangedCount += 1
            if !positions.contains(column) { same.insert(column) }
        }
        guard unchangedCount < before.set.count else { return nil }
        if same.isEmpty { return Self(before: before, after: after, positions: positions) }
        let (old, new) = (before.copy(layer: 0), after.copy(layer: 0))
        same.forEach {
            old.clear($0)
            new.clear($0)
        }
        return Self(before: old, after: new, positions: positions)
    }

    /// The values after the change, without positions that have not changed.
    var changedValues: Row? {
        guard let before, let after, !positions.isEmpty else { return after }
        let row = after.copy(layer: 0)
        positions.forEach { if after.isSet($0), Value.areSame(before[$0], after[$0]) { row.clear($0) } }
        return row
    }

    /// Returns the combination with a later change of the same object; nil if they cancel each other.
    func followed(by newer: Self) -> Self? {
        guard var joined = joined(with: newer), let columns = (joined.before ?? joined.after)?.set else { return nil }
        joined.contested = contestedValues(until: newer, in: columns, without: joined.positions)
        if joined.after == nil { joined.last = lastValues(before: newer, contested: joined.contested?.set ?? ColumnSet()) }
        return joined
    }

    private func joined(with newer: Self) -> Self? {
        var positions = self.positions
        positions.formUnion(newer.positions)
        switch (before, newer.after) {
        case (nil, nil): return nil
        case (nil, let last?): return Self(before: nil, after: after.map { $0.overlaid(by: last) } ?? last)
        case (let first?, nil): return Self(before: newer.before.map { $0.overlaid(by: first) } ?? first, after: nil)
        case (let first?, let last?):
            let old = newer.before.map { $0.overlaid(by: first) } ?? first
            let new = after.map { $0.overlaid(by: last) } ?? last
            return Self.update(from: old, to: new, positions: positions)
        }
    }

    /// Returns the values that others gave to columns between this change and a later one, or within one of the two; nil if there are none.
    ///
    /// - Parameters:
    ///   - columns: The columns of both changes together. The two may cancel each other in the others.
    ///   - besideReferences: The positions beside references that both changes together change. They are in lists that the object leaves.
    private func contestedValues(until newer: Self, in columns: ColumnSet, without besideReferences: ColumnSet) -> Row? {
        var noted = contested?.copy(layer: 0)
        func note(_ values: Row, where isContested: (ColumnIndex) -> Bool) {
            values.set.forEach { column in
                if let before, before.isSet(column), Value.areSame(before[column], values[column]) {
                    // Reverting both changes restores this value.
                    noted?.clear(column)
                } else if isContested(column) {
                    let row = noted ?? Row.make(kind: .update, layer: 0, columnCount: values.columnCount)
                    row[column] = values[column]
                    noted = row
                }
            }
        }
        if let found = newer.before { note(found) { isReplaced($0, by: found[$0]) } }
        if let between = newer.contested { note(between) { _ in true } }
        guard let row = noted else { return nil }
        row.set.forEach { if !columns.contains($0) || besideReferences.contains($0) { row.clear($0) } }
        return row.set.isEmpty ? nil : row
    }

    /// Returns whether the value that a later change has found is not the one that this change has left.
    private func isReplaced(_ column: ColumnIndex, by found: Value) -> Bool {
        // Others have restored the object that this change deletes.
        guard let after else { return true }
        guard after.isSet(column), !Value.areSame(after[column], found) else { return false }
        // A position that this change has not changed is not reverted by itself.
        return before.map { !Value.areSame($0[column], after[column]) } ?? true
    }

    /// Returns the values that a later deletion has found in the columns of this change, and in contested columns.
    private func lastValues(before deletion: Self, contested: ColumnSet) -> Row? {
        guard let found = deletion.before else { return last }
        var columns = after?.set ?? ColumnSet()
        columns.formUnion(contested)
        if let known = deletion.last { columns.formUnion(known.set) }
        if columns.isEmpty { return nil }
        let newest = deletion.last.map { found.overlaid(by: $0) } ?? found
        let row = Row.make(kind: .update, layer: 0, columnCount: newest.columnCount)
        columns.forEach { row[$0] = newest[$0] }
        return row
    }

    var byteCount: Int {
        var count = 96 + (before?.byteCount ?? 0) + (after?.byteCount ?? 0)
        if let contested { count += contested.byteCount }
        if let last { count += last.byteCount }
        return count
    }
}

extension Row {
    /// Returns a copy in which the set columns of another row replace those of this one.
    func overlaid(by newer: Row) -> Row {
        let row = copy(layer: 0)
        newer.set.forEach { row[$0] = newer[$0] }
        return row
    }

    /// The approximate memory of the row.
    fileprivate var byteCount: Int {
        var count = 80 + columnCount * MemoryLayout<Value>.stride
        set.forEach { count += self[$0].heapByteCount }
        return count
    }
}

extension Value {
    /// The bytes that the value has outside of its row.
    var heapByteCount: Int {
        switch self {
        case .string(let text): text.utf8.count > 15 ? text.utf8.count + 32 : 0
        case .data(let data): data.count > 14 ? data.count + 64 : 0
        default: 0
        }
    }
}
