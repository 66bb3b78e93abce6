import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The record of a collection's types belongs to the first write. Whatever becomes of that write, a collection with entries has its types
/// (S190): rollback, undo and other contexts may take back the write, but not the record that the entries of others need.
extension KeyedColumn {
    /// Returns the collection of an entry; nil if the row records types, or has no key.
    static func collection(ofEntry row: Row) -> String? {
        guard row.isSet(key), case .data(let bytes) = row[key] else { return nil }
        return collection(ofKey: bytes)
    }

    /// Returns the collection of the key of an entry; nil for the key of a record of types.
    static func collection(ofKey bytes: Data) -> String? {
        guard let end = bytes.firstIndex(of: 0), end > bytes.startIndex else { return nil }
        return String(validating: bytes[..<end], as: UTF8.self)
    }

    /// Returns the collection of a key: that of an entry, or of a record of types.
    static func name(inKey bytes: Data) -> CollectionName? {
        let name = bytes.first == 0 ? String(decoding: bytes.dropFirst(), as: UTF8.self) : collection(ofKey: bytes)
        return name.map(CollectionName.init)
    }
}

extension LayeredView {
    /// Returns the types of the collection of an entry; nil if they are not known. One look-up.
    ///
    /// - Parameter key: The key of the entry.
    func keyedTypes(_ entity: EntityIndex, key: Data) throws -> CollectionTypes? {
        guard let collection = KeyedColumn.collection(ofKey: key), let record = try typesRecord(entity, of: collection)
        else { return nil }
        return CollectionTypes(bytes: record.bytes)
    }

    /// Returns the record of a collection's types: its object, and its bytes; nil if there is none. One look-up.
    func typesRecord(_ entity: EntityIndex, of collection: String) throws -> (object: ObjectKey, bytes: Data)? {
        guard let object = try keyedObject(entity, KeyedColumn.typesKey(collection)) else { return nil }
        guard case .data(let bytes)? = try value(entity, key: object, column: KeyedColumn.value) else { return (object, Data()) }
        return (object, bytes)
    }

    /// Returns whether a collection has entries. One search of the index.
    func hasEntries(_ entity: EntityIndex, of collection: String) throws -> Bool {
        let name = Array(collection.utf8)
        var query = OrderedDataQuery(
            entity: entity, column: KeyedColumn.key, lower: name + [0], upper: name + [1], limit: 1
        ).storeQuery
        query.sort = []
        return try !keys(query).isEmpty
    }

    /// Checks the types of the collections in which a layer sets entries: another record may have replaced the one that they were written
    /// with. A collection whose types were renamed keeps its record.
    ///
    /// - Parameter others: The view in which the entries were written.
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)``.
    func checkReplacedTypes(of layer: Layer, _ entity: EntityIndex, in others: LayeredView) throws {
        for name in layer.collectionsWithEntries(entity, \.inserted, \.updated) {
            let key = KeyedColumn.typesKey(name)
            guard let ours = try others.keyedObject(entity, key), let theirs = try keyedObject(entity, key), ours != theirs,
                case .data(let written)? = try others.value(entity, key: ours, column: KeyedColumn.value),
                case .data(let present)? = try value(entity, key: theirs, column: KeyedColumn.value)
            else { continue }
            try CollectionTypes(bytes: written)?.check(present, name)
        }
    }

    /// Returns the records of types that the new entries of a layer over this view need, as another view has them: its objects, with whole
    /// rows.
    ///
    /// - Parameter others: The view in which the entries were written.
    func missingTypes(of layer: Layer, _ entity: EntityIndex, in others: LayeredView) throws -> [(object: ObjectKey, row: Row)] {
        var missing: [(object: ObjectKey, row: Row)] = []
        let after = LayeredView(base: base, layers: [layer] + layers)
        for name in layer.collectionsWithEntries(entity, \.inserted) {
            let key = KeyedColumn.typesKey(name)
            guard try after.keyedObject(entity, key) == nil, let object = try others.keyedObject(entity, key),
                let types = try others.value(entity, key: object, column: KeyedColumn.value)
            else { continue }
            let row = Row.make(kind: .insert, layer: layer.id, columnCount: 2)
            row.fill(with: [.data(key), types])
            missing.append((object, row))
        }
        return missing
    }
}

