import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Imports of entries into keyed collections in the store, without a context (S192). A cancelled task stops them as it stops other
/// imports.
extension PersistentStoreCoordinator {
    /// Sets values under keys of a collection. The collection comes from ``KeyedCollection/reference``.
    ///
    /// Each save contains ``BatchOptions/rowsPerSave`` entries. The next entries are read from the sequence while a save is written, off
    /// the caller's executor. A key that exists gets the new value, and an equal value changes nothing. Of several entries with one key,
    /// the last one wins. The first save records the types of a new collection, which are in no count of the result. Needs one look-up per
    /// entry, and reads each value that it replaces.
    ///
    /// - Parameters:
    ///   - collection: The collection, which may have no entries yet.
    ///   - entries: The keys and values, which the import iterates once.
    ///   - options: Durability, entries per save, and author.
    ///   - progress: A closure called after each save, on any thread.
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the file has other types under the name;
    ///   ``CollectionError/unencodable(collection:key:reason:)``, ``CollectionError/unavailable(collection:)``; `StoreError`. If entries
    ///   are saved already, ``BatchError/importStopped(savedRows:error:)`` with that error.
    @discardableResult
    public func insert<Key, Value: Codable & Sendable, Entries: Sequence & Sendable>(
        into collection: KeyedCollectionReference<Key, Value>, entries: Entries, options: BatchOptions = BatchOptions(),
        progress: @escaping @Sendable (BatchProgress) -> Void = { _ in }
    ) async throws -> BatchResult where Entries.Element == (key: Key, value: Value) {
        var report = BatchReport(entries, progress)
        var entries = entries.makeIterator()
        return try await importEntries(into: collection, options: options, report: &report) { entries.next() }
    }

    /// Sets values under keys of a collection, from entries that must not leave the caller's isolation.
    ///
    /// The entries are read on the caller's executor, between the saves. Otherwise this equals the import of `Sendable` entries.
    ///
    /// - Throws: The errors of the import of `Sendable` entries.
    @_disfavoredOverload @discardableResult
    public nonisolated(nonsending) func insert<Key, Value: Codable & Sendable, Entries: Sequence>(
        into collection: KeyedCollectionReference<Key, Value>, entries: Entries, options: BatchOptions = BatchOptions(),
        progress: @escaping @Sendable (BatchProgress) -> Void = { _ in }
    ) async throws -> BatchResult where Entries.Element == (key: Key, value: Value) {
        var report = BatchReport(entries, progress)
        var entries = entries.makeIterator()
        return try await importEntries(into: collection, options: options, report: &report) { entries.next() }
    }

    /// Imports entries, which are read on the caller's executor.
    private func importEntries<Key, Value: Codable & Sendable>(
        into collection: KeyedCollectionReference<Key, Value>, options: BatchOptions, report: inout BatchReport,
        isolation: isolated (any Actor)? = #isolation, nextEntry: () -> (key: Key, value: Value)?
    ) async throws -> BatchResult {
        guard let entity = capabilities.keyedValues else { throw CollectionError.unavailable(collection: collection.name) }
        let encoder = KeyedEntryEncoder(collection)
        return try await instruments.span("strata.batch.insert", attributes: ["strata.entity": "\(collection.name)"]) {
            // Makes the closure run on the caller's executor. Without it, the entries would be read on another one.
            _ = isolation
            let empty = KeyedInsertion(entity, of: collection.name, types: collection.types)
            return try await saveRows(empty, options: options, report: &report) {
                try nextEntry().map { try encoder.encode($0.key, $0.value) }
            }
        }
    }
}

/// Converts the entries of an import to bytes.
private struct KeyedEntryEncoder<Key, Value: Codable & Sendable> {
    private let collection: KeyedCollectionReference<Key, Value>
    private let valueCoding = CollectionValueCoding<Value>()
    private let prefix: [UInt8]

    init(_ collection: KeyedCollectionReference<Key, Value>) {
        self.collection = collection
        prefix = collection.prefix
    }

    func encode(_ key: Key, _ value: Value) throws -> KeyedInsertion.Element {
        var bytes = prefix
        collection.keyCoding.append(key, &bytes)
        do {
            return (key: bytes, value: try valueCoding.encode(value))
        } catch {
            let text = collection.keyCoding.text(of: key)
            throw CollectionError.unencodable(collection: collection.name, key: text, reason: "\(error)")
        }
    }
}
