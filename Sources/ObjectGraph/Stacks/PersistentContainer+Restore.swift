import Dispatch
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentContainer {
    /// Replaces the file of a store with a copy of a backup, or makes it (S168).
    ///
    /// The store must be closed, in this process and in all others. Its file stays as it was until the copy is whole, checked and on disk;
    /// then it is replaced in one step. The mode of the file is kept.
    ///
    /// The restored store is a new incarnation. Objects that the backup has keep their ids. The history is read on with tokens from before the
    /// backup; later tokens are refused with ``HistoryError/tokenOfAnotherCopy(_:)``. Ids of objects that were inserted after the
    /// backup lead to no object.
    ///
    /// On a background queue; cancelling the task ends it and leaves the file as it was.
    /// - Parameters:
    ///   - store: `.lmdb(url)` or `.sqlite(url)`.
    ///   - backup: a file that `backup(to:)` has written for a store of that kind.
    /// - Throws: `StoreError`: `.inUseElsewhere` while the store is open, `.unsupported` for stores without a file, `.notAStore` or `.damaged`
    ///   for a backup that cannot be used, `.full`, `.inputOutput`; `CancellationError`.
    public static func restore(_ store: StoreDescription, from backup: URL) async throws {
        guard let file = store.migration as? any RestorableFile else {
            throw StoreError(
                .unsupported,
                "cannot restore a \(store.name) store: it has no file, or is described as read-only. Use a store in a file that may be "
                    + "written")
        }
        let cancellation = Cancellation()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                DispatchQueue.global().async {
                    continuation.resume(with: Result { try file.restore(from: backup, cancellation: cancellation) })
                }
            }
        } onCancel: {
            cancellation.cancel()
        }
    }
}
