import Foundation
import LMDB
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

@Suite struct BackupFaultTests {
    @Test(arguments: [ENOSPC, EIO]) func aCopyThatFailsLeavesNothing(_ code: Int32) throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(500)
        let target = scratch.folder.appendingPathComponent("copy")
        LMDBFaults.withInjector(at: scratch.folder.path, { $0 == .copyToDescriptor ? code : nil }) {
            #expect(throws: StoreError.self) { try store.backup(to: target, existing: .refuse) }
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path).filter { $0.contains("copy") }
        #expect(left == [])
        #expect(try store.backup(to: target, existing: .refuse) == 1)
    }

    @Test func S152_retentionCountsThePagesThatNewerCommitsHaveFreed() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(640)
        let old = try store.snapshot()
        for round in 0..<10 {
            try store.save { layer, _ in
                let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                row[2] = .int(Int64(round))
                layer.put(row, entity: Samples.track, key: keys[round * 64])
            }
        }
        let middle = try store.snapshot()
        for _ in 0..<5 { try store.insertTracks(1) }
        let newest = try store.snapshot()
        let bytes = try store.retention(of: [old, middle, newest]).bytes.map { try #require($0) }
        #expect(bytes[0] > bytes[1] && bytes[1] > 0 && bytes[2] == 0)
        #expect(bytes.allSatisfy { $0 % store.pageSize == 0 })
    }
}
