import Dispatch
import LMDB
internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LMDBStore {
    /// Packs pages with zstd and a dictionary trained per entity.
    ///
    /// Runs on a background queue. Each transaction writes some pages and takes some milliseconds, mostly for the disk. A
    /// page that is written while it is being packed stays as written. Snapshots read the same data before and after.
    /// - Throws: `CancellationError`; `StoreError` `.damaged` for a page that cannot be read, `.full`, `.inputOutput`.
    public func compact(
        _ options: CompactionOptions = CompactionOptions(),
        progress: @escaping @Sendable (CompactionProgress) -> Void = { _ in }
    ) async throws -> CompactionProgress {
        try await inBackground { store, cancellation in
            var compaction = Compaction(store, options: options, cancellation: cancellation, report: progress)
            return try compaction.run()
        }
    }

    /// Runs blocking work on the store's background queue. Cancelling the task sets the cancellation passed to `body`.
    /// - Parameter progress: Gets what `body` reports by the cancellation.
    func inBackground<R: Sendable>(
        progress: @escaping @Sendable (Double) -> Void = { _ in },
        _ body: @escaping @Sendable (LMDBStore, Cancellation) throws -> R
    ) async throws -> R {
        let cancellation = Cancellation(progress: progress)
        return try await withTaskCancellationHandler {
            try await withCompletion { completion in
                background.async { completion(Result { try body(self, cancellation) }) }
            }
        } onCancel: {
            cancellation.cancel()
        }
    }
}
