/// The change that a row makes to its object.
@frozen
public enum RowKind: UInt8, Sendable {
    /// The object is new in this layer; every column is set.
    case insert
    /// The object exists below this layer; only changed columns are set.
    case update
    /// The object is deleted. Set columns keep the unsaved changes from before the deletion.
    case delete
}

/// The fixed part of a row. ``Row`` has a property for each field.
public struct RowHeader {
    /// The change that the row makes to its object.
    @usableFromInline var kind: RowKind
    /// The layer in which the row may be changed. Rows of other layers are shared and immutable.
    @usableFromInline var layer: UInt64
    /// The save that wrote the row; unsaved until the writer has accepted it.
    @usableFromInline var version: RowVersion
    /// The columns that the row sets.
    @usableFromInline var set: ColumnSet
    /// The number of columns of the entity, and of values behind the header.
    @usableFromInline let columnCount: Int

    @usableFromInline
    init(kind: RowKind, layer: UInt64, columnCount: Int) {
        self.kind = kind
        self.layer = layer
        self.version = .unsaved
        self.set = ColumnSet()
        self.columnCount = columnCount
    }
}

/// The unsaved values of one object in one layer.
///
/// A row is one allocation: the values follow the header. Reading and writing a column is O(1).
///
/// A row is written by the owner of its layer: a context, on its executor. After the hand-over to the writer, the writer
/// writes it until publication. From then on it is immutable. A row crosses threads only inside a ``Layer``.
public final class Row: ManagedBuffer<RowHeader, Value> {
    /// Creates a row in which no column is set.
    @inlinable
    package static func make(kind: RowKind, layer: UInt64, columnCount: Int) -> Row {
        let buffer = Row.create(minimumCapacity: columnCount) { _ in
            RowHeader(kind: kind, layer: layer, columnCount: columnCount)
        }
        buffer.withUnsafeMutablePointerToElements { $0.initialize(repeating: .null, count: columnCount) }
        return unsafeDowncast(buffer, to: Row.self)
    }

    deinit {
        _ = withUnsafeMutablePointers { header, values in
            values.deinitialize(count: header.pointee.columnCount)
        }
    }

    // Uses the pointer, because `header` is a class property: each use of it would be checked for exclusive access at run
    // time.

    /// The change that the row makes to its object.
    @inlinable public package(set) var kind: RowKind {
        get { withUnsafeMutablePointerToHeader { $0.pointee.kind } }
        set { withUnsafeMutablePointerToHeader { $0.pointee.kind = newValue } }
    }
    /// The id of the layer in which the row may be changed.
    @inlinable public package(set) var layer: UInt64 {
        get { withUnsafeMutablePointerToHeader { $0.pointee.layer } }
        set { withUnsafeMutablePointerToHeader { $0.pointee.layer = newValue } }
    }
    /// The save that wrote the row; unsaved until the writer has accepted it.
    @inlinable public package(set) var version: RowVersion {
        get { withUnsafeMutablePointerToHeader { $0.pointee.version } }
        set { withUnsafeMutablePointerToHeader { $0.pointee.version = newValue } }
    }
    /// The columns that the row sets.
    @inlinable public var set: ColumnSet { withUnsafeMutablePointerToHeader { $0.pointee.set } }
    /// The number of columns of the entity, set or not.
    @inlinable public var columnCount: Int { withUnsafeMutablePointerToHeader { $0.pointee.columnCount } }

    /// The positions of the columns, set or not.
    @inlinable public var columnIndices: Range<ColumnIndex> { 0..<ColumnIndex(rawValue: columnCount) }

    /// Returns whether the row sets a column. Precondition: the column is from 0 to 127.
    @inlinable public func isSet(_ column: ColumnIndex) -> Bool { set.contains(column) }

    /// The value of a column; null if the column is not set. Precondition: the column exists.
    @inlinable public package(set) subscript(column: ColumnIndex) -> Value {
        get {
            withUnsafeMutablePointers { header, values in
                precondition(column.rawValue < header.pointee.columnCount, "no such column")
                return values[column.rawValue]
            }
        }
        set {
            withUnsafeMutablePointers { header, values in
                precondition(column.rawValue < header.pointee.columnCount, "no such column")
                header.pointee.set.insert(column)
                values[column.rawValue] = newValue
            }
        }
    }

    /// Sets a column unless it already has the same value: an equal one, or NaN if both are NaN. Returns whether the column
    /// was set. Precondition: the column exists.
    @inlinable package func change(_ column: ColumnIndex, to value: Value) -> Bool {
        withUnsafeMutablePointers { header, values in
            precondition(column.rawValue < header.pointee.columnCount, "no such column")
            if Value.areSame(values[column.rawValue], value) { return false }
            header.pointee.set.insert(column)
            values[column.rawValue] = value
            return true
        }
    }

    /// Sets each unset column to the default at its position.
    package func fill(with defaults: [Value]) {
        withUnsafeMutablePointers { header, values in
            precondition(defaults.count == header.pointee.columnCount, "as many values as columns")
            for column in defaults.indices(as: ColumnIndex.self) where !header.pointee.set.contains(column) {
                values[column.rawValue] = defaults[column]
            }
            header.pointee.set = ColumnSet(first: defaults.count)
        }
    }

    /// Removes a column's change, so that the layers below show through.
    package func clear(_ column: ColumnIndex) {
        withUnsafeMutablePointers { header, values in
            precondition(column.rawValue < header.pointee.columnCount, "no such column")
            header.pointee.set.remove(column)
            values[column.rawValue] = .null
        }
    }

    /// Calls `body` with the set columns and direct access to their values. `values[column.rawValue]` is valid only inside `body`.
    @inlinable
    public func withValues<R>(_ body: (ColumnSet, UnsafePointer<Value>) throws -> R) rethrows -> R {
        try withUnsafeMutablePointers { header, values in
            try body(header.pointee.set, UnsafePointer(values))
        }
    }

    /// Returns a copy of the same layer that has more columns, which are not set.
    package func copy(columnCount: Int) -> Row {
        let copy = Row.make(kind: kind, layer: layer, columnCount: columnCount)
        copy.version = version
        set.forEach { copy[$0] = self[$0] }
        return copy
    }

    /// Returns a copy of the same layer that has other columns: the column at each position becomes the one with that number.
    package func copy(to columns: [ColumnIndex], of columnCount: Int) -> Row {
        let copy = Row.make(kind: kind, layer: layer, columnCount: columnCount)
        copy.version = version
        set.forEach { copy[columns[$0]] = self[$0] }
        return copy
    }

    /// Returns a copy that belongs to another layer.
    package func copy(layer: UInt64) -> Row {
        let copy = Row.make(kind: kind, layer: layer, columnCount: columnCount)
        copy.version = version
        set.forEach { copy[$0] = self[$0] }
        return copy
    }
}
