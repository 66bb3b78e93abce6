import Dispatch
import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// Writing to a store whose file was moved away while it is open.
@Suite struct LostNameTests {
    private let scratch: Scratch
    private let away: URL

    init() throws {
        scratch = try Scratch()
        away = scratch.folder.appendingPathComponent("away")
    }

    private func moveAway() throws { try FileManager.default.moveItem(at: scratch.url, to: away) }

    private func moveBack() throws { try FileManager.default.moveItem(at: away, to: scratch.url) }

    /// Catches: a retry that writes all rows of the waiting saves before it finds that the file has no name, and a commit to a file that
    /// lost its name during the transaction.
    @Test func `S066: a write begins only while the file has its name, and is committed only then`() throws {
        let store = try scratch.store()
        try store.insertTracks(1)
        try moveAway()
        var runs = 0
        let early = #expect(throws: StoreError.self) { try store.save { _, _ in runs += 1 } }
        #expect(early?.code == .fileReplaced)
        #expect(runs == 0)
        try moveBack()
        let late = #expect(throws: StoreError.self) {
            try store.save { _, _ in
                runs += 1
                try moveAway()
            }
        }
        #expect(late?.code == .fileReplaced)
        #expect(runs == 1)
        try moveBack()
        try store.insertTracks(1)
        #expect(try store.snapshot().generation == 2)
        #expect(try store.verify() == [])
    }

    /// Returns the code with which a claim is refused; nil if it is not. Blocks no thread of Swift's pool.
    private static func refusal(of store: LMDBStore) async -> StoreError.Code? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                do {
                    _ = try store.claimSaves(.committing)
                    continuation.resume(returning: nil)
                } catch {
                    continuation.resume(returning: (error as? StoreError)?.code)
                }
            }
        }
    }

    /// Catches: a save that waits for saves which cannot be written either, and then blames the process that has them.
    @Test(arguments: [false, true])
    func `S067: a save does not wait for saves that are held back for a file that was moved away`(_ isMovedLater: Bool)
        async throws
    {
        var options = LMDBStore.Options()
        // A wait until the end of this time throws `storeBusy`.
        options.busyTimeout = .seconds(600)
        let store = try scratch.store(options)
        try store.insertTracks(1)
        // Holds saves back as another process does.
        let others = SaveClaims(signalPath: scratch.url.path + "-signal", storePath: scratch.url.path, timeout: .zero)
        let held = try others.claim(.holdingBack)
        if !isMovedLater { try moveAway() }
        async let refusal = Self.refusal(of: store)
        if isMovedLater {
            try await until("the save waits") { held.isWanted }
            try moveAway()
        }
        let code = await refusal
        #expect(code == .fileReplaced)
        try moveBack()
        held.release()
        #expect(try store.claimSaves(.committing) != nil)
    }
}
