import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A store whose file loses its name for a while.
@Suite struct MovedFileTests {
    private static func saveLater(_ title: String, _ context: BackgroundContext) async throws {
        await context.perform { _ = $0.makeTrack(title) }
        try await context.save(.deferred(within: .seconds(600)))
    }

    /// Catches: deferred saves that are acknowledged into a file that no process will find, and saves that are dropped although the file
    /// comes back.
    @Test(arguments: RestoreTests.kinds, [false, true])
    func `S066: deferred saves wait for a file that was moved away, and no more are accepted`(
        _ kind: StoreKind, _ isReplaced: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let away = bed.folder.appendingPathComponent("away")
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await Self.saveLater("a", context)
        try await container.coordinator.flush()
        // SQLite has committed it already.
        try await Self.saveLater("b", context)
        try FileManager.default.moveItem(at: bed.file, to: away)
        if isReplaced { try Data("another file".utf8).write(to: bed.file) }
        let error = kind == .lmdb ? await #expect(throws: StoreError.self) { try await container.coordinator.flush() } : nil
        if kind == .lmdb { #expect(error?.code == .fileReplaced) }
        let refusal = await #expect(throws: StoreError.self) { try await Self.saveLater("c", context) }
        #expect(refusal?.code == .fileReplaced)
        if isReplaced { try FileManager.default.removeItem(at: bed.file) }
        try FileManager.default.moveItem(at: away, to: bed.file)
        try await context.save(.durable)
        #expect(try await context.perform { try $0.trackTitles() } == ["a", "b", "c"])
        try await container.close()
        let again = try await bed.container()
        #expect(try await again.newBatchOperationContext().perform { try $0.trackTitles() } == ["a", "b", "c"])
        #expect(try again.coordinator.store.verify() == [])
        try await again.close()
    }

    /// Catches: saves that are dropped without a word when the store is closed.
    @Test func `S067: closing a store whose file was moved away lists the lost saves`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await Self.saveLater("a", context)
        try await container.coordinator.flush()
        try await Self.saveLater("b", context)
        let away = bed.folder.appendingPathComponent("away")
        try FileManager.default.moveItem(at: bed.file, to: away)
        let error = await #expect(throws: SaveError.self) { try await container.close() }
        guard case .deferredSavesFailed(let failures)? = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(failures.map { ($0.error as? StoreError)?.code } == [.fileReplaced])
        try await container.close()
        let again = try await PersistentContainer(model: Music.model, store: .lmdb(away))
        #expect(try await again.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        try await again.close()
    }

    /// Catches: a suspension that drops saves, an error that does not tell what to do, and a store that stays half suspended.
    @Test func `S167: a store whose file was moved away is suspended when the file is back`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await Self.saveLater("a", context)
        let away = bed.folder.appendingPathComponent("away")
        try FileManager.default.moveItem(at: bed.file, to: away)
        for _ in 0..<2 {
            let error = await #expect(throws: StoreError.self) { try await container.suspend() }
            #expect(error?.code == .fileReplaced)
            #expect(error?.message.contains("Move it back, or close the store") == true)
        }
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        try FileManager.default.moveItem(at: away, to: bed.file)
        try await container.suspend()
        await container.resume()
        try await container.close()
        let again = try await bed.container()
        #expect(try await again.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        try await again.close()
    }

    /// Catches: saves that can be read in the open file but not be copied out of it, a copy that more users may read than the store, and
    /// a copy beside the lock file of the open store.
    @Test func `S066: the saves in an LMDB file that was deleted can be backed up under another name`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await Self.saveLater("a", context)
        try await container.coordinator.flush()
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: bed.file.path)
        try FileManager.default.removeItem(at: bed.file)
        let refusal = await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: bed.file) }
        #expect(refusal?.code == .cannotOpen)
        let copy = bed.folder.appendingPathComponent("copy")
        try await container.coordinator.backup(to: copy)
        let permissions = try FileManager.default.attributesOfItem(atPath: copy.path)[.posixPermissions] as? Int
        #expect(permissions == 0o600)
        #expect(!FileManager.default.fileExists(atPath: bed.file.path))
        try await container.close()
        let again = try await PersistentContainer(model: Music.model, store: .lmdb(copy))
        #expect(try await again.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        try await again.close()
    }
}
