import Foundation
import LMDB
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// LMDB reuses the pages of a large value if a smaller value replaces it within the same transaction.
@Suite struct OverflowRunTests {
    /// Creates a row of the history that was longer before in its own transaction, so that it takes more pages than it needs.
    private func store(_ scratch: Scratch, pages: Int) throws -> LMDBStore {
        let store = try scratch.store()
        try store.insertTracks(10)
        try store.tamper { transaction in
            let row = Array(try #require(try transaction.get(store.tables.history, 1)))
            let key = Array("unclaimed 1 5".utf8)
            for count in [pages * 4096, 2100] {
                try key.withUnsafeBytes { key in
                    try [UInt8](repeating: 7, count: count).withUnsafeBytes {
                        try transaction.put(store.tables.meta, key: key, value: $0)
                    }
                }
            }
            try row.withUnsafeBytes { try transaction.put(store.tables.history, key: 1, value: $0) }
        }
        return store
    }

    @Test(arguments: [2, 9, 300]) func aValueThatShrankInItsTransactionIsSound(pages: Int) throws {
        let scratch = try Scratch()
        let store = try store(scratch, pages: pages)
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .everything) == [])
        let copy = scratch.folder.appendingPathComponent("copy")
        _ = try store.backup(to: copy, existing: .refuse)
        #expect(try TreeCheck.findings(path: copy.path, scope: .everything) == [])
    }

    @Test func everythingOpensAFileWithSuchAValue() throws {
        let scratch = try Scratch()
        _ = try store(scratch, pages: 9)
        var options = LMDBStore.Options()
        options.openingCheck = .everything
        #expect(try scratch.store(options).snapshot().generation == 1)
    }

    /// The count of pages is on the first of them, where damage may have left any number.
    @Test(arguments: [0, 1, 0x7FFF_FFFF, UInt32.max] as [UInt32]) func aWrongCountOfPagesIsAFinding(count: UInt32) throws {
        let scratch = try Scratch()
        _ = try store(scratch, pages: 9)
        var bytes = try Data(contentsOf: scratch.url)
        var changed = 0
        for page in stride(from: 2 * 4096, to: bytes.count, by: 4096) where bytes[page + 10] == 4 {
            let found = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: page + 12, as: UInt32.self) }
            guard found == 10 else { continue }
            bytes.withUnsafeMutableBytes { $0.storeBytes(of: count, toByteOffset: page + 12, as: UInt32.self) }
            changed += 1
        }
        try #require(changed >= 1)
        try bytes.write(to: scratch.url)
        let findings = try TreeCheck.findings(path: scratch.url.path, scope: .everything)
        // One page is enough for the value, but not what the record of the table says.
        #expect(findings?.isEmpty == false)
    }
}
