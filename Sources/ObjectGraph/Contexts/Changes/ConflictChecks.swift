import StoreModel

/// The checks of a save besides those of the versions of the objects that it changes (S100).
struct ConflictChecks: Sendable {
    /// Unchanged objects that the program wants to be checked.
    var watched: Set<ObjectID> = []
    /// The changed or watched objects that other saves changed below the context without a merge, with the columns that those changed. The
    /// context shows the newer values, so a comparison of versions would find no conflict.
    var unmerged: [ObjectAddress: ColumnSet] = [:]

    var isEmpty: Bool { watched.isEmpty && unmerged.isEmpty }

    mutating func formUnion(_ other: Self) {
        watched.formUnion(other.watched)
        for (address, columns) in other.unmerged { note(address, columns) }
    }

    mutating func note(_ address: ObjectAddress, _ columns: ColumnSet) {
        unmerged[address, default: ColumnSet()].formUnion(columns)
    }
}
