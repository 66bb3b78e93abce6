import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A file, or memory, that stores records.
///
/// One object serves all contexts of a process. ``snapshot()``, ``history(after:limit:)`` and the properties are called from any
/// thread, several at once. ``write(_:_:)``, ``claimSaves(_:)`` and ``continueMigration()`` are called by one writer, from one
/// thread at a time, which is never the main thread. All calls may block, except for those that say otherwise.
///
/// A store may be slow or remote: contexts read snapshots, and only the writer waits for a commit. What must be fast is
/// ``snapshot()`` and ``mayHaveCommitted(after:)``, which contexts call on the main thread. A remote store answers both from
/// what it has received, and reports newer saves by ``watch(_:)``.
///
/// Opening the same file twice in one process returns one object, or two objects that take turns to write.
///
/// Errors are `StoreError`. A failed call changes nothing. After ``shutDown()`` every call throws `.closed`. To check an
/// implementation, run the checks of the library `StoreContract`.
public protocol ObjectStore: AnyObject, Sendable {
    /// The identity of the store. Stored with the data: the same at each opening, and another for each new store.
    var identity: StoreIdentity { get }
    /// The incarnations of the store up to the current one. The default has one, which is right for a store without backups.
    var lineage: StoreLineage { get }
    /// The schema that the store was opened with. A store that holds data of another schema migrates it, or throws
    /// `StoreError` `.schemaMismatch` when it is opened.
    var schema: StoreSchema { get }
    /// The abilities of the store. Constant. The default is ``StoreCapabilities/layeredDeferral``,
    /// ``StoreCapabilities/externalSaves`` and ``StoreCapabilities/history``.
    var capabilities: StoreCapabilities { get }
    /// A Boolean value that indicates whether the store was opened read-only. If true, every write throws `StoreError`
    /// `.readOnly`. Constant; the default is false.
    var isReadOnly: Bool { get }
    /// The name of the store in messages: the path of its file.
    var name: String { get }
    /// Returns the newest committed state. Never waits for a writer.
    ///
    /// The state contains every save whose ``write(_:_:)`` has returned in this process. It need not contain a save that
    /// another process has just committed.
    func snapshot() throws -> any StoreSnapshot
    /// Returns whether another process or connection may have committed a save after this generation. Called before reads, on
    /// any thread: about as cheap as reading a variable. False is certain. The default makes a snapshot.
    func mayHaveCommitted(after generation: Generation) -> Bool
    /// Runs the single write transaction on the calling thread and commits it. If `body` throws, the transaction is aborted
    /// and changes nothing, and the call rethrows the error.
    ///
    /// Called from one thread at a time. The call may wait for other processes. If the store cannot finish its transaction,
    /// because a remote commit was refused for instance, it may run `body` again on the newest state. `body` is repeatable
    /// therefore, and writes the same values.
    ///
    /// When the call returns, ``snapshot()`` contains the saves. A ``Durability/durable`` commit survives a power failure from
    /// then on, and makes earlier deferred commits durable too.
    ///
    /// If the call throws, nothing was committed. A store that cannot know, because a connection broke, must find out before
    /// it returns: the caller keeps the saves and tries again.
    /// - Throws: The error of `body`; `StoreError` `.readOnly`, `.storeBusy`, `.full`, `.inputOutput`, `.mustReopen`,
    ///   `.fileReplaced`.
    func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R
    /// Returns a sync that takes deferred commits to disk while further ones are made; nil if the store has none at present.
    /// Commits that wait for the disk are then made with ``Durability/durable``. The default returns nil.
    ///
    /// Called before the first of the commits, from the thread of ``write(_:_:)``, and only if the store does not have
    /// ``StoreCapabilities/layeredDeferral``.
    func separateSync() -> (any CommitSync)?
    /// Acquires the right to save, which ``write(_:_:)`` does not acquire by itself, until the claim is released. Blocks
    /// while other processes have conflicting claims, for a bounded time.
    ///
    /// Called from one thread at a time, and not while a claim of this store exists. The default returns nil. Implement it if
    /// several processes write and the store has ``StoreCapabilities/layeredDeferral``: otherwise a save of another process can
    /// come before a deferred save that was already acknowledged.
    /// - Returns: The claim, or nil if no other process can hold saves back.
    /// - Throws: `StoreError` `.storeBusy`, which names the process that has the conflicting claim; `.fileReplaced`.
    func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)?
    /// Calls `body` on a background queue when another process waits for a claim that holds saves back, until the watch is
    /// released. The default returns nil.
    func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)?
    /// Returns the change sets of the saves after a generation, oldest first, at most `limit`; none if `limit` is negative. If
    /// `generation` is nil, starts at the oldest save in the history. Returns nil if the history does not reach back to
    /// `generation`, or if the store keeps none.
    ///
    /// `generation` is one that the store has given to a save, 0, or any greater number. Each change set is the one that was
    /// passed to ``StoreTransaction/apply(_:changes:numbers:)``, under the generation of its save. A store may delete the
    /// oldest saves by itself.
    func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]?
    /// Calls `body` on a background queue within milliseconds of each save by another writer, including other processes,
    /// until the watch is released. May also call it after saves by this store, and without a save. Returns nil if there can
    /// be no other writer. The default returns nil.
    func watch(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)?
    /// Returns the number of bytes of the file that each of these snapshots, and each reader in another process, keeps from
    /// being reused. The snapshots are of this store. The default knows none.
    func retention(of snapshots: [any StoreSnapshot]) throws -> Retention
    /// Checks everything: checksums, indexes against objects, references and links. Returns an empty list for a sound store, and
    /// one finding per fault, at most 200.
    ///
    /// The default checks references, one-to-one relationships and unique values by reading each object of a snapshot.
    func verify() throws -> [VerificationFinding]
    /// Checks everything, as ``verify()``, and reports the progress. The default calls ``verify()``, which it cannot end.
    /// - Throws: `CancellationError` soon after the cancellation.
    func verify(cancellation: Cancellation) throws -> [VerificationFinding]
    /// Returns the size of the file or files in bytes; 0 in memory.
    func fileBytes() throws -> Int
    /// Returns the size of each table of the store in the newest state. The default knows none.
    func tableSizes() throws -> [TableSize]
    /// Does a small part of the work that opening with a changed schema has deferred. Each part is a transaction of its own,
    /// which occupies the writer for some milliseconds. Indexes that are not yet complete are not used for reading.
    ///
    /// Called from one thread at a time, like ``write(_:_:)``. The default returns nil.
    /// - Returns: The progress, or nil if no work is left.
    func continueMigration() throws -> MigrationProgress?
    /// Closes the store, and releases its file and locks. Afterwards every call throws `StoreError` `.closed`. A second call
    /// does nothing. The default does nothing, which is right for a store without a file.
    ///
    /// Blocks for up to five seconds while snapshots are referenced.
    /// - Throws: `StoreError` `.inUseElsewhere` if snapshots are still referenced after that. The call can be repeated.
    func shutDown() throws
    /// Closes the file and releases every lock until the next call that needs them, which opens the file again. The default
    /// does nothing, which is right for a store without a file.
    ///
    /// Blocks for up to five seconds while snapshots are referenced. The writer makes no other call meanwhile.
    /// - Throws: `StoreError` `.inUseElsewhere` if snapshots are still referenced after that. Then nothing has changed.
    func suspend() throws

    /// The look-ups in the store's cache since it was opened, for metrics; nil, the default, for a store without a cache.
    var cacheUse: CacheUse? { get }

    // MARK: With StoreCapabilities.backup

    /// Writes one committed state of the store to a new file, which opens like the store itself and has its identity.
    ///
    /// The file is marked as a copy: its first opening for writing begins a new incarnation of the store, see
    /// `StoreLineage`. The file gets its name only when the whole copy is on disk and checked. Until then, the name has no
    /// file or the previous file.
    ///
    /// This method blocks; call it on a background thread. It does not block readers and writers.
    /// - Returns: The newest save in the copy.
    /// - Throws: `CancellationError` soon after the cancellation. No file is left in that case. The default throws
    ///   `StoreError` `.unsupported`.
    func backup(to url: URL, existing: ExistingFile, cancellation: Cancellation) throws -> Generation
    /// Writes the bytes of such a file to the descriptor of a file, pipe or socket. Blocks until the last byte is written.
    /// Throws if the reading end is closed. The default throws `StoreError` `.unsupported`.
    ///
    /// Throws `CancellationError` soon after the cancellation, but not during a write that waits for the reader of a pipe or socket.
    func backup(to descriptor: Int32, cancellation: Cancellation) throws

    // MARK: With StoreCapabilities.compaction

    /// Packs pages that have not been written for a while, in small write transactions. Readers never wait, and a writer
    /// waits for one of these transactions at most.
    ///
    /// The file keeps its length. Later saves reuse the freed space when no reader needs it any more. Runs off the calling
    /// executor; a store runs one compaction at a time. `progress` is called after each transaction.
    /// - Throws: `CancellationError` when the task is cancelled; pages packed so far stay packed. `StoreError`.
    func compact(
        _ options: CompactionOptions, progress: @escaping @Sendable (CompactionProgress) -> Void
    ) async throws -> CompactionProgress

    /// Writes a copy of the newest state to a new file without free space. Readers and writers continue. Space that they free
    /// meanwhile is reused only afterwards. The copy gets its name when it is complete, on disk and verified.
    ///
    /// - Parameters:
    ///   - url: The file to create.
    ///   - progress: A closure called with the part of the work that is done, from 0 to 1, on a background thread.
    /// - Throws: `StoreError` `.cannotOpen` if a file of that name exists or the name belongs to this store, `.inputOutput`,
    ///   `.damaged`; `CancellationError`.
    func compactCopy(to url: URL, progress: @escaping @Sendable (Double) -> Void) async throws
}
