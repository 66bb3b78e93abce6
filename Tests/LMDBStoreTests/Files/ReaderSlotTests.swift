import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// All reader slots are taken, by dead processes, whose slots are used again, or by live snapshots.
@Suite struct ReaderSlotTests {
    private static let slots = 12

    private static var options: LMDBStore.Options {
        var options = LMDBStore.Options()
        options.maximumReaders = slots
        return options
    }

    /// Returns snapshots of `count` saves, one each.
    private static func hold(_ count: Int, _ store: LMDBStore) throws -> [any StoreSnapshot] {
        try (0..<count).map { _ in
            try store.insertTracks(1)
            return try store.snapshot()
        }
    }

    /// Takes slots by snapshots of different saves until none is left.
    private static func fill(_ store: LMDBStore) throws -> (held: [any StoreSnapshot], error: StoreError?) {
        var held: [any StoreSnapshot] = []
        while held.count < 100 {
            do { held += try hold(1, store) } catch let error as StoreError { return (held, error) }
        }
        return (held, nil)
    }

    @Test func aFullTableOfLivingReadersRefusesWhatNeedsASlotAndLosesNothing() throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        try store.insertTracks(64)
        var (held, error) = try Self.fill(store)
        #expect(error?.code == .readersFull, "\(String(describing: error))")
        #expect(error?.message.contains("drop snapshots") == true)
        #expect(held.count >= Self.slots - 2)
        let saved = held.count
        // A save that could not be read back is refused whole. It is not in the file.
        #expect(throws: StoreError.self) { try store.insertTracks(1) }
        let newest = try #require(held.last)
        #expect(newest.generation.rawValue == saved + 1)
        #expect(try newest.count(StoreQuery(entity: Samples.track)) == 64 + saved)
        #expect(try held[0].count(StoreQuery(entity: Samples.track)) == 65)
        let target = scratch.folder.appendingPathComponent("copy")
        let refusal = #expect(throws: StoreError.self) { try store.backup(to: target, existing: .refuse) }
        #expect(refusal?.code == .readersFull)
        // One snapshot that is released makes room for all of this.
        held.removeFirst(2)
        try store.insertTracks(1)
        #expect(try store.snapshot().generation.rawValue == saved + 2)
        #expect(try store.backup(to: target, existing: .refuse).rawValue == saved + 2)
        held = []
        #expect(try store.verify() == [])
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 65 + saved)
    }

    @Test func slotsOfKilledProcessesAreUsedAgainWhenTheTableIsFull() async throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        try store.insertTracks(64)
        let own = try Self.hold(4, store)
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = scratch.url.path as String] in
            let other = try LMDBStore.open(URL(fileURLWithPath: path), schema: Samples.schema, options: ReaderSlotTests.options)
            let (held, error) = try ReaderSlotTests.fill(other)
            try #require(error?.code == .readersFull)
            withExtendedLifetime(held) { _ = kill(getpid(), SIGKILL) }
        }
        // All slots are taken, most of them by dead processes. A backup, snapshots and saves find slots.
        let information = try store.environment.information()
        #expect(information.usedReaderSlots == Self.slots)
        _ = try store.backup(to: scratch.folder.appendingPathComponent("copy"), existing: .refuse)
        let more = try Self.hold(5, store)
        #expect(own.count + more.count == 9)
        #expect(try store.verify() == [])
    }

    @Test func aProcessThatFindsTheTableFullSaysSoAndOpensWhenASlotIsFree() async throws {
        let scratch = try Scratch()
        let store = try scratch.store(Self.options)
        var (held, error) = try Self.fill(store)
        #expect(error?.code == .readersFull)
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String] in
            let url = URL(fileURLWithPath: path)
            let error = #expect(throws: StoreError.self) {
                let other = try LMDBStore.open(url, schema: Samples.schema, options: ReaderSlotTests.options)
                _ = try other.snapshot()
            }
            try #require(error?.code == .readersFull, "\(String(describing: error))")
        }
        let saved = held.count
        held.removeFirst(4)
        // Slots that are kept for reuse are released for a call that needs one.
        try store.environment.clearDeadReaders()
        _ = try store.backup(to: scratch.folder.appendingPathComponent("copy"), existing: .refuse)
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == saved)
        #expect(try store.verify() == [])
    }
}
