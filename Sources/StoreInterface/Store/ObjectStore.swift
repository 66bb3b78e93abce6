#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A reader of objects in one immutable state, by entity and key: a store's snapshot, or layers over a snapshot.
public protocol ObjectReader: Sendable {
    var schema: StoreSchema { get }
    /// Returns the value of a column, or nil if the object does not exist.
    func value(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> Value?
    /// Returns whether the object exists.
    func exists(_ entity: Int, _ key: ObjectKey) throws -> Bool
    /// Returns the keys at the far end of a to-many relationship, ascending.
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey]
}

extension StoreSnapshot {
    public func exists(_ entity: Int, _ key: ObjectKey) throws -> Bool { try version(entity, key) != nil }
}

/// One immutable state of a store. Any number of threads can read it concurrently. Releasing the last reference frees it.
public protocol StoreSnapshot: AnyObject, ObjectReader {
    /// The newest save in the snapshot.
    var generation: Generation { get }
    /// Whether the snapshot shows one state as long as it lives, as the snapshots of all stores do.
    var isFixed: Bool { get }
    /// Returns the save that last wrote the object, or nil if the object does not exist.
    func version(_ entity: Int, _ key: ObjectKey) throws -> Generation?
    /// Returns the objects of one page. If the page has no objects, returns nil or an empty page. The result stays valid as
    /// long as it is referenced.
    func page(_ entity: Int, _ number: UInt64) throws -> (any StorePage)?
    /// The number of pages that a reader should keep: many if a page is a view into the map, few if it has copies of its
    /// values.
    var pagesWorthKeeping: Int { get }
    /// Returns the numbers of the entity's pages, ascending.
    func pageNumbers(_ entity: Int) throws -> [UInt64]
    /// Returns the keys that a query selects.
    func keys(_ query: StoreQuery) throws -> [ObjectKey]
    /// Returns the number of keys that ``keys(_:)`` would return.
    func count(_ query: StoreQuery) throws -> Int
    /// Returns the groups of the objects that a condition selects, with the computed aggregates, in no particular order.
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups
    /// Returns the keys of the objects with this value in an indexed column, ascending. Scans the entity if the column has no
    /// index.
    func lookup(_ entity: Int, column: Int, value: Value) throws -> [ObjectKey]
    /// Returns the keys of the objects that have all of the values, column by column, ascending. Uses an index over exactly
    /// these columns.
    func lookup(_ entity: Int, columns: [Int], values: [Value]) throws -> [ObjectKey]
    /// Returns the bytes of a string or of data, to be read part by part. Returns nil for null, for other types and for a
    /// missing object. The result keeps the snapshot alive.
    func parts(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> (any ValueParts)?
    /// Returns a description of how the query would be answered: by which index, or by a scan.
    func explain(_ query: StoreQuery) throws -> String
}

extension StoreSnapshot {
    public var isFixed: Bool { true }

    public var pagesWorthKeeping: Int { 64 }

    public func lookup(_ entity: Int, columns: [Int], values: [Value]) throws -> [ObjectKey] {
        // A value of another storage class occurs in no object, though a comparison may find it equal.
        guard zip(columns, values).allSatisfy({ $1.isNull || schema.entities[entity].columns[$0].type.holds($1) }) else {
            return []
        }
        let parts = zip(columns, values).map { StorePredicate.compare($0, .equal, $1) }
        return try keys(StoreQuery(entity: entity, predicate: .and(parts)))
    }
}

/// The objects of one page in one snapshot.
public protocol StorePage: AnyObject, Sendable {
    /// A mask of the slots that have an object. If the store cannot read it, all bits are set, so that the read that follows
    /// throws.
    var presence: UInt64 { get }
    /// Returns whether a slot has an object. For pages whose ``presence`` costs more than one lookup.
    func contains(_ slot: Int) throws -> Bool
    /// Returns the slots of a mask that have an object, without reading the objects.
    func present(among slots: UInt64) throws -> UInt64
    /// Returns the save that last wrote an object. Precondition: the slot is present.
    func version(_ slot: Int) throws -> Generation
    /// Returns the value of a column. Precondition: the slot is present.
    func value(_ slot: Int, _ column: Int) throws -> Value
    /// Returns the value of a column, or nil if the slot is empty.
    func presentValue(_ slot: Int, _ column: Int) throws -> Value?
}

extension StorePage {
    public func presentValue(_ slot: Int, _ column: Int) throws -> Value? {
        try contains(slot) ? value(slot, column) : nil
    }

    public func contains(_ slot: Int) throws -> Bool { presence >> UInt64(slot) & 1 != 0 }

