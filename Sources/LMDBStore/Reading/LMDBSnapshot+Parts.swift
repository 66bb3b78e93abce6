import PageCodec
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LMDBSnapshot {
    /// Returns the parts of a value. An out-of-line value is read one chunk at a time; any other value is read completely.
    func parts(_ entity: Int, key: ObjectKey, column: Int) throws -> (any ValueParts)? {
        let number = PageAddress.page(of: key)
        let slot = PageAddress.slot(of: key)
        return try withPage(entity, number: number) { page -> (any ValueParts)? in
            guard page.presence >> UInt64(slot) & 1 != 0 else { return nil }
            if let record = try page.largeValue(slot, column) {
                return LargeValueParts(record, entity: entity, page: number, reader: reader)
            }
            return WholeValueParts(try page.value(slot, column))
        }
    }
}

/// The chunks of a value, one after another. Keeps the transaction alive.
struct LargeValueParts: ValueParts {
    private let record: LargeValueRecord
    private let entity: Int
    /// The number of the page that has the record, for messages.
    private let page: UInt64
    private let reader: SnapshotReader
    private var index = 0

    init(_ record: LargeValueRecord, entity: Int, page: UInt64, reader: SnapshotReader) {
        self.record = record
        self.entity = entity
        self.page = page
        self.reader = reader
    }

    var byteCount: Int { record.byteCount }

    mutating func next() throws -> Data? {
        guard index < record.chunkCount else { return nil }
        do {
            let part = try LargeValues(reader, entity: entity).data(ofChunk: index, record)
            index += 1
            return part
        } catch {
            throw StoreError.damagedPage(reader.store, entity: entity, number: page, error: error)
        }
    }
}
