internal import CLMDB

/// A handle of a sub-database. It is valid in every transaction that begins after the transaction that opened it was
/// committed.
package struct Database: Sendable, Hashable {
    let handle: UInt32

    /// The types and order of keys and values. Fixed when the sub-database is created.
    package enum Kind: Sendable, Hashable {
        /// Keys are bytes, with one value each.
        case bytes
        /// Keys are 64-bit numbers in numeric order, with one value each.
        case integers
        /// Keys are bytes; the values of a key are 64-bit numbers in numeric order.
        case bytesToIntegers
        /// Keys are 64-bit numbers; the values of a key are 64-bit numbers in numeric order.
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

    /// The unnamed database, whose keys are the names of the sub-databases.
    package static let main = Database(handle: 1)
    /// The database of free pages. Keys are transaction numbers; values are lists of page numbers that begin with their
    /// count.
    package static let free = Database(handle: 0)
    /// A placeholder for a sub-database that a file does not have. Lookups and statistics treat it as empty. It has no
    /// cursors and cannot be written.
    package static let absent = Database(handle: .max)
}

/// The page and entry counts of one sub-database, or of the main database.
package struct DatabaseStatistics: Sendable, Hashable {
    /// The page size in bytes.
    package var pageSize: Int
    /// The depth of the tree; 0 if the database is empty.
    package var depth: Int
    /// The number of inner pages of the tree.
    package var branchPages: Int
    /// The number of leaf pages of the tree.
    package var leafPages: Int
    /// The number of pages with values that do not fit a leaf page.
    package var overflowPages: Int
    /// The number of entries. Each value of a key counts.
    package var entries: Int
}