    public func present(among slots: UInt64) throws -> UInt64 { presence & slots }
}

/// The single write transaction of a store. It is valid only inside ``ObjectStore/write(_:_:)``.
public protocol StoreTransaction {
    /// The newest save in the file, as seen by this transaction.
    var generation: Generation { get }
    /// Writes a stamped layer, updates the indexes, and appends `changes` to the history under the layer's generation.
    ///
    /// Each row is written under the generation that `numbers` has for its ``Row/version``. An update of a missing object
    /// becomes an insert if all its columns are set, and is dropped otherwise. Links of deleted objects are removed. A pair
    /// with a missing end is not written.
    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws
    /// Leases unused keys in whole pages. No other caller gets these keys. Durable with the transaction.
    func allocateKeys(_ entity: Int, pages: Int) throws -> Range<ObjectKey>
    /// Leases unused keys in pages shared with other objects: returned keys, or some keys of a new page if none were
    /// returned. No other caller gets these keys.
    ///
    /// For a process that opens the store. Use the last range first. Durable with the transaction.
    func allocateFreeKeys(_ entity: Int) throws -> [Range<ObjectKey>]
    /// Ends the lease of keys that no object has had. The caller must not use them afterwards.
    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: Int) throws
    /// Deletes the oldest saves of the history that match a cut, at most `limit`. Returns the number of deleted saves.
    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int
}

extension StoreTransaction {
    /// Writes a layer that is stamped with the generation of its save.
    public func apply(_ layer: Layer, changes: ChangeSet) throws { try apply(layer, changes: changes, numbers: .none) }
}

/// Defaults for stores in which the number of objects per page does not matter.
extension StoreTransaction {
    public func allocateFreeKeys(_ entity: Int) throws -> [Range<ObjectKey>] { [] }
    public func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: Int) throws {}
}

/// The time at which a save reaches the disk, which decides what a power failure may lose.
public enum Durability: Sendable, Hashable {
    /// The save is on disk when the call returns.
    case durable
    /// The save is visible at once. It is on disk within the bound, or when `flush()` returns.
    case deferred(within: Duration)

    /// Deferred with the default bound of one second.
    public static var deferred: Durability { .deferred(within: .seconds(1)) }
}

/// The way in which a store supports deferred saves.
public enum DeferralStyle: Sendable {
    /// The store has only durable commits. Deferred saves wait in memory as layers.
    case layered
    /// The store has a faster commit, which survives a crash of the process but not a power failure.
    case native
}

/// A file, or memory, that stores records. Instances are shared: opening the same file twice returns one store.
public protocol ObjectStore: AnyObject, Sendable {
    var identity: StoreIdentity { get }
    /// The incarnations of the store up to the current one.
    var lineage: StoreLineage { get }
    var schema: StoreSchema { get }
    var deferralStyle: DeferralStyle { get }
    /// A Boolean value that indicates whether the store was opened read-only. If true, every write throws `StoreError`
    /// `.readOnly`.
    var isReadOnly: Bool { get }
    /// The name of the store in messages: the path of its file.
    var name: String { get }
    /// Returns the newest committed state. Never waits for a writer.
    func snapshot() throws -> any StoreSnapshot
    /// Returns whether another process or connection may have committed a save after this generation. Cheap; false is
    /// certain.
    func mayHaveCommitted(after generation: Generation) -> Bool
    /// Runs the single write transaction on the calling thread and commits it. If `body` throws, the transaction is aborted
    /// and changes nothing.
    ///
    /// Called from one thread at a time. The call may wait for other processes. If the store cannot finish its transaction,
    /// it may run `body` again. `body` must therefore be repeatable, with the same values.
    func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R
    /// Acquires the right to save, which ``write(_:_:)`` does not acquire by itself, until the claim is released. Blocks
    /// while other processes have conflicting claims, for a bounded time.
    ///
    /// Called from one thread at a time, and not while a claim of this store exists.
    /// - Returns: The claim, or nil if no other process can hold saves back.
    /// - Throws: `StoreError` `.storeBusy`, which names the process that has the conflicting claim.
    func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)?
    /// Calls `body` on a background queue when another process waits for a claim that holds saves back, until the watch is
    /// released.
    func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)?
    /// Returns the change sets of the saves after a generation, oldest first, at most `limit`. If `generation` is nil, starts
    /// at the oldest save in the history. Returns nil if the history does not reach back to `generation`.
    func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]?
    /// Calls `body` on a background queue within milliseconds of each save by another writer, including other processes,
    /// until the watch is released. May also call it after saves by this store. Returns nil if there can be no other writer.
    func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)?
    /// Returns the number of bytes of the file that each of these snapshots, and each reader in another process, keeps from
    /// being reused.
    func retention(of snapshots: [any StoreSnapshot]) throws -> Retention
    /// Checks everything: checksums, indexes against objects, references and links. Returns an empty list for a sound store.
    func verify() throws -> [VerificationFinding]
    /// Returns the size of the file or files in bytes; 0 in memory.
    func fileBytes() throws -> Int
    /// Does a small part of the work that opening with a changed schema has deferred. Each part is a transaction of its own,
    /// which occupies the writer for some milliseconds. Indexes that are not yet complete are not used for reading.
    ///
    /// Called from one thread at a time, like ``write(_:_:)``.
    /// - Returns: The progress, or nil if no work is left.
    func continueMigration() throws -> MigrationProgress?
    /// Closes the store, and releases its file and locks. Afterwards every call throws `StoreError` `.closed`. A second call
    /// does nothing.
    ///
    /// Blocks for up to five seconds while snapshots are referenced.
    /// - Throws: `StoreError` `.inUseElsewhere` if snapshots are still referenced after that. The call can be repeated.
    func shutDown() throws
}

