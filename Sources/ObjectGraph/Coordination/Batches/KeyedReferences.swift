import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A range of keys in a collection without its context, for a batch deletion (S192).
///
/// A ``KeyedRange`` belongs to its context. Its reference can be passed to other tasks.
///
/// ```swift
/// let old = drafts["2024"..<"2025"].reference
/// let result = try await container.coordinator.batchDelete(old)
/// print("\(result.deletedCount) drafts were deleted")
/// ```
public struct KeyedRangeReference: Sendable, CustomStringConvertible {
    /// The name of the collection in its file.
    public let name: String
    let types: CollectionTypes
    /// The bytes of the lowest key of the range, and the lowest bytes after the range.
    let lower: [UInt8]
    let upper: [UInt8]

    /// The collection of the range, with its types.
    public var description: String { "a range of collection \(name): \(types)" }
}

/// A collection without its context, for an import of entries (S192).
///
/// ```swift
/// let drafts = try container.collection("drafts", of: Draft.self).reference
/// let entries = titles.map { (key: $0, value: Draft(title: $0)) }
/// try await container.coordinator.insert(into: drafts, entries: entries)
/// ```
public struct KeyedCollectionReference<Key, Value: Codable & Sendable>: Sendable, CustomStringConvertible {
    /// The name of the collection in its file.
    public let name: String
    let types: CollectionTypes
    let keyCoding: KeyCoding<Key>

    /// The bytes with which all keys of the collection begin.
    var prefix: [UInt8] { Array(name.utf8) + [0] }

    /// All entries, to delete them in a batch.
    public var all: KeyedRangeReference {
        KeyedRangeReference(name: name, types: types, lower: prefix, upper: KeyBytes.end(ofPrefix: prefix) ?? [])
    }

    /// The name and the types: `collection drafts: values of type Draft under keys of type String`.
    public var description: String { "collection \(name): \(types)" }
}

extension KeyedRange {
    /// The range without its context, which ``PersistentStoreCoordinator`` can delete in a batch.
    public var reference: KeyedRangeReference {
        KeyedRangeReference(name: collection.name, types: collection.types, lower: lower, upper: upper)
    }
}

extension KeyedCollection {
    /// The collection without its context, into which ``PersistentStoreCoordinator`` can import entries.
    public var reference: KeyedCollectionReference<Key, Value> {
        KeyedCollectionReference(name: name, types: types, keyCoding: keyCoding)
    }
}

extension KeyedRangeReference {
    /// Returns a layer that deletes the entries of the range.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the collection has other types in the view: the bytes of
    ///   the range would select other keys.
    func deletions(of entity: EntityIndex, over view: LayeredView, schema: StoreSchema) throws -> Layer {
        let layer = Layer(schema: schema)
        if let record = try view.typesRecord(entity, of: name) { try types.check(record.bytes, name) }
        guard lower.lexicographicallyPrecedes(upper) else { return layer }
        func delete(_ object: ObjectKey, having key: Value) {
            let row = Row.make(kind: .delete, layer: layer.id, columnCount: 2)
            // With the key, the deletion can be applied to another object that has got the same key meanwhile.
            row[KeyedColumn.key] = key
            layer.put(row, entity: entity, key: object)
        }
        let query = OrderedDataQuery(entity: entity, column: KeyedColumn.key, lower: lower, upper: upper)
        guard view.touches(entity: entity) else {
            let found = try view.base.orderedData(query)
            for (position, object) in found.keys.enumerated() { delete(object, having: .data(Data(found.data(at: position)))) }
            return layer
        }
        var unordered = query.storeQuery
        unordered.sort = []
        for object in try view.keys(unordered) {
            guard let key = try view.value(entity, key: object, column: KeyedColumn.key) else { continue }
            delete(object, having: key)
        }
        return layer
    }
}
