#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads objects of one immutable state, by entity and key: a store's snapshot, or layers over one.
public protocol ObjectReader: Sendable {
    var schema: StoreSchema { get }
    /// The value of a column; nil when the object does not exist.
    func value(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> Value?
    /// Whether the object exists.
    func exists(_ entity: Int, _ key: ObjectKey) throws -> Bool
    /// The keys at the far end of a to-many relationship, ascending.
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey]
}

extension StoreSnapshot {
    public func exists(_ entity: Int, _ key: ObjectKey) throws -> Bool { try version(entity, key) != nil }
}

/// One immutable state of a store. Any number of threads may read it at once; dropping the last reference frees it.
public protocol StoreSnapshot: AnyObject, ObjectReader {
    /// The newest save that the snapshot holds.
    var generation: Generation { get }
    /// The save that last wrote the object; nil when it does not exist.
    func version(_ entity: Int, _ key: ObjectKey) throws -> Generation?
    /// The objects of one page; nil, or a page without any, when there are none. What it returns stays valid as long as it is held.
    func page(_ entity: Int, _ number: UInt64) throws -> (any StorePage)?
    /// How many pages a reader may hold on to: many where a page is a view into a map, few where it holds copies of its values.
    var pagesWorthKeeping: Int { get }
    /// The numbers of the entity's pages, ascending.
    func pageNumbers(_ entity: Int) throws -> [UInt64]
    /// The keys that a query selects.
    func keys(_ query: StoreQuery) throws -> [ObjectKey]
    /// How many keys ``keys(_:)`` would return.
    func count(_ query: StoreQuery) throws -> Int
    /// The groups of the objects that a condition selects, in no particular order, with what was computed of each.
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups
    /// The keys of the objects whose indexed column holds the value, ascending. Columns without an index are scanned.
    func lookup(_ entity: Int, column: Int, value: Value) throws -> [ObjectKey]
    /// The keys of the objects that hold all of the values, column by column, ascending. Uses an index over exactly these columns.
    func lookup(_ entity: Int, columns: [Int], values: [Value]) throws -> [ObjectKey]
    /// The bytes of a string or of data, to be read part by part; nil for null, for other types and for an object that does not exist.
    /// What it returns keeps the snapshot.
    func parts(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> (any ValueParts)?
    /// How the query would be answered, in words: which index, or a scan.
    func explain(_ query: StoreQuery) throws -> String
}

extension StoreSnapshot {
    public var pagesWorthKeeping: Int { 64 }

    public func lookup(_ entity: Int, columns: [Int], values: [Value]) throws -> [ObjectKey] {
        // A value of another storage class is in no object, though a comparison may find it equal.
        guard zip(columns, values).allSatisfy({ $1.isNull || schema.entities[entity].columns[$0].type.holds($1) }) else {
            return []
        }
        let parts = zip(columns, values).map { StorePredicate.compare($0, .equal, $1) }
        return try keys(StoreQuery(entity: entity, predicate: .and(parts)))
    }
}

/// The objects of one page in one snapshot.
public protocol StorePage: AnyObject, Sendable {
    /// Which slots hold an object. A store that fails to find out says all, so that the reading that follows throws.
    var presence: UInt64 { get }
    /// Whether a slot holds an object: for pages whose ``presence`` costs more than one look-up.
    func contains(_ slot: Int) throws -> Bool
    /// Which of some slots hold an object, without reading what they hold.
    func present(among slots: UInt64) throws -> UInt64
    /// Precondition for both: the slot is present.
    func version(_ slot: Int) throws -> Generation
    func value(_ slot: Int, _ column: Int) throws -> Value
    /// The value of a slot that may be empty; nil when it is.
    func presentValue(_ slot: Int, _ column: Int) throws -> Value?
}

extension StorePage {
    public func presentValue(_ slot: Int, _ column: Int) throws -> Value? {
        try contains(slot) ? value(slot, column) : nil
    }

