import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A keyed collection as its file describes it, for programs that do not have the types of its keys and values (S190).
///
/// Keys and values are bytes. ``texts(ofKey:naming:)`` and ``text(ofValue:)`` show them to people.
///
/// ```swift
/// for collection in try context.storedCollections() {
///     print(collection.name, collection.keyType, collection.valueType, try context.storedCount(of: collection))
///     for entry in try context.storedEntries(of: collection, limit: 10) {
///         print(collection.texts(ofKey: entry.key) ?? ["?"], collection.text(ofValue: entry.value) ?? "?")
///     }
/// }
/// ```
public struct StoredCollection: Sendable, Hashable {
    /// The name of the collection in its file.
    public let name: String
    /// The name of the type of the keys: `String`, or `(String, Int)` for keys of two parts.
    public let keyType: String
    /// The name of the type of the values.
    public let valueType: String

    /// Creates the description of a collection.
    ///
    /// - Throws: ``CollectionError/invalidName(_:)``.
    public init(name: String, keyType: String, valueType: String) throws {
        guard !name.isEmpty, !name.utf8.contains(0) else { throw CollectionError.invalidName(name) }
        self.name = name
        self.keyType = keyType
        self.valueType = valueType
    }

    /// A key and its value, as bytes.
    public struct Entry: Sendable, Hashable {
        /// The bytes of the key, without the name of the collection.
        public var key: Data
        /// The bytes of the value.
        public var value: Data

        /// Creates an entry from its bytes.
        public init(key: Data, value: Data) {
            self.key = key
            self.value = value
        }
    }

    /// Returns whether two descriptions are equal. Two names are equal if their bytes are, as in a file.
    public static func == (a: StoredCollection, b: StoredCollection) -> Bool {
        CollectionName(a.name) == CollectionName(b.name) && a.keyType == b.keyType && a.valueType == b.valueType
    }

    /// Hashes the description.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(CollectionName(name))
        hasher.combine(keyType)
        hasher.combine(valueType)
    }

    var types: CollectionTypes { CollectionTypes(key: keyType, value: valueType) }
    /// The bytes with which all keys of the collection begin.
    var prefix: [UInt8] { Array(name.utf8) + [0] }
}

// MARK: Records

extension StoredCollection {
    /// A record of the hidden entity in which a store keeps all collections.
    public enum Record: Sendable, Hashable {
        /// The types of a collection.
        case collection(StoredCollection)
        /// An entry of the collection with a name.
        case entry(String, Entry)

        /// Reads a record from the two columns of its object. Returns nil for damaged bytes.
        public init?(key: Data, value: Data) {
            let key = Array(key)
            guard key.first != 0 else {
                guard let types = CollectionTypes(bytes: value), let name = String(validating: key.dropFirst(), as: UTF8.self),
                    let found = try? StoredCollection(name: name, keyType: types.key, valueType: types.value)
                else { return nil }
                self = .collection(found)
                return
            }
            guard let end = key.firstIndex(of: 0), let name = String(validating: key[..<end], as: UTF8.self) else { return nil }
            self = .entry(name, Entry(key: Data(key[(end + 1)...]), value: value))
        }
    }

    /// Returns the entity whose objects are the records of all collections; nil if the store has none.
    ///
    /// For programs that read a store without a container. Its columns are the key and the value, which ``Record`` reads. In the order of
    /// the keys, the types of all collections come first.
    public static func entity(in schema: StoreSchema) -> EntityIndex? { schema.keyedValues }
}

extension HistoryChange {
    /// The collection and the key of a removed entry; nil for other changes, and for removals by versions of Strata that did not keep them.
    ///
    /// The key is as in ``StoredCollection/Entry``. Entries that exist are found by ``ManagedObjectContext/storedRecord(of:)``.
    public var removedEntry: (collection: String, key: Data)? {
        guard entityName == EntitySchema.keyedValues.name, case .data(let key)? = tombstone["key"],
            case .entry(let name, let entry)? = StoredCollection.Record(key: key, value: Data())
        else { return nil }
        return (name, entry.key)
    }
}

extension ManagedObjectContext {
    /// Returns the collections that the context sees, in the order of their names.
    ///
    /// - Throws: ``CollectionError/unreadableKey(collection:)`` if the types of a collection are damaged; the store's error.
    public func storedCollections() throws -> [StoredCollection] {
        var reader = KeyedReader(self, from: [0], to: [1], direction: .ascending, batchSize: .max)
        var found: [StoredCollection] = []
        while let entry = try reader.next() {
            guard case .collection(let collection)? = StoredCollection.Record(key: Data(entry.key), value: entry.value) else {
                throw CollectionError.unreadableKey(collection: String(decoding: entry.key.dropFirst(), as: UTF8.self))
            }
            found.append(collection)
        }
        return found
    }

    /// Returns the number of entries of a collection. O(entries) of an index, without reading values.
    public func storedCount(of collection: StoredCollection) throws -> Int {
        try keyedCount(collection.prefix, KeyBytes.end(ofPrefix: collection.prefix) ?? [])
    }

    /// Returns the entries of a collection in the order of the keys.
    ///
    /// - Parameters:
    ///   - collection: The collection.
    ///   - key: The bytes of the key to begin after; nil for the first key.
    ///   - limit: The maximum number of entries; nil for all.
    public func storedEntries(
        of collection: StoredCollection, after key: Data? = nil, limit: Int? = nil
    ) throws -> [StoredCollection.Entry] {
        let prefix = collection.prefix
        var reader = KeyedReader(
            self, from: key.map { prefix + Array($0) + [0] } ?? prefix, to: KeyBytes.end(ofPrefix: prefix) ?? [],
            direction: .ascending, limit: limit, batchSize: .max)
        var entries: [StoredCollection.Entry] = []
        while let entry = try reader.next() {
            entries.append(StoredCollection.Entry(key: Data(entry.key.dropFirst(prefix.count)), value: entry.value))
        }
        return entries
    }

    /// Returns the bytes of the value under a key; nil if there is none.
    public func storedValue(forKey key: Data, of collection: StoredCollection) throws -> Data? {
        try keyedBytes(collection.prefix + key)
    }

    /// Returns the record that an object is, as the history names it; nil for an object of a model, and for one that does not exist.
    public func storedRecord(of object: ObjectID) throws -> StoredCollection.Record? {
        guard object.entity == keyedEntity else { return nil }
        return try keyedEntry(object.key).flatMap { StoredCollection.Record(key: $0.key, value: $0.value) }
    }

    /// Sets the bytes of the value under a key. They are not checked: write only bytes of the types of the collection.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)``, ``CollectionError/unavailable(collection:)``; the store's
    ///   error. Then nothing has changed.
    public func setStoredValue(_ value: Data, forKey key: Data, of collection: StoredCollection) throws {
        try putKeyed(Data(collection.prefix) + key, value: value, of: collection.name, types: collection.types)
    }

    /// Records the types of a collection, which may have no entries.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)``, ``CollectionError/unavailable(collection:)``; the store's
    ///   error.
    public func addStoredCollection(_ collection: StoredCollection) throws {
        checkIsolation()
        try checkOpen()
        guard keyedEntity != nil else { throw CollectionError.unavailable(collection: collection.name) }
        try record(collection.name, collection.types)
    }
}
