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

    /// Returns whether the page's number leaves room for the entity's number in a key. Pages with larger numbers are never
    /// split.
    static func allows(_ number: PageNumber) -> Bool { number.rawValue < 1 << pageBits }

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
        guard let rest = try reader.get(table, key(entity, number)), rest.count == missing else {
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

    /// Returns the number of rests of all entities.
    func count(in transaction: ReadTransaction) throws -> Int { try transaction.statistics(table).entries }
}
