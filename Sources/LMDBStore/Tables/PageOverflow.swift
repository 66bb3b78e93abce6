import LMDB
import PageCodec
import StoreInterface

/// Where the rest of a packed page is that is too long to share a leaf of LMDB with others: its first part fills half a leaf in the
/// table of pages, the rest is short and lies with other rests in the table `tails`. In one piece it would take a whole page.
struct PageOverflow: Sendable {
    private static let pageBits: UInt64 = 48

    private let table: Database
    /// By entity: the number that it has in the file.
    private let entityNumbers: [Int]

    init(_ tables: Tables) {
        table = tables.tails
        entityNumbers = tables.entityNumbers
    }

    /// Whether the page's number leaves room for the entity's in a key. Others are never split.
    static func allows(_ number: UInt64) -> Bool { number < 1 << pageBits }

    private func key(_ entity: Int, _ number: UInt64) -> UInt64 { UInt64(entityNumbers[entity]) << Self.pageBits | number }

    /// Calls `body` with the whole packed page of which a table of pages holds `bytes`.
    /// - Throws: `PageError` when the rest is missing or has another length.
    func withWhole<R>(
        _ bytes: UnsafeRawBufferPointer, _ entity: Int, _ number: UInt64, in reader: some ByteReading,
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

    func put(_ rest: UnsafeRawBufferPointer, _ entity: Int, _ number: UInt64, in transaction: WriteTransaction) throws {
        try transaction.put(table, key(entity, number), rest)
    }

    func delete(_ entity: Int, _ number: UInt64, in transaction: WriteTransaction) throws {
        try transaction.delete(table, key(entity, number))
    }

    /// How many there are, of all entities.
    func count(in transaction: ReadTransaction) throws -> Int { try transaction.statistics(table).entries }
}
