/// The history's record of a deleted object: the values of the columns that its model preserves.
public struct Tombstone: Sendable, Hashable, Codable {
    /// The preserved value of one column.
    public struct Preserved: Sendable, Hashable, Codable {
        /// The column.
        public var column: ColumnIndex
        /// The value of the column before the deletion.
        public var value: Value

        /// Creates the preserved value of a column.
        public init(column: ColumnIndex, value: Value) {
            self.column = column
            self.value = value
        }
    }

    /// The deleted object's entity.
    public var entity: EntityIndex
    /// The key of the deleted object.
    public var key: ObjectKey
    /// The preserved values, ascending by column.
    public var values: [Preserved]

    /// Creates a tombstone. `values` must be ascending by column.
    public init(entity: EntityIndex, key: ObjectKey, values: [Preserved]) {
        self.entity = entity
        self.key = key
        self.values = values
    }
}

extension ChangeSet {
    /// Adds the tombstones of the deleted objects, with their values before the deletion. O(deleted objects of entities that
    /// preserve values).
    ///
    /// - Parameters:
    ///   - columns: The columns to preserve, per entity. Entities beyond its end preserve nothing.
    ///   - reader: The state before the deletion. Objects that it does not have get no tombstone.
    public mutating func markDeleted(preserving columns: [ColumnSet], from reader: any ObjectReader) throws {
        for change in entities where change.entity.rawValue < columns.count && !columns[change.entity].isEmpty {
            for key in change.deletedKeys {
                var values: [Tombstone.Preserved] = []
                try columns[change.entity].forEach { column in
                    if let value = try reader.value(change.entity, key: key, column: column) {
                        values.append(.init(column: column, value: value))
                    }
                }
                if !values.isEmpty { tombstones.append(Tombstone(entity: change.entity, key: key, values: values)) }
            }
        }
    }
}

/// A condition on the oldest saves of a history, which selects the saves to delete.
public enum HistoryCut: Sendable, Hashable {
    /// All saves up to this one.
    case through(Generation)
    /// The oldest saves, up to the first save that is not older than this time, in microseconds since the beginning of 1970.
    case before(time: Int64)

    /// Returns whether a save at the beginning of a history is deleted.
    public func takes(_ changes: ChangeSet) -> Bool {
        switch self {
        case .through(let generation): changes.generation <= generation
        case .before(let time): changes.metadata.time < time
        }
    }
}
