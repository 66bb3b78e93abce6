/// What the history keeps of a deleted object: the values of columns that its model preserves.
public struct Tombstone: Sendable, Hashable, Codable {
    public struct Preserved: Sendable, Hashable, Codable {
        public var column: Int
        public var value: Value

        public init(column: Int, value: Value) {
            self.column = column
            self.value = value
        }
    }

    public var entity: Int
    public var key: ObjectKey
    /// Ascending by column.
    public var values: [Preserved]

    public init(entity: Int, key: ObjectKey, values: [Preserved]) {
        self.entity = entity
        self.key = key
        self.values = values
    }
}

extension ChangeSet {
    /// Adds the tombstones of the objects that the set deletes, with their values of before.
    ///
    /// - Parameters:
    ///   - columns: by entity, which columns to preserve; entities beyond its end preserve nothing.
    ///   - reader: the state before the deletion. Objects that it does not have leave no tombstone.
    /// O(deleted objects of entities that preserve something); nothing for others.
    public mutating func markDeleted(preserving columns: [ColumnSet], from reader: any ObjectReader) throws {
        for change in entities where change.entity < columns.count && !columns[change.entity].isEmpty {
            for key in change.deletedKeys {
                var values: [Tombstone.Preserved] = []
                try columns[change.entity].forEach { column in
                    if let value = try reader.value(change.entity, key, column) {
                        values.append(.init(column: column, value: value))
                    }
                }
                if !values.isEmpty { tombstones.append(Tombstone(entity: change.entity, key: key, values: values)) }
            }
        }
    }
}

/// Which of the oldest saves of a history to delete.
public enum HistoryCut: Sendable, Hashable {
    /// Those up to this one.
    case through(Generation)
    /// From the oldest on, until one is not older than this time, in microseconds since the beginning of 1970.
    case before(time: Int64)

    /// Whether a save at the beginning of a history goes.
    public func takes(_ changes: ChangeSet) -> Bool {
        switch self {
        case .through(let generation): changes.generation <= generation
        case .before(let time): changes.origin.time < time
        }
    }
}
