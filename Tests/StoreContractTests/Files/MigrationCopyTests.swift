import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Testing

/// The copy of a custom migration, while other stores use the original.
@Suite struct MigrationCopyTests {
    /// A change of a file that makes no save.
    enum Change: String, CaseIterable, Sendable { case deletedHistory, leasedKeys, returnedKeys }

    /// Makes a store with one item. Returns the leased keys, of which the item has the first.
    private static func make(_ kind: FileKind, _ path: String) throws -> Range<ObjectKey> {
        let store = try kind.open(path)
        let keys = try store.write(.durable) { try $0.allocateKeys(Sample.item, pages: 1) }
        try ContractStore.save(store, durability: .durable) { $0.insertItem(keys.lowerBound, name: "item") }
        return keys
    }

    private static func apply(_ change: Change, _ keys: Range<ObjectKey>, in transaction: any StoreTransaction) throws {
        switch change {
        case .deletedHistory:
            let count = try transaction.deleteHistory(.through(1), limit: 10)
            #expect(count == 1)
        case .leasedKeys: _ = try transaction.allocateKeys(Sample.item, pages: 1)
        case .returnedKeys: try transaction.giveBackKeys([keys.lowerBound.advanced(by: 1)..<keys.upperBound], Sample.item)
        }
    }

    /// Catches: a migration that brings back a deleted history, and that gives out keys which another store has leased or returned.
    ///
    /// Returned keys are missing in a copy, which therefore never uses them. Only LMDB refuses them, as it refuses every commit.
    @Test(
        arguments: FileKind.allCases.flatMap { kind in Change.allCases.map { (kind, $0) } }
            .filter { $0.0 != .sqlite || $0.1 != .returnedKeys })
    func `S164: a file that was changed without a save while it was migrated is not replaced`(
        _ kind: FileKind, _ change: Change
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        let keys = try Self.make(kind, path)
        let copy = try #require(try kind.description(path).migration?.makeCopy())
        try kind.open(path).write(.durable) { try Self.apply(change, keys, in: $0) }
        let error = #expect(throws: StoreError.self) { try copy.replaceOriginal() }
        #expect(
            error?.code == .inUseElsewhere && error?.message.contains("was changed while it was migrated") == true,
            "\(String(describing: error))")
        copy.discard()
        let store = try kind.open(path)
        #expect(try store.history(after: nil, limit: 10)?.map(\.generation) == (change == .deletedHistory ? [] : [1]))
        #expect(try store.snapshot().all(Sample.item) == [keys.lowerBound])
        #expect(try store.verify() == [])
        // A copy of the changed file replaces it.
        try store.shutDown()
        try #require(try kind.description(path).migration?.makeCopy()).replaceOriginal()
    }

    /// Catches: a migration that fails because a store was opened meanwhile, which has leased keys and returned all of them.
    @Test func `S164: a file that was opened and closed without a change while it was migrated is replaced`() throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        let keys = try Self.make(.sqlite, path)
        let copy = try #require(try FileKind.sqlite.description(path).migration?.makeCopy())
        // A store that was being closed returns keys that it has leased before.
        let closing = try FileKind.sqlite.open(path)
        try closing.write(.durable) { try Self.apply(.returnedKeys, keys, in: $0) }
        try closing.shutDown()
        for pages in 0...2 {
            let store = try FileKind.sqlite.open(path)
            if pages > 0 {
                let leased = try store.write(.durable) { try $0.allocateKeys(Sample.item, pages: pages) }
                try store.write(.durable) { try $0.giveBackKeys([leased], Sample.item) }
            }
            try store.shutDown()
        }
        try copy.replaceOriginal()
        let store = try FileKind.sqlite.open(path)
        #expect(try store.snapshot().all(Sample.item) == [keys.lowerBound])
        #expect(try store.verify() == [])
    }

    /// Catches: a migration that gives out keys which another store has taken from the returned ones meanwhile. An object with such a key need
    /// not have been saved to be known elsewhere.
    @Test(arguments: [false, true])
    func `S002, S164: a SQLite file whose returned keys were leased while it was migrated is not replaced`(
        _ isReturnedInPart: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        let keys = try Self.make(.sqlite, path)
        let first = try FileKind.sqlite.open(path)
        try first.write(.durable) { try Self.apply(.returnedKeys, keys, in: $0) }
        try first.shutDown()
        let copy = try #require(try FileKind.sqlite.description(path).migration?.makeCopy())
        let other = try FileKind.sqlite.open(path)
        let leased = try other.write(.durable) { try $0.allocateFreeKeys(Sample.item) }
        let range = try #require(leased.first)
        if isReturnedInPart {
            try other.write(.durable) { try $0.giveBackKeys([range.lowerBound.advanced(by: 1)..<range.upperBound], Sample.item) }
        }
        try other.shutDown()
        let error = #expect(throws: StoreError.self) { try copy.replaceOriginal() }
        #expect(error?.code == .inUseElsewhere)
        copy.discard()
    }
}