    public func contains(_ slot: Int) throws -> Bool { presence >> UInt64(slot) & 1 != 0 }

    public func present(among slots: UInt64) throws -> UInt64 { presence & slots }
}

/// The one write transaction of a store. Valid inside ``ObjectStore/write(_:_:)`` only.
public protocol StoreTransaction {
    /// The newest save in the file, as this transaction sees it.
    var generation: Generation { get }
    /// Writes a stamped layer: each row under the generation that `numbers` gives to its ``Row/version``; an update of a missing
    /// object is an insert when all its columns are set and is otherwise dropped. Links of deleted objects go with them, and a pair
    /// with an end that does not exist is left out. Indexes follow. `changes` goes into the history under the layer's generation.
    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws
    /// Keys that no one has had and no one else will get, in whole pages. Durable with the transaction.
    func allocateKeys(_ entity: Int, pages: Int) throws -> Range<ObjectKey>
    /// Keys that no one has had and no one else will get, in pages that other objects share: what was given back, and some of a new page
    /// if nothing was. For a process that opens the store; the last range is to be used first. Durable with the transaction.
    func allocateFreeKeys(_ entity: Int) throws -> [Range<ObjectKey>]
    /// Ends the lease of keys that no object has had. No one may use them afterwards.
    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: Int) throws
    /// Deletes the oldest saves of the history that a cut takes, at most `limit`. Gives how many.
    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int
}

extension StoreTransaction {
    /// Writes a layer that is stamped with the generation of its save.
    public func apply(_ layer: Layer, changes: ChangeSet) throws { try apply(layer, changes: changes, numbers: .none) }
}

/// For stores in which the number of objects to a page does not matter.
extension StoreTransaction {
    public func allocateFreeKeys(_ entity: Int) throws -> [Range<ObjectKey>] { [] }
    public func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: Int) throws {}
}

/// How a store answers the question what a power cut may lose.
public enum Durability: Sendable, Hashable {
    /// On disk when the save returns.
    case durable
    /// Visible at once, on disk within the bound, or when `flush()` returns.
    case deferred(within: Duration)

    /// Deferred with the default bound of one second.
    public static var deferred: Durability { .deferred(within: .seconds(1)) }
}

/// Whether the engine above may hold saved layers back in memory.
public enum DeferralStyle: Sendable {
    /// The store knows only durable commits; deferred saves wait in memory as layers.
    case layered
    /// The store has a faster commit of its own that survives a crash of the process but not a power cut.
    case native
}

/// A file, or memory, that keeps records. Implementations are shared: opening the same file twice gives one store.
public protocol ObjectStore: AnyObject, Sendable {
    var identity: StoreIdentity { get }
    /// The incarnations of the store up to the one that is open.
    var lineage: StoreLineage { get }
    var schema: StoreSchema { get }
    var deferralStyle: DeferralStyle { get }
    /// Whether the store was opened for reading only: then every write throws `StoreError` `.readOnly`.
    var isReadOnly: Bool { get }
    /// The store in messages: the path of its file.
    var name: String { get }
    /// The newest committed state. Never waits for a writer.
    func snapshot() throws -> any StoreSnapshot
    /// Whether another process or connection may have committed a save after this generation. Cheap; false is certain.
    func mayHaveCommitted(after generation: Generation) -> Bool
    /// Runs the one write transaction on the calling thread and commits it; a thrown error aborts it and leaves nothing.
    /// Called from one thread at a time, which may wait for other processes. `body` may be run again when the store could not finish
    /// its transaction, so it must be repeatable, with the same values.
    func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R
    /// Claims the right to save, which ``write(_:_:)`` does not do by itself, until the claim is released. Blocking: waits for other
    /// processes, for a bounded time. nil: no other process can hold saves back.
    ///
    /// Called from one thread at a time, and not while a claim of this store is held.
    /// - Throws: `StoreError` `.storeBusy`, naming the process that was waited for.
    func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)?
    /// Calls `body` on a background queue when another process waits for a claim that holds saves back, until the watch is dropped.
    func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)?
    /// The change sets of the saves after a generation, oldest first, at most `limit`; nil when the history does not reach back
    /// that far. After nil: from the oldest that there is.
    func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]?
    /// Calls `body` on a background queue within milliseconds of each save that somebody else commits, other processes
    /// included, and perhaps after own ones, until the watch is dropped. nil: nobody else can save.
    func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)?
    /// How many bytes of the file cannot be used anew because of each of these snapshots, and of readers in other processes.
    func retention(of snapshots: [any StoreSnapshot]) throws -> Retention
    /// Walks everything: checksums, indexes against objects, references, links. An empty list is a sound store.
    func verify() throws -> [VerificationFinding]
    /// Bytes of the file or files; 0 in memory.
    func fileBytes() throws -> Int
    /// Does a small part of the work that opening with a changed schema left for later, in a transaction of its own that holds the
    /// writer for some milliseconds. nil: nothing is left. Until then the work's indexes are not used for reading.
    /// As ``write(_:_:)``, called from one thread at a time.
    func continueMigration() throws -> MigrationProgress?
    /// Ends the use of the store, and releases its file and locks. Afterwards every call throws `StoreError` `.closed`. Blocking: waits up to
    /// five seconds for snapshots that are still held. A second call does nothing.
    /// - Throws: `StoreError` `.inUseElsewhere` if snapshots are held after that; then the call can be repeated.
    func shutDown() throws
}

