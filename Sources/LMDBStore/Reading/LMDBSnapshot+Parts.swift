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
    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        let number = key.page
        let slot = key.slot
        return try withPage(entity, number: number) { page -> (any ValueParts)? in
            guard page.presence >> UInt64(slot) & 1 != 0 else { return nil }
            if let record = try page.largeValue(slot, column) {
                return LargeValueParts(record, entity: entity, page: number, snapshot: self)
            }
            return WholeValueParts(try page.value(slot, column))
        }
    }
}

/// The chunks of a value, one after another. Keeps the snapshot alive.
struct LargeValueParts: ValueParts {
    private let record: LargeValueRecord
    private let entity: EntityIndex
    /// The number of the page that has the record, for messages.
    private let page: PageNumber
    private let snapshot: LMDBSnapshot
    private var index = 0

    init(_ record: LargeValueRecord, entity: EntityIndex, page: PageNumber, snapshot: LMDBSnapshot) {
        self.record = record
        self.entity = entity
        self.page = page
        self.snapshot = snapshot
    }

    var byteCount: Int { record.byteCount }

    mutating func next() throws -> Data? {
        guard index < record.chunkCount else { return nil }
        do {
            let part = try LargeValues(snapshot.reader, entity: entity).data(ofChunk: index, record)
            index += 1
            return part
        } catch {
            throw StoreError.damagedPage(snapshot.store, entity: entity, number: page, error: error)
        }
    }
}
