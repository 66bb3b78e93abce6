import LMDB
import PageCodec
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The sub-database `meta`. Keys are names; `Docs/Internals/FileFormat.md` lists the values. Numbers are little-endian.
enum MetaTable {
    static let name = "meta"
    /// The format of new files. Files of format 1 keep that format: their pages' checksums do not cover their places, and
    /// they have no `check`.
    static let formatVersion: UInt64 = 2
    static let oldestFormatVersion: UInt64 = 1
    /// The release line of LMDB, whose files differ from those of other lines.
    static let libraryLine = "0.9"

    enum Key {
        static let format = "format"
        static let library = "library"
        static let uuid = "uuid"
        /// The first schema of files from before schemas had versions.
        static let firstSchema = "schema"
        static func schema(_ number: Int) -> String { "schema \(number)" }
        static let schemaNumber = "schema number"
        /// The prefix before the name of an index that is being built. The value is the first page that the index does not
        /// contain; 0 if the index must be emptied first.
        static let build = "build "
        /// The prefix before the name of a sub-database that is no longer used. The value is its kind.
        static let drop = "drop "
        static let generation = "generation"
        /// See ``MetaCheck``.
        static let check = "check"
        /// The prefix before an entity's number, a space and the number of a large value that no committed save has. The
        /// value identifies the write.
        static let unreferenced = "unclaimed "
        /// The prefix before an entity's number. The value is the entity's first page that was never leased.
        static let nextPage = "next page "
        static func nextPage(_ entityNumber: Int) -> String { nextPage + "\(entityNumber)" }
        /// The prefix before an entity's number. The value contains the returned keys below that page, which no object has
        /// had.
        static let freeKeys = "free keys "
        static func freeKeys(_ entityNumber: Int) -> String { freeKeys + "\(entityNumber)" }
        /// The first page that a copy leases, for all entities.
        static let firstPage = "first page"
        /// The incarnations that copies of the store have begun; see `StoreLineage`.
        static let incarnations = "incarnations"
        /// The newest mark of a copy for which the file has begun an incarnation.
        static let copyStamp = "copy stamp"
    }

    static func put(_ value: UnsafeRawBufferPointer, key: String, meta: Database, in transaction: WriteTransaction) throws {
        var key = key
        try key.withUTF8 { try transaction.put(meta, key: UnsafeRawBufferPointer($0), value: value) }
    }

    static func remove(_ key: String, _ meta: Database, in transaction: WriteTransaction) throws {
        var key = key
        try key.withUTF8 { _ = try transaction.delete(meta, UnsafeRawBufferPointer($0)) }
    }

    /// Returns the names that begin with `prefix`, without the prefix, and their values.
    static func entries(
        _ prefix: String, _ meta: Database, in transaction: WriteTransaction
    ) throws -> [(name: String, value: [UInt8])] {
        try transaction.withCursor(meta) { try entries(prefix, at: $0) }
    }

    static func entries(_ prefix: String, at cursor: Cursor) throws -> [(name: String, value: [UInt8])] {
        let start = Array(prefix.utf8)
        var found: [(name: String, value: [UInt8])] = []
        var entry = try start.withUnsafeBytes { try cursor.seek($0) }
        while let next = entry, next.key.starts(with: start) {
            found.append((String(decoding: next.key.dropFirst(start.count), as: UTF8.self), Array(next.value)))
            entry = try cursor.move(.next)
        }
        return found
    }

    static func put(_ number: UInt64, key: String, meta: Database, in transaction: WriteTransaction) throws {
        try withUnsafeBytes(of: number.littleEndian) { try put($0, key: key, meta: meta, in: transaction) }
    }
}

/// A reader that can look up bytes: both kinds of transactions.
protocol ByteReading {
    func get(_ database: Database, _ key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer?
    func get(_ database: Database, _ key: UInt64) throws(LMDBError) -> UnsafeRawBufferPointer?
}

/// A transaction in which whole objects can be read: pages, and out-of-line values.
protocol PageReading: ByteReading, LargeValueSource {}

extension ReadTransaction: ByteReading {}
extension WriteTransaction: ByteReading {}
extension HandleTransaction: ByteReading {}

extension ByteReading {
    /// Returns whether the file's list of tables has a name.
    func hasTable(_ name: String) throws -> Bool {
        try Array(name.utf8).withUnsafeBytes { try get(.main, $0) != nil }
    }

    /// Returns a value of the meta table, valid as long as the transaction's other results.
    func metaBytes(_ key: String, _ meta: Database) throws -> UnsafeRawBufferPointer? {
        var key = key
        return try key.withUTF8 { try get(meta, UnsafeRawBufferPointer($0)) }
    }

    /// Returns a number of the meta table, or nil if it is missing or has another size.
    func metaNumber(_ key: String, _ meta: Database) throws -> UInt64? {
        guard let bytes = try metaBytes(key, meta), bytes.count == 8 else { return nil }
        return UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
    }

    /// Returns the newest save according to the meta table, or nil if its number is missing or has another size.
    func metaGeneration(_ meta: Database) throws -> Generation? {
        try metaNumber(MetaTable.Key.generation, meta).map(Generation.init(rawValue:))
    }
}
