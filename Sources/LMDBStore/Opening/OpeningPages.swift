import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A reader of the objects of a file while it is being opened, before there is a store.
struct OpeningPages {
    let tables: Tables
    let dictionaries: Dictionaries
    /// The layouts per entity.
    let layouts: [PageLayout]
    let schema: StoreSchema
    let path: String

    /// Calls `body` with each page of an entity, in the order of their numbers.
    func forEachPage(
        of entity: EntityIndex, in transaction: WriteTransaction, _ body: (_ number: PageNumber, ObjectPage) throws -> Void
    ) throws {
        let values = OpeningValues(transaction, tables)
        try transaction.withCursor(tables.pages[entity]) { cursor in
            while let entry = try cursor.move(.next) {
                do {
                    let packed = PackedPage.isPacked(entry.value) ? try unpacked(entry, entity: entity, in: transaction) : nil
                    try withExtendedLifetime(packed) {
                        let page = try ObjectPage(
                            packed?.bytes ?? entry.value, layout: layouts[entity], check: .header,
                            large: LargeValues(values, entity: entity))
                        try body(entry.pageNumber, page)
                    }
                } catch let error as PageError {
                    throw StoreError(
                        .damaged,
                        "\(path): page \(entry.number) of \(schema.entities[entity].name): \(error). Restore a copy", cause: error
                    )
                }
            }
        }
    }

    private func unpacked(
        _ entry: Cursor.Entry, entity: EntityIndex, in transaction: WriteTransaction
    ) throws -> UnpackedPage {
        try PageOverflow(tables).withWhole(entry.value, entity: entity, number: entry.pageNumber, in: transaction) { bytes in
            let packed = try PackedPage(bytes, place: layouts[entity].place(entry.pageNumber))
            return try UnpackedPage(
                packed, dictionary: try dictionaries.dictionary(entity, packed.dictionaryNumber, in: transaction))
        }
    }
}

/// The out-of-line values of a file that is being opened.
private final class OpeningValues: LargeValueSource {
    private let transaction: WriteTransaction
    private let tables: Tables

    init(_ transaction: WriteTransaction, _ tables: Tables) {
        self.transaction = transaction
        self.tables = tables
    }

    func largeChunk(_ entity: EntityIndex, key: UInt64) throws(PageError) -> UnsafeRawBufferPointer? {
        do { return try transaction.get(tables.large[entity], key) } catch { throw PageError(unreadable: key, error) }
    }
}
