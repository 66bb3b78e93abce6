internal import CLMDB

/// A handle of a sub-database. Valid in every transaction that begins after the one that opened it has been committed.
public struct Database: Sendable, Hashable {
    let handle: UInt32

    /// How keys and values are ordered. Fixed when the sub-database is made.
    public enum Kind: Sendable, Hashable {
        /// Keys are bytes, one value each.
        case bytes
        /// Keys are 64-bit numbers in their own order, one value each.
        case integers
        /// Keys are bytes; the values of a key are 64-bit numbers in their own order.
        case bytesToIntegers
        /// Keys are 64-bit numbers; the values of a key are 64-bit numbers in their own order.
        case integersToIntegers

        var flags: UInt32 {
            let flags: Int32 =
                switch self {
                case .bytes: 0
                case .integers: MDB_INTEGERKEY
                case .bytesToIntegers: MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP
                case .integersToIntegers: MDB_INTEGERKEY | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP
                }
            return UInt32(flags)
        }
    }

    /// The unnamed database, whose keys are the names of the others.
    public static let main = Database(handle: 1)
    /// The pages that are free: keys are transaction numbers, values lists of page numbers with their count first.
    public static let free = Database(handle: 0)
    /// A placeholder for a sub-database that a file does not have. Look-ups and statistics treat it as empty; it has no cursors and
    /// cannot be written.
    public static let absent = Database(handle: .max)
}

/// Pages and entries of one sub-database, or of the main one.
public struct DatabaseStatistics: Sendable, Hashable {
    public var pageSize: Int
    public var depth: Int
    public var branchPages: Int
    public var leafPages: Int
    public var overflowPages: Int
    public var entries: Int
}
