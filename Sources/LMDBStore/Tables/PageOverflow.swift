import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The rests of packed pages that are too long to share a leaf of LMDB with other pages. The first part of such a page fills
/// half a leaf in the page table. The rest is short and shares leaves with other rests in the table `tails`. In one piece, it
/// would take a whole page.
struct PageOverflow: Sendable {
    private static let pageBits: UInt64 = 48

    private let table: Database
    /// The entities' numbers in the file.
    private let entityNumbers: [Int]

    init(_ tables: Tables) {
        table = tables.pageOverflow
        entityNumbers = tables.entityNumbers
    }

    /// Returns whether the numbers of a page and its entity fit a key. Pages with larger numbers are never split.
    func allows(_ entity: EntityIndex, _ number: PageNumber) -> Bool {
        number.rawValue < 1 << Self.pageBits && Self.keys(ofEntity: entityNumbers[entity]) != nil
    }

    private func key(_ entity: EntityIndex, _ number: PageNumber) -> UInt64 {
        UInt64(entityNumbers[entity]) << Self.pageBits | number.rawValue
    }

    /// Calls `body` with the whole packed page, of which the page table has `bytes`.
    /// - Throws: `PageError` if the rest is missing or has another length.
    func withWhole<R>(
        _ bytes: UnsafeRawBufferPointer, entity: EntityIndex, number: PageNumber, in reader: some ByteReading,
        _ body: (UnsafeRawBufferPointer) throws -> R
    ) throws -> R {
        let missing = PackedPage.missingByteCount(bytes)
        if missing == 0 { return try body(bytes) }
        guard allows(entity, number), let rest = try reader.get(table, key(entity, number)), rest.count == missing else {
            throw PageError(
                offset: bytes.count, field: "packed page", reason: "goes on for \(missing) bytes that are not in tails")
        }
        var whole: [UInt8] = []
        whole.reserveCapacity(bytes.count + rest.count)
        whole.append(contentsOf: bytes)
        whole.append(contentsOf: rest)
        return try whole.withUnsafeBytes(body)
    }

    func put(_ rest: UnsafeRawBufferPointer, entity: EntityIndex, number: PageNumber, in transaction: WriteTransaction) throws {
        try transaction.put(table, key: key(entity, number), value: rest)
    }

    func delete(_ entity: EntityIndex, _ number: PageNumber, in transaction: WriteTransaction) throws {
        try transaction.delete(table, key(entity, number))
    }

    /// Returns the number of rests of the schema's entities. O(rests). Those of a dropped entity are removed with its pages.
    func count(in transaction: ReadTransaction) throws -> Int {
        // Files of format 1 may not have the table.
        guard try transaction.statistics(table).entries > 0 else { return 0 }
        return try transaction.withCursor(table) { cursor in
            var count = 0
            for keys in entityNumbers.compactMap(Self.keys) {
                var entry = try cursor.seek(keys.lowerBound)
                while let found = entry, keys.contains(found.number) {
                    count += 1
                    entry = try cursor.move(.next)
                }
            }
            return count
        }
    }

    /// Returns the keys of an entity's rests; nil for an entity whose number is too large for a key.
    private static func keys(ofEntity number: Int) -> ClosedRange<UInt64>? {
        UInt16(exactly: number).map { UInt64($0) << pageBits...(UInt64($0) << pageBits | (1 << pageBits - 1)) }
    }

    /// Deletes up to a number of rests of an entity with a number in the file. Returns whether none is left.
    func removeSome(ofEntity number: Int, _ limit: Int, in transaction: WriteTransaction) throws -> Bool {
        guard let keys = Self.keys(ofEntity: number) else { return true }
        return try transaction.removeSome(limit, of: keys, in: table)
    }
}
