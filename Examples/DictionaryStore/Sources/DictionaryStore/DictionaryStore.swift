import StoreInterface
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store in dictionaries: an example for authors of stores.
public final class DictionaryStore: ObjectStore {
    /// The identity of the store. There is no file, so each object is a new store.
    public let identity = StoreIdentity(UUID())
    /// The schema that the store was created with.
    public let schema: StoreSchema
    /// The name of the store in messages.
    public var name: String { "the store in dictionaries" }

    /// No other process can save. No save is deferred, because only a commit knows the timestamp that becomes the generation.
    public var capabilities: StoreCapabilities { .history }

    private let state: Mutex<DictionaryState>

    /// Creates an empty store.
    public init(_ schema: StoreSchema) {
        self.schema = schema
        state = Mutex(DictionaryState(schema))
    }

    /// Returns false, because no other process can save.
    public func mayHaveCommitted(after generation: Generation) -> Bool { false }

    /// Returns the newest state. Swift's dictionaries share their storage until one of them changes, so this is O(1).
    public func snapshot() throws -> any StoreSnapshot { DictionarySnapshot(schema, state.withLock { $0 }) }

    /// The layer above calls this from one thread at a time, so that no lock is needed while `body` runs.
    public func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R {
        let transaction = DictionaryTransaction(schema, state.withLock { $0 })
        let result = try body(transaction)
        let changed = transaction.state
        state.withLock { $0 = changed }
        return result
    }

    /// Returns saves from memory. Returns nil if saves after `generation` have been deleted.
    public func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        let limit = max(0, limit)
        return state.withLock { state in
            guard let generation else { return Array(state.history.prefix(limit)) }
            if limit == 0 || generation >= state.generation { return [] }
            if generation < state.historyStart { return nil }
            return Array(state.history.drop { $0.generation <= generation }.prefix(limit))
        }
    }

    /// Returns 0, because there is no file.
    public func fileBytes() throws -> Int { 0 }
}

extension StoreDescription {
    /// A new store in dictionaries at each opening.
    public static var dictionary: StoreDescription { StoreDescription(name: "dictionary") { DictionaryStore($0) } }
}
