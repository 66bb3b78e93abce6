/// The checksum of a store's table of single values, computed row by row in the order of the names. Part of the file format.
public struct MetaHash: Sendable {
    /// The checksum of the rows added so far.
    public private(set) var value: UInt64

    /// Creates the checksum.
    /// - Parameter transaction: The number of the commit that writes the checksum.
    public init(transaction: UInt64) { value = transaction }

    /// Adds a row. Rows must be added in the order of their names.
    public mutating func add(_ name: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer) {
        value = PageHash.hash(row, seed: PageHash.hash(name, seed: value))
    }
}
