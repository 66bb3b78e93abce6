import MemoryStore
import Platform
import StoreInterface
import StoreModel
import TestSupport

@testable import ObjectGraph

extension PersistentStoreCoordinator {
    /// Creates a coordinator of the tests' model over a store that fails, with a clock that the test advances.
    static func music(_ store: FaultyStore, _ clock: SteppedClock) throws -> PersistentStoreCoordinator {
        try PersistentStoreCoordinator(model: Music.model, store: store, name: "test", clock: clock.source)
    }

    /// Returns the titles of all tracks in a new context.
    func titles() async throws -> [String] { try await newBackgroundContext().perform { try $0.trackTitles() } }
}

/// A store in memory that fails when a test requests it, and counts its calls.
final class FaultyStore: ObjectStore {
    enum Call: Hashable, CaseIterable {
        case snapshot, write, apply, commit, claim, history
        /// The sync beside the writer, which only a store without layered deferral has.
        case sync
        /// The start of the watch for other processes that wait for the claim.
        case watchClaimRequests
        /// A step of the work that opening has left for later.
        case continueMigration
        /// The calls of a transaction for keys and for the history.
        case allocateKeys, allocateFreeKeys, giveBackKeys, deleteHistory
        /// The question whether the store can be written, which no error answers.
        case isReadOnly
        /// The reads of a ``FaultySnapshot`` and its pages.
        case readValue, readVersion, readPage, readRelated, readKeys, lookUp

        /// The calls that read through a snapshot.
        static let reads: [Call] = [.readValue, .readVersion, .readPage, .readRelated, .readKeys, .lookUp]
        /// The calls of the store, its transactions and its syncs that can fail.
        static let ofStore: [Call] = allCases.filter { $0 != .isReadOnly && !reads.contains($0) }
    }

    private struct State {
        var counts: [Call: Int] = [:]
        /// Called before each call with its number, from 1 on. Returns the error to throw, or nil.
        var fault: (@Sendable (Call, Int) -> (any Error)?)?
        /// Called before each layer is written. Returns the error to throw, or nil.
        var refusal: (@Sendable (Layer) -> (any Error)?)?
        /// Called after each commit, before the writer knows of it.
        var afterCommit: (@Sendable () -> Void)?
        /// Called for each step of the work that opening has left for later. Returns the progress; nil if no work is left.
        var migrationStep: (@Sendable () throws -> MigrationProgress?)?
        /// Whether another process waits for the claim.
        var isWanted = false
        var heldClaims = 0
        var requests: [@Sendable () -> Void] = []
    }

    private let content: Mutex<MemoryStore>
    private var memory: MemoryStore { content.withLock { $0 } }
    private let state = Mutex(State())
    let identity: StoreIdentity
    let schema: StoreSchema

    let capabilities: StoreCapabilities

    init(schema: StoreSchema, capabilities: StoreCapabilities = [.layeredDeferral, .externalSaves, .history]) {
        let memory = MemoryStore(schema: schema)
        (identity, self.schema) = (memory.identity, schema)
        content = Mutex(memory)
        self.capabilities = capabilities
    }

    /// Creates another connection to the content of a store. Its calls fail and are counted on their own.
    init(sharing other: FaultyStore) {
        (identity, schema, capabilities) = (other.identity, other.schema, other.capabilities)
        content = Mutex(other.memory)
    }

    /// Sets the function that decides which calls fail. nil means that none fails.
    func fail(_ fault: (@Sendable (Call, Int) -> (any Error)?)?) { state.withLock { $0.fault = fault } }

    /// Holds calls of a kind, and sets a flag in each, until another flag is set. Then the calls fail if there is an error.
    func hold(_ held: Call, _ isHeld: Flag, until mayEnd: Flag, error: StoreError? = nil) {
        fail { call, _ in
            guard call == held else { return nil }
            isHeld.set()
            _ = mayEnd.wait(atMost: .seconds(600))
            return error
        }
    }

    /// Sets the function that decides which layers cannot be written. nil means that all can.
    func refuse(_ refusal: (@Sendable (Layer) -> (any Error)?)?) { state.withLock { $0.refusal = refusal } }

    /// Sets the function that runs after each commit, before the writer knows of it.
    func afterCommit(_ body: (@Sendable () -> Void)?) { state.withLock { $0.afterCommit = body } }

    /// Sets the function that does the work that opening leaves for later. nil means that there is none. Call this before a writer exists.
    func migrate(_ step: (@Sendable () throws -> MigrationProgress?)?) { state.withLock { $0.migrationStep = step } }

    func count(_ call: Call) -> Int { state.withLock { $0.counts[call] ?? 0 } }

    /// Acts as another process that begins or stops waiting for the claim.
    func setWanted(_ isWanted: Bool) {
        let requests = state.withLock { state in
            state.isWanted = isWanted
            return isWanted ? state.requests : []
        }
        for request in requests { request() }
    }

