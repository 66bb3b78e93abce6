import Logging
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Deferred saves that are kept until they can be written: the file has to be opened again, or the coordinator is released.
@Suite struct KeptSavesTests {
    private let clock = SteppedClock()

    private static let mustReopen = StoreError(.mustReopen, "the file takes no writes. Close it, and open it again")
    private static let diskFull = StoreError(.full, "the disk is full. Make room")

    private static func saveLater(_ title: String, _ context: BackgroundContext) async throws {
        try await context.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack(title) }
    }

    private static func count(_ store: FaultyStore) throws -> Int { try store.snapshot().count(Music.query("Track")) }

    // MARK: A file that must be opened again

    private func container(_ store: FaultyStore) async throws -> PersistentContainer {
        try await PersistentContainer(model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
    }

    /// Makes commits fail until the last container on the store has closed its contexts, as LMDB can open a file again only then.
    private static func refuseUntilClosed(_ store: FaultyStore, _ writer: StoreWriter) {
        store.fail { [weak writer] call, _ in call == .commit && writer?.isRetired == false ? mustReopen : nil }
    }

    /// Catches: acknowledged saves that are left out, and further ones that are acknowledged, although the file takes no write.
    @Test func `S066: deferred saves stay while the file has to be opened again, and closing writes them`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await container(store)
        let (writer, context) = (container.coordinator.writer, container.newBatchOperationContext())
        try await Self.saveLater("a", context)
        Self.refuseUntilClosed(store, writer)
        await #expect(throws: Self.mustReopen) { try await container.coordinator.flush() }
        await #expect(throws: Self.mustReopen) { try await Self.saveLater("b", context) }
        #expect(await context.perform { $0.hasChanges })
        #expect(writer.state.pendingSaves == 1 && store.heldClaims == 1)
        #expect(try await container.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        try await container.close()
        #expect(try Self.count(store) == 1)
        #expect(store.heldClaims == 0)
    }

    /// Catches: a save that does not tell that the disk is full, because its second try meets a file that takes no writes.
    @Test func `S066: the first save that fails tells why, and later ones that the file has to be opened again`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let context = try await container(store).newBatchOperationContext()
        await context.perform { _ = $0.makeTrack("a") }
        let commits = store.count(.commit)
        store.fail { call, _ in
            guard call == .commit else { return nil }
            return store.count(.commit) <= commits + 1 ? Self.diskFull : Self.mustReopen
        }
        await #expect(throws: Self.diskFull) { try await context.save(.durable) }
        await #expect(throws: Self.mustReopen) { try await context.save(.durable) }
        store.fail(nil)
        try await context.save(.durable)
        #expect(try Self.count(store) == 1)
    }

    /// Catches: a container that cannot be closed, and saves that are lost with the first of two containers.
    @Test func `S066: the last of two containers writes the saves for which the file has to be opened again`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let (first, second) = (try await container(store), try await container(store))
        let writer = first.coordinator.writer
        #expect(second.coordinator.writer === writer)
        try await Self.saveLater("a", first.newBatchOperationContext())
        Self.refuseUntilClosed(store, writer)
        await #expect(throws: Self.mustReopen) { try await first.close() }
        #expect(writer.state.pendingSaves == 1)
        #expect(try await second.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        try await second.close()
        #expect(try Self.count(store) == 1)
        #expect(store.heldClaims == 0)
    }

    /// Catches: deferred saves that are refused for ever, because of an error that a durable save has overcome.
    @Test(arguments: [StoreError.Code.schemaMismatch, .mustReopen])
    func `S066: deferred saves are accepted again after a durable save has written those before it`(
        _ code: StoreError.Code
    ) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let context = coordinator.newBackgroundContext()
        try await Self.saveLater("a", context)
        store.fail { call, _ in call == .commit ? StoreError(code, "the file takes no saves. Open it again") : nil }
        await #expect(throws: StoreError.self) { try await coordinator.flush() }
        store.fail(nil)
        try await context.perform(andSave: .durable) { _ = $0.makeTrack("b") }
        try await Self.saveLater("c", context)
        try await coordinator.flush()
        #expect(try await coordinator.titles() == ["a", "b", "c"])
        #expect(try Self.count(store) == 3)
    }

    // MARK: Released coordinators

    private struct Released {
        weak var writer: StoreWriter?
        /// The number of claims before.
        var claims: Int
    }

    /// Saves deferred, lets commits fail if there is an error, and releases the coordinator.
    private func saveAndRelease(_ store: FaultyStore, error: StoreError?) async throws -> Released {
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        try await Self.saveLater("a", coordinator.newBackgroundContext())
        return withExtendedLifetime(coordinator) {
            store.fail { call, _ in call == .commit ? error : nil }
            return Released(writer: coordinator.writer, claims: store.count(.claim))
        }
    }

    /// Catches: acknowledged saves that are lost because the disk was full when the last coordinator was released.
    @Test func `S066: deferred saves of a released coordinator are written when the disk has room again`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        _ = try await saveAndRelease(store, error: Self.diskFull)
        for _ in 0..<2 {
            // The writer tries once more in each second.
            let tries = store.count(.write)
            try await until("the disk refuses the save") {
                clock.advance(by: .seconds(1))
                return store.count(.write) > tries
            }
        }
        store.fail(nil)
        try await until("the save is written") {
            clock.advance(by: .seconds(1))
            return try Self.count(store) == 1 && store.heldClaims == 0
        }
        #expect(try store.verify() == [])
    }

    /// Catches: a writer that is kept, with its claim, for saves that the file will never take.
    @Test func `S066: a released coordinator does not keep saves when the file has another model`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let released = try await saveAndRelease(
            store, error: StoreError(.schemaMismatch, "the file has another schema. Open it anew"))
        try await until("the writer is released") { released.writer == nil }
        #expect(try Self.count(store) == 0)
    }

    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    /// Defers saves, lets commits fail because the file is gone, and releases the coordinator.
    private static func saveAndLose(_ count: Int, _ clock: SteppedClock) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        for number in 0..<count { try await saveLater("title", coordinator.newBackgroundContext(name: "context \(number)")) }
        store.fail { call, _ in call == .commit ? StoreError.fileReplaced("store", isGone: true) : nil }
        withExtendedLifetime(coordinator) {}
    }

    /// Catches: acknowledged saves that are lost without a word, and a line of the log that grows with their number.
    @Test func `S066: the log lists the saves that a released coordinator loses, at most twenty of them`() async throws {
        // A process has one handler for all loggers. The test sets it in another process than the other tests.
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { line in lines.all.withLock { $0.append(line) } } }
            let clock = SteppedClock()
            try await KeptSavesTests.saveAndLose(22, clock)
            func lost() -> [String] { lines.all.withLock { $0.filter { $0.contains("are lost with the last container") } } }
            try await until("the saves are listed") { !lost().isEmpty }
            let line = lost()[0]
            try #require(line.hasPrefix("error 22 deferred save(s) of"), "\(line)")
            for number in 0..<20 { try #require(line.contains("the save of context \(number) at "), "\(line)") }
            try #require(!line.contains("the save of context 20 at ") && line.hasSuffix("; 2 more"), "\(line)")
            try #require(line.contains("it was deleted or moved"), "\(line)")
            withExtendedLifetime(clock) {}
        }
    }

    /// Saves deferred in another container after the given one is closed, fills the disk, and releases the other container.
    private func saveAndRelease(_ store: FaultyStore, closing first: PersistentContainer) async throws {
        let second = try await container(store)
        try await first.close()
        try await Self.saveLater("a", second.newBatchOperationContext())
        withExtendedLifetime(second) { store.fail { call, _ in call == .commit ? Self.diskFull : nil } }
    }

    /// Catches: a store that nothing can close, because the closed container keeps it, and saves that are lost with the released one.
    @Test(arguments: [true, false])
    func `S066: the saves of another container that was released on a full disk are written, and the store is closed`(
        _ closesAgain: Bool
    ) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let first = try await container(store)
        let writer = first.coordinator.writer
        try await saveAndRelease(store, closing: first)
        try await until("closing again reports the full disk") {
            do { try await first.close() } catch let error as StoreError { return error == Self.diskFull }
            return false
        }
        #expect(!writer.isRetired && writer.state.pendingSaves == 1)
        store.fail(nil)
        if closesAgain { try await first.close() }
        try await until("the store is closed") { !StoreWriterRegistry.isKnown(writer) }
        #expect(writer.isRetired)
        #expect(try Self.count(store) == 1)
        #expect(store.heldClaims == 0)
    }

    /// Catches: a save of which a power failure takes more than its bound allows, because the coordinator was released before.
    @Test func `S066: deferred saves that are not synced yet are synced when the coordinator is released`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema, capabilities: [.externalSaves, .history])
        let claims = try await saveAndRelease(store, error: nil).claims
        // Returning unused keys to the store claims nothing.
        try await until("the store syncs") { store.count(.claim) > claims }
        #expect(try Self.count(store) == 1)
    }
}
