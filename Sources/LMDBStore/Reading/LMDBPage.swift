import PageCodec
import StoreInterface
import StoreModel

/// One page, with a reference to its transaction, without which its bytes could be overwritten, or to its unpacked bytes.
///
/// `@unchecked Sendable`: all of it is immutable, including the bytes, while transaction and unpacked page are referenced.
final class LMDBPage: StorePage, @unchecked Sendable {
    private let page: ObjectPage
    /// The unpacked bytes of a packed page.
    private let unpacked: UnpackedPage?
    private let entity: EntityIndex
    private let number: PageNumber
    private let reader: SnapshotReader
    private let checksLargeValues: Bool

    init(
        _ page: ObjectPage, unpacked: UnpackedPage?, entity: EntityIndex, number: PageNumber, reader: SnapshotReader,
        checksLargeValues: Bool
    ) {
        self.checksLargeValues = checksLargeValues
        self.page = page
        self.unpacked = unpacked
        self.entity = entity
        self.number = number
        self.reader = reader
    }

    var presence: UInt64 { page.presence }

    func version(_ slot: Int) throws -> Generation {
        do {
            return try page.version(slot)
        } catch {
            throw StoreError.damagedPage(reader.store, entity: entity, number: number, error: error)
        }
    }

    /// Throws `PageError` if the value is stored outside of the page and does not have the hash in its record.
    private func checkLargeValue(_ slot: Int, _ column: ColumnIndex) throws(PageError) {
        guard page.hasLargeValues, let record = try page.largeValue(slot, column) else { return }
        var hash = LargeValueHash()
        try LargeValues(reader, entity: entity).eachChunk(of: record) { chunk throws(PageError) in
            hash.add(chunk)
            return true
        }
        guard hash.value == record.hash else {
            throw PageError(field: "large value \(record.number)", reason: "it has another hash than its record says")
        }
    }

    func presentValue(_ slot: Int, _ column: ColumnIndex) throws -> Value? {
        page.presence >> UInt64(slot) & 1 != 0 ? try value(slot, column) : nil
    }

    func withData(
        _ slot: Int, column: ColumnIndex, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Bool {
        guard page.presence >> UInt64(slot) & 1 != 0 else { return false }
        if !checksLargeValues, let bytes = try dataInPlace(slot, column) {
            // Valid because the caller's reference to this page keeps the transaction or the unpacked bytes.
            try body(bytes)
            return true
        }
        guard case .data(let data) = try value(slot, column) else { return false }
        try data.withUnsafeBytes(body)
        return true
    }

    private func dataInPlace(_ slot: Int, _ column: ColumnIndex) throws -> UnsafeRawBufferPointer? {
        do {
            return try page.dataInPlace(slot, column)
        } catch {
            throw StoreError.damagedPage(reader.store, entity: entity, number: number, error: error)
        }
    }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value {
        do {
            if checksLargeValues { try checkLargeValue(slot, column) }
            return try page.value(slot, column)
        } catch {
            throw StoreError.damagedPage(reader.store, entity: entity, number: number, error: error)
        }
    }
}