extension ObjectStore {
    public var isReadOnly: Bool { false }
    public var name: String { "the store" }

    public func continueMigration() throws -> MigrationProgress? { nil }

    public func shutDown() throws {}
}

/// What a process claims of a store's file before it saves.
public enum SaveClaimKind: Sendable {
    /// To commit. Several processes may have such a claim; the store's transaction orders them.
    case committing
    /// To acknowledge saves before they are committed. While a process has this claim, no other process has any.
    case holdingBack
}

/// The right of a process to save, until it is released or dropped.
public protocol SaveClaim: AnyObject, Sendable {
    /// Whether another process waits for the claim. One system call.
    var isWanted: Bool { get }
    /// Does nothing the second time.
    func release()
}

/// What readers keep from reuse. Each number is what the reader would keep if it were the only one.
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

    /// In the order of the snapshots; nil where it cannot be known.
    public var bytes: [Int?]
    public var foreign: [Foreign]

    public init(bytes: [Int?], foreign: [Foreign] = []) {
        self.bytes = bytes
        self.foreign = foreign
    }
}

/// Watches a store as long as it is held.
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

    /// All change sets after a generation; nil when the history does not reach back that far.
    public func changes(after generation: Generation) throws -> [ChangeSet]? { try history(after: generation, limit: .max) }
}

/// One thing that ``ObjectStore/verify()`` found wrong.
public struct VerificationFinding: Sendable, Hashable, CustomStringConvertible {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// Which store an object belongs to: the UUID in the file, interned to a small number that is unique in the process.
public struct StoreIdentity: Sendable, Hashable {
    public let number: UInt32
    public var uuid: UUID { StoreIdentityTable.uuid(of: number) }

    public init(_ uuid: UUID) { number = StoreIdentityTable.number(of: uuid) }
}

/// How to open a store: made by `.lmdb(url)`, `.memory`, `.sqlite(url)` in the modules of those stores.
public struct StoreDescription: Sendable {
    public var name: String
    /// How contexts read: their own snapshots, or through their parents as Core Data does.
    public var routing: Routing
    /// Blocking; called off the cooperative threads.
    public var open: @Sendable (StoreSchema) throws -> any ObjectStore
    /// For a store in a file: how it is migrated in stages. nil: what it holds does not outlive the model.
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

public enum Routing: String, Sendable, Hashable, CaseIterable {
    /// Each context reads layers over a snapshot; nobody waits for anybody.
    case snapshot
    /// Each request goes through every ancestor's executor to the coordinator's one connection, as in Core Data.
    case ancestors
}
