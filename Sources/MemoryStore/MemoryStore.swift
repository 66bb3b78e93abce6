internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store in memory: for tests, previews and caches, and as the reference for testing the other stores.
///
/// A state is a value with structural sharing. A snapshot is O(1) and keeps only the data that has changed since. The data is
/// lost when the process ends. Reads never wait for the writer.
public final class MemoryStore: ObjectStore {
    /// The identity of the store, which is new for each object.
    public let identity = StoreIdentity(.random())
    /// The schema that the store was created with.
    public let schema: StoreSchema
    /// Nobody else can save, and the history is kept in memory.
    public var capabilities: StoreCapabilities { [.layeredDeferral, .history] }
    private let state: Mutex<MemoryState>
    /// Acquired while a transaction runs. The keys of a deallocated writer may be returned while the next writer runs.
    private let writing = Mutex(())

    /// Creates an empty store.
    public init(schema: StoreSchema) {
        self.schema = schema
        state = Mutex(MemoryState(schema: schema))
    }

    /// Returns false, because no other process can commit.
    public func mayHaveCommitted(after generation: Generation) -> Bool { false }

    /// Returns the newest state. O(1); never waits for a transaction.
    public func snapshot() throws -> any StoreSnapshot {
        MemorySnapshot(schema: schema, state: state.withLock { $0 })
    }

    /// Runs a transaction on a copy of the state, which shares all unchanged data.
    ///
    /// Its result becomes visible when `body` returns. The durability makes no difference.
    public func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R {
        var result: R?
        try writing.withLock { _ in
            let transaction = MemoryTransaction(schema: schema, state: state.withLock { $0 })
            result = try body(transaction)
            let new = transaction.state
            state.withLock { $0 = new }
        }
        // The closure has run, or an error was thrown.
        return result.unsafelyUnwrapped
    }

    /// Returns saves from memory, which has the newest 10,000. O(limit).
    public func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        let limit = max(0, limit)
        return state.withLock { state in
            guard let generation else { return Array(state.history.prefix(limit)) }
            if generation >= state.generation { return [] }
            if limit == 0 { return [] }
            guard let first = state.history.first, first.generation <= generation.next else { return nil }
            return Array(state.history.dropFirst(first.generation.distance(to: generation.next)).prefix(limit))
        }
    }

    /// Checks references, links, one-to-one relationships, unique values, the indexes against the objects in both directions,
    /// and the history. Returns at most 200 findings.
    public func verify(cancellation: Cancellation) throws -> [VerificationFinding] {
        let state = state.withLock { $0 }
        let related = try RelationCheck.problems(MemorySnapshot(schema: schema, state: state), cancellation.part(0...0.5))
        let found = related + state.problems(schema)
        try cancellation.part(0.5...1).step(1, of: 1)
        return found.prefix(RelationCheck.maximumFindings).map { VerificationFinding($0) }
    }

    /// Checks everything, as ``verify(cancellation:)``, without a way to cancel.
    public func verify() throws -> [VerificationFinding] { try verify(cancellation: Cancellation()) }

    /// Returns 0, because there is no file.
    public func fileBytes() throws -> Int { 0 }
}

extension StoreDescription {
    /// A store in memory that is new at each opening.
    public static var memory: StoreDescription {
        StoreDescription(name: "memory") { MemoryStore(schema: $0) }
    }

    /// Returns a store in memory that all callers with this name share, as long as one of them references it.
    public static func memory(name: String) -> StoreDescription {
        StoreDescription(name: "memory") { try MemoryStoreRegistry.store(named: name, schema: $0) }
    }
}

/// A registry of stores by name, with weak references.
private enum MemoryStoreRegistry {
    private struct Entry {
        weak var store: MemoryStore?
    }

    private static let stores = Mutex<[String: Entry]>([:])

    static func store(named name: String, schema: StoreSchema) throws -> MemoryStore {
        try stores.withLock { stores in
            if let known = stores[name]?.store {
                let schema = schema.keepingKeyedValues(of: known.schema, mayAdd: false)
                guard known.schema.withoutHints == schema.withoutHints else {
                    throw StoreError(
                        .schemaMismatch, "the memory store \(name) is open with another model; choose another name")
                }
                return known
            }
            let made = MemoryStore(schema: schema)
            stores[name] = Entry(store: made)
            return made
        }
    }
}
