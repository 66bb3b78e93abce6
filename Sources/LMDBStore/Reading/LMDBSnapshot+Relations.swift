import LMDB
import PageCodec
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LMDBSnapshot {
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        switch relation {
        case .referrers(let entity, let column):
            return try lookup(entity, column: column, value: .reference(key))
        case .link(let number, let direction, _):
            return try values(of: key, in: store.tables.links[number].database(direction))
        }
    }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        guard accepts(value, entity: entity, column: column) else { return [] }
        func query() -> StoreQuery { StoreQuery(entity: entity, predicate: .compare(column, .equal, to: value)) }
        guard let index = self.index(entity, column) else { return try keys(query()) }
        if index.isReference, let destination = value.referenceKey {
            return try values(of: destination, in: index.database)
        }
        let schema = store.schema.entities[entity].columns[column]
        // Keys of other types are exact unless they were cut. Several floating-point values can share a key.
        guard !schema.sharesKeys, !index.isReference,
            let key = try? KeyCodec.encode(value, column: schema), !key.isCut, key.bytes.count < KeyCodec.maximumCount
        else { return try keys(query()) }
        return try store.mappingErrors {
            try transaction.withCursor(index.database) { cursor in
                var keys: [ObjectKey] = []
                let first = try key.bytes.withUnsafeBytes { try cursor.find($0) }
                if let first { try cursor.appendValues(after: first, to: &keys) }
                return keys
            }
        }
    }

    func holder(_ entity: EntityIndex, column: ColumnIndex, of data: UnsafeRawBufferPointer) throws -> ObjectKey? {
        guard data.count < KeyCodec.maximumCount - 1, let index = store.entities[entity].dataIndexes[column], isReady(index)
        else { return try lookup(entity, column: column, value: .data(Data(data))).first }
        return try withUnsafeTemporaryAllocation(byteCount: KeyCodec.maximumCount, alignment: 1) { space -> ObjectKey? in
            let key = KeyCodec.key(of: data, in: space)
            do throws(LMDBError) {
                guard let found = try transaction.get(index, key), found.count == 8 else { return nil }
                return ObjectKey(rawValue: found.loadUnaligned(as: UInt64.self))
            } catch {
                throw StoreError(error, path: store.url.path)
            }
        }
    }

    /// Returns whether a column can have a value. A value of another storage class occurs in no object, though a comparison
    /// may find it equal.
    private func accepts(_ value: Value, entity: EntityIndex, column: ColumnIndex) -> Bool {
        value.isNull || store.schema.entities[entity].columns[column].type.holds(value)
    }

    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] {
        if columns.count == 1 { return try lookup(entity, column: columns[0], value: values[0]) }
        guard zip(values, columns).allSatisfy({ accepts($0, entity: entity, column: $1) }) else { return [] }
        let parts = zip(columns, values).map { StorePredicate.compare($0, .equal, to: $1) }
        let query = StoreQuery(entity: entity, predicate: .and(parts))
        let schema = columns.map { store.schema.entities[entity].columns[$0] }
        var key: [UInt8] = []
        guard let index = self.index(entity, columns), !schema.contains(where: \.sharesKeys),
            let isCut = try? KeyCodec.append(values, columns: schema, to: &key), !isCut, key.count < KeyCodec.maximumCount
        else { return try keys(query) }
        return try store.mappingErrors {
            try transaction.withCursor(index.database) { cursor in
                var keys: [ObjectKey] = []
                let first = try key.withUnsafeBytes { try cursor.find($0) }
                if let first { try cursor.appendValues(after: first, to: &keys) }
                return keys
            }
        }
    }
}

extension ColumnSchema {
    /// Whether different values may have the same index key although it is not cut: NaNs, and numbers narrowed to a float.
    var sharesKeys: Bool { type == .float || type == .double || type == .date }
}
