import StoreInterface
import StoreModel

/// The values of one column of a table, in the order of its rows.
///
/// A long column of an import is in an unnamed temporary file, and takes about half a byte of memory per value. Reading one value from
/// there skips up to 15 of them; iterating decodes each once.
public struct ValueColumn: Sendable {
    fileprivate enum Storage: Sendable {
        case array([Value])
        case file(SpilledValues)
    }

    private var storage: Storage
    /// Where columns that are made of this one are stored; nil if they stay in memory.
    let scratch: ScratchSpace?

    /// Creates a column in memory.
    public init(_ values: [Value]) {
        storage = .array(values)
        scratch = nil
    }

    init(_ values: [Value], scratch: ScratchSpace?) {
        storage = .array(values)
        self.scratch = scratch
    }

    init(_ values: SpilledValues, scratch: ScratchSpace) {
        storage = .file(values)
        self.scratch = scratch
    }

    /// Whether the values are in a file.
    var isSpilled: Bool { if case .file = storage { true } else { false } }

    /// Returns a column with a value for each value of this one; nil at the first value for which the closure returns nil.
    /// - Throws: The error of the closure; `StoreError` if there is no room for a temporary file.
    func mapped(_ transform: (Value) throws -> Value?) throws -> ValueColumn? {
        var made = ValueColumnBuilder(scratch)
        for value in self {
            guard let value = try transform(value) else { return nil }
            try made.append(value)
        }
        return try made.finish()
    }
}

extension ValueColumn: RandomAccessCollection, MutableCollection {
    /// 0, the position of the first row.
    public var startIndex: Int { 0 }
    /// The number of rows.
    public var endIndex: Int {
        switch storage {
        case .array(let values): values.count
        case .file(let values): values.count
        }
    }

    /// The value of a row. Setting one reads a column that is in a file into memory.
    public subscript(row: Int) -> Value {
        get {
            switch storage {
            case .array(let values): values[row]
            case .file(let values): values[row]
            }
        }
        set {
            var values = takeValues()
            values[row] = newValue
            storage = .array(values)
        }
    }
}

extension ValueColumn: Sequence {
    /// The values in the order of the rows. Each is decoded once.
    public struct Iterator: IteratorProtocol {
        fileprivate let storage: Storage
        fileprivate var row = 0
        fileprivate var cursor = SpilledValues.Cursor()

        /// Returns the value of the next row; nil after the last.
        public mutating func next() -> Value? {
            switch storage {
            case .array(let values):
                guard row < values.count else { return nil }
                defer { row += 1 }
                return values[row]
            case .file(let values): return values.next(&cursor)
            }
        }
    }

    /// Returns an iterator over the values.
    public func makeIterator() -> Iterator { Iterator(storage: storage) }
}

extension ValueColumn {
    /// Returns the values, and leaves none, so that changing them copies no array.
    private mutating func takeValues() -> [Value] {
        defer { storage = .array([]) }
        return switch storage {
        case .array(let values): values
        case .file(let values): (0..<values.count).map { values[$0] }
        }
    }
}

extension ValueColumn: ExpressibleByArrayLiteral, Equatable {
    /// Creates a column in memory.
    public init(arrayLiteral elements: Value...) { self.init(elements) }

    /// Returns whether two columns have the same values.
    public static func == (a: ValueColumn, b: ValueColumn) -> Bool { a.elementsEqual(b) }
}

extension Value {
    /// The text of a `.string`; nil for other values.
    var text: String? { if case .string(let text) = self { text } else { nil } }
}
