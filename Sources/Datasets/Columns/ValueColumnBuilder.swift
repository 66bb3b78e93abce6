import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Where columns that are too long for memory are stored.
struct ScratchSpace: Sendable {
    /// The folder of the temporary files, which have no names.
    var folder: URL
    /// The number of bytes of a column above which it is in a file.
    var bytesInMemory = 1 << 20
    /// The number of bytes of a file above which the next value of its column begins another one.
    var bytesPerFile = 1 << 28

    /// The largest number of columns of a table that are in files. Each takes a file descriptor while it is written.
    static let maximumFiles = 128
}

/// Collects the values of a column, in memory at first.
struct ValueColumnBuilder {
    private let scratch: ScratchSpace?
    private var values: [Value] = []
    private var byteCount = 0
    private var spill: SpillWriter?

    /// - Parameter scratch: Where a long column is stored; nil if it stays in memory.
    init(_ scratch: ScratchSpace?) { self.scratch = scratch }

    /// - Throws: `StoreError` if there is no room for a temporary file.
    mutating func append(_ value: Value) throws {
        if let spill { return try spill.append(value) }
        values.append(value)
        byteCount += MemoryLayout<Value>.stride + value.byteCount
        guard let scratch, byteCount > scratch.bytesInMemory else { return }
        let made = SpillWriter(scratch)
        for value in values { try made.append(value) }
        values = []
        spill = made
    }

    /// Returns the column, after which the builder is not used again.
    /// - Throws: `StoreError` if there is no room for a temporary file.
    mutating func finish() throws -> ValueColumn {
        guard let spill, let scratch else { return ValueColumn(values, scratch: scratch) }
        return ValueColumn(try spill.finish(), scratch: scratch)
    }
}

extension Value {
    /// The number of bytes of a text or of data, which may be many.
    fileprivate var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .data(let data): data.count
        default: 0
        }
    }
}