extension ObjectStore {
    public var isReadOnly: Bool { false }
    public var name: String { "the store" }

    public func continueMigration() throws -> MigrationProgress? { nil }

    public func shutDown() throws {}
}

/// The kind of right that a process acquires on a store's file before it saves.
public enum SaveClaimKind: Sendable {
    /// The right to commit. Several processes can have such a claim; the store's transaction orders their commits.
    case committing
    /// The right to acknowledge saves before they are committed. While a process has this claim, no other process has any
    /// claim.
    case holdingBack
}

/// The right of a process to save, until it is released or deallocated.
public protocol SaveClaim: AnyObject, Sendable {
    /// A Boolean value that indicates whether another process waits for the claim. Costs one system call.
    var isWanted: Bool { get }
    /// Releases the claim. A second call does nothing.
    func release()
}

/// The bytes that readers keep from being reused. Each number is computed as if the reader were the only one.
public struct Retention: Sendable, Hashable {
    /// A reader in another process.
    public struct Foreign: Sendable, Hashable {
        public var processID: Int32
        public var bytes: Int?

        public init(processID: Int32, bytes: Int?) {
            self.processID = processID
            self.bytes = bytes
        }
    }

    /// The bytes per snapshot, in the order of the snapshots; nil if unknown.
    public var bytes: [Int?]
    /// The readers in other processes.
    public var foreign: [Foreign]

    public init(bytes: [Int?], foreign: [Foreign] = []) {
        self.bytes = bytes
        self.foreign = foreign
    }
}

/// A running watch of a store. Releasing it ends the watch.
public protocol StoreWatch: AnyObject, Sendable {}

extension ObjectStore {
    public func retention(of snapshots: [any StoreSnapshot]) throws -> Retention {
        Retention(bytes: snapshots.map { _ in nil })
    }

    public func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? { nil }

    public func mayHaveCommitted(after generation: Generation) -> Bool {
        ((try? snapshot().generation) ?? generation) > generation
    }

    public func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)? { nil }

    public func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? { nil }

    /// Returns all change sets after a generation, or nil if the history does not reach back that far.
    public func changes(after generation: Generation) throws -> [ChangeSet]? { try history(after: generation, limit: .max) }
}

/// One fault found by ``ObjectStore/verify()``.
public struct VerificationFinding: Sendable, Hashable, CustomStringConvertible {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// The identity of the store that an object belongs to: the UUID in the file, interned to a small number that is unique in
/// the process.
public struct StoreIdentity: Sendable, Hashable {
    public let number: UInt32
    public var uuid: UUID { StoreIdentityTable.uuid(of: number) }

    public init(_ uuid: UUID) { number = StoreIdentityTable.number(of: uuid) }
}

/// A description of how to open a store, made by `.lmdb(url)`, `.memory` or `.sqlite(url)` in the modules of those stores.
public struct StoreDescription: Sendable {
    public var name: String
    /// The way contexts read: from their own snapshots, or through their parents as in Core Data.
    public var routing: Routing
    /// Opens the store. Blocks; called off the cooperative threads.
    public var open: @Sendable (StoreSchema) throws -> any ObjectStore
    /// The file of the store, for migrations in stages; nil if the data does not outlive the process.
    public var migration: (any MigratableFile)?

    public init(
        name: String, routing: Routing = .snapshot, migration: (any MigratableFile)? = nil,
        open: @escaping @Sendable (StoreSchema) throws -> any ObjectStore
    ) {
        self.name = name
        self.routing = routing
        self.migration = migration
        self.open = open
    }
}

/// The way that contexts read from a store.
public enum Routing: String, Sendable, Hashable, CaseIterable {
    /// Each context reads layers over a snapshot. No reader waits for another reader or a writer.
    case snapshot
    /// Each request goes through every ancestor's executor to the coordinator's single connection, as in Core Data.
    case ancestors
}