extension CollectionTypes {
    /// The form of the values.
    var valueForm: ValueForm { ValueForm(type: .data, content: .keyed(value)) }
}

extension Layer {
    /// Returns whether the layer sets entries of a collection.
    func hasEntries(_ entity: EntityIndex, of collection: String) -> Bool { !keysOfEntries(entity, of: collection).isEmpty }

    /// Returns the keys of the entries of a collection that the layer sets.
    func keysOfEntries(_ entity: EntityIndex, of collection: String) -> [Data] {
        let prefix = Data(collection.utf8) + [0]
        var keys: [Data] = []
        for mask in [\LayerPage.inserted, \.updated] {
            forEachRow(of: entity, mask) { _, row in
                if row.isSet(KeyedColumn.key), case .data(let key) = row[KeyedColumn.key], key.starts(with: prefix) {
                    keys.append(key)
                }
            }
        }
        return keys
    }

    /// Returns the names of the collections in which the layer changes entries, in order.
    fileprivate func collectionsWithEntries(_ entity: EntityIndex, _ masks: KeyPath<LayerPage, UInt64>...) -> [String] {
        var names: Set<CollectionName> = []
        for mask in masks {
            forEachRow(of: entity, mask) { _, row in
                if let name = KeyedColumn.collection(ofEntry: row) { names.insert(CollectionName(name)) }
            }
        }
        return names.sorted().map(\.text)
    }
}

extension ManagedObjectContext {
    /// Records the types of collections again whose record was taken back below this context since it wrote to them. One look-up per
    /// collection. Undo leaves these records out: they belong to no change of the program.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if a collection has other types now.
    func recordMissingTypes() throws {
        guard let entity = keyedEntity else { return }
        for (name, types) in tracker.keyed.recorded.sorted(by: { $0.key < $1.key }) {
            let key = KeyedColumn.typesKey(name.text)
            if let object = try layerStack.view.keyedObject(entity, key) {
                // Others have replaced the record under which this context has written its entries.
                if let known = tracker.keyed.records[name], known != object,
                    layerStack.folded().collectionsWithEntries(entity, \.inserted, \.updated).lazy.map(CollectionName.init)
                        .contains(name)
                {
                    try types.check(keyedBytes(Array(key)) ?? Data(), name.text)
                    tracker.keyed.records[name] = object
                }
                continue
            }
            guard try layerStack.view.hasEntries(entity, of: name.text) else { continue }
            try withoutUndo { try put(entity, key: key, value: types.bytes()) }
        }
    }
}

extension SaveCheck {
    /// Keeps the records of types that entries need after the save: drops their deletions, and writes those again that other saves have
    /// deleted. O(deleted entries), and if the state has changed, O(new entries).
    mutating func settleTypes(hasChanged: Bool) throws {
        guard let entity = keyedValues, layer.entity(entity) != nil else { return }
        if layer.mayDelete { try keepTypes(entity) }
        guard hasChanged else { return }
        try state.view.checkReplacedTypes(of: layer, entity, in: request.base.view)
        for missing in try state.view.missingTypes(of: layer, entity, in: request.base.view) {
            writable().put(missing.row.copy(layer: writable().id), entity: entity, key: missing.object)
        }
    }

    private mutating func keepTypes(_ entity: EntityIndex) throws {
        let (before, after) = (state.view, after)
        var kept: [ObjectKey] = []
        try layer.forEachRow(of: entity, \.deleted) { object, row in
            let record =
                row.isSet(KeyedColumn.key) ? row[KeyedColumn.key] : try before.value(entity, key: object, column: KeyedColumn.key)
            guard case .data(let key)? = record, key.first == 0 else { return }
            let name = String(decoding: key.dropFirst(), as: UTF8.self)
            // The collection may have a new record, under another object.
            guard try before.exists(entity, object), try after.keyedObject(entity, key) == nil else { return }
            if try after.hasEntries(entity, of: name) { kept.append(object) }
        }
        for object in kept { writable().remove(entity: entity, key: object) }
    }
}