    var heldClaims: Int { state.withLock { $0.heldClaims } }

    /// Commits a save without the writer's knowledge, as another process does.
    func saveElsewhere(_ layer: Layer) throws {
        try memory.write(.durable) { transaction in
            layer.stamp(transaction.generation.next)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet())
        }
    }

    /// Acts as another program that copies an empty store over this one.
    func overwrite() { content.withLock { $0 = MemoryStore(schema: schema) } }

    private func note(_ call: Call) throws {
        // The fault may call the store itself, so it is called without the lock.
        let (fault, number) = state.withLock { state in
            state.counts[call, default: 0] += 1
            return (state.fault, state.counts[call] ?? 0)
        }
        if let error = fault?(call, number) { throw error }
    }

    private func willApply(_ layer: Layer) throws {
        try note(.apply)
        if let refusal = state.withLock({ $0.refusal }), let error = refusal(layer) { throw error }
    }

    // MARK: ObjectStore

    var isReadOnly: Bool {
        try? note(.isReadOnly)
        return false
    }

    func snapshot() throws -> any StoreSnapshot {
        try note(.snapshot)
        return FaultySnapshot(try memory.snapshot()) { try self.note($0) }
    }

    func mayHaveCommitted(after generation: Generation) -> Bool {
        ((try? memory.snapshot().generation) ?? generation) > generation
    }

    func write<R>(_ durability: Durability, _ body: (any StoreTransaction) throws -> R) throws -> R {
        try note(.write)
        defer { state.withLock { $0.afterCommit }?() }
        return try memory.write(durability) { transaction in
            let calls = FaultyTransaction(transaction, willApply: { try self.willApply($0) }, note: { try self.note($0) })
            let result = try body(calls)
            try self.note(.commit)
            return result
        }
    }

    func separateSync() -> (any CommitSync)? { capabilities.contains(.layeredDeferral) ? nil : Sync(self) }

    private final class Sync: CommitSync {
        private let store: FaultyStore

        init(_ store: FaultyStore) { self.store = store }

        func sync() throws { try store.note(.sync) }
    }

    func history(after generation: Generation?, limit: Int) throws -> [ChangeSet]? {
        try note(.history)
        return try memory.history(after: generation, limit: limit)
    }

    func verify() throws -> [VerificationFinding] { try memory.verify() }
    func fileBytes() throws -> Int { 0 }

    func continueMigration() throws -> MigrationProgress? {
        try note(.continueMigration)
        let step = state.withLock { $0.migrationStep }
        return try step?()
    }

    func claimSaves(_ kind: SaveClaimKind) throws -> (any SaveClaim)? {
        try note(.claim)
        state.withLock { $0.heldClaims += 1 }
        return Claim(self)
    }

    func watchClaimRequests(_ body: @escaping @Sendable () -> Void) throws -> (any StoreWatch)? {
        try note(.watchClaimRequests)
        state.withLock { $0.requests.append(body) }
        return Watch()
    }

    private final class Watch: StoreWatch {}

    private final class Claim: SaveClaim {
        private let store: FaultyStore
        private let isHeld = Atomic(true)

        init(_ store: FaultyStore) { self.store = store }

        var isWanted: Bool { store.state.withLock { $0.isWanted } }

        func release() {
            if isHeld.exchange(false, ordering: .acquiringAndReleasing) { store.state.withLock { $0.heldClaims -= 1 } }
        }
    }
}

/// A transaction that counts its calls, and fails when a test requests it.
private final class FaultyTransaction: StoreTransaction {
    private let transaction: any StoreTransaction
    private let willApply: (Layer) throws -> Void
    private let note: (FaultyStore.Call) throws -> Void

    init(
        _ transaction: any StoreTransaction, willApply: @escaping (Layer) throws -> Void,
        note: @escaping (FaultyStore.Call) throws -> Void
    ) {
        self.transaction = transaction
        self.willApply = willApply
        self.note = note
    }

    var generation: Generation { transaction.generation }

    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws {
        try willApply(layer)
        try transaction.apply(layer, changes: changes, numbers: numbers)
    }

    func allocateKeys(_ entity: EntityIndex, pages: Int) throws -> Range<ObjectKey> {
        try note(.allocateKeys)
        return try transaction.allocateKeys(entity, pages: pages)
    }

    func allocateFreeKeys(_ entity: EntityIndex) throws -> [Range<ObjectKey>] {
        try note(.allocateFreeKeys)
        return try transaction.allocateFreeKeys(entity)
    }

    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: EntityIndex) throws {
        try note(.giveBackKeys)
        try transaction.giveBackKeys(keys, entity)
    }

    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int {
        try note(.deleteHistory)
        return try transaction.deleteHistory(cut, limit: limit)
    }
}
