import StoreInterface
import StoreModel

/// The checks of a save besides those of the versions of the objects that it changes (S100).
struct ConflictChecks: Sendable {
    /// Unchanged objects that the program wants to be checked.
    var watched: Set<ObjectID> = []
    /// The changed or watched objects that other saves changed below the context without a merge. The context shows the newer values, so a
    /// comparison of versions would find no conflict.
    var unmerged: [ObjectAddress: Unmerged] = [:]

    /// The changes that other saves made in one object.
    struct Unmerged: Sendable {
        var columns = ColumnSet()
        /// The values of columns before those saves, over which the context made its changes. Missing if they are not known.
        var before: [ColumnIndex: Value] = [:]
        /// Whether the object is missing in the state over which the context made its changes. Another context has inserted the same key.
        var isNew = false
    }

    /// The watched objects that saves have changed since the state by which a child's program has decided. These say nothing about changes
    /// of the objects, which other contexts may have made over the newer state.
    var outdated: [ObjectAddress: Unmerged] = [:]

    var isEmpty: Bool { watched.isEmpty && unmerged.isEmpty && outdated.isEmpty }

    mutating func formUnion(_ other: Self) {
        watched.formUnion(other.watched)
        for (address, known) in other.unmerged { note(address, known.columns, before: known.before, isNew: known.isNew) }
        for (address, known) in other.outdated { noteOutdated(address, known.columns, before: known.before) }
    }

    /// Adds later saves. Values that are known from before earlier ones stay.
    mutating func note(
        _ address: ObjectAddress, _ columns: ColumnSet, before: [ColumnIndex: Value] = [:], isNew: Bool = false
    ) {
        unmerged[address, default: Unmerged(isNew: isNew)].columns.formUnion(columns)
        unmerged[address]?.before.merge(before) { earlier, _ in earlier }
    }

    /// Adds the changes of saves that a child has not seen to those of a watched object.
    mutating func noteOutdated(_ address: ObjectAddress, _ columns: ColumnSet, before: [ColumnIndex: Value]) {
        outdated[address, default: Unmerged()].columns.formUnion(columns)
        outdated[address]?.before.merge(before) { earlier, _ in earlier }
    }
}
