import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A check for two objects with the same values in columns that must be unique, before a migration writes anything.
///
/// It reads the columns of all objects once and needs 16 bytes per object: about 0.2 s for a million objects.
struct UniqueCheck {
    private struct Entry {
        var hash: Int
        var key: ObjectKey
    }

    let pages: OpeningPages
    /// The beginning of object ids in messages: `strata://UUID`.
    let storeName: String

    /// Checks an entity's columns.
    /// - Throws: `StoreError` `.schemaMismatch`, which names the value and both objects.
    func check(_ columns: [ColumnIndex], of entity: EntityIndex, in transaction: WriteTransaction) throws {
        var entries: [Entry] = []
        try eachObject(columns, of: entity, in: transaction) { key, values in
            entries.append(Entry(hash: values.hashValue, key: key))
        }
        entries.sort { $0.hash != $1.hash ? $0.hash < $1.hash : $0.key < $1.key }
        var suspects: Set<ObjectKey> = []
        for position in entries.indices.dropFirst() where entries[position].hash == entries[position - 1].hash {
            suspects.insert(entries[position].key)
            suspects.insert(entries[position - 1].key)
        }
        guard !suspects.isEmpty else { return }
        var seen: [[Value]: ObjectKey] = [:]
        try eachObject(columns, of: entity, in: transaction) { key, values in
            guard suspects.contains(key) else { return }
            if let other = seen.updateValue(key, forKey: values) {
                throw StoreError.duplicate(
                    values, of: columns, entity: entity, in: pages.schema, keys: [other, key], store: storeName, path: pages.path)
            }
        }
    }

    /// Calls `body` with the values of each object. Skips objects with a null among the values, because nulls differ, and objects that do
    /// not have all of the columns.
    private func eachObject(
        _ columns: [ColumnIndex], of entity: EntityIndex, in transaction: WriteTransaction,
        _ body: (ObjectKey, [Value]) throws -> Void
    ) throws {
        let schema = pages.schema.entities[entity]
        let types = schema.types(having: columns)
        try pages.forEachPage(of: entity, in: transaction) { number, page throws in
            for slot in SlotIterator(page.presence) {
                let values = try columns.map { try page.value(slot, $0) }
                if values.contains(where: \.isNull) { continue }
                if let types, let column = schema.typeColumn {
                    guard case .int(let type) = try page.value(slot, column), types.contains(type) else { continue }
                }
                try body(PageAddress.key(page: number, slot: slot), values)
            }
        }
    }
}
