import Dispatch
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PersistentContainer {
    /// Replaces the file of a store with a copy of a backup, or creates the file (S168).
    ///
    /// The store must be closed, in this process and in all other processes. Its file stays unchanged until the copy is complete,
    /// checked and on disk. Then it is replaced in one step. The mode of the file is kept.
    ///
    /// The restored store is a new incarnation. Objects in the backup keep their ids. Ids of objects that were inserted after the
    /// backup match no object. History tokens from before the backup stay valid; later tokens are refused with
    /// ``HistoryError/tokenOfAnotherCopy(_:)``.
    ///
    /// Runs on a background queue. Cancelling the task stops it and leaves the file unchanged.
    ///
    /// - Parameters:
    ///   - store: `.lmdb(url)`, or `.sqlite(url)` of the module `SQLiteStore`.
    ///   - backup: A file that `backup(to:)` wrote for a store of that kind.
    /// - Throws: `StoreError` `.inUseElsewhere` if the store is open, or if another process changes the backup meanwhile. `.unsupported` if
    ///   the store has no file. `.notAStore` or `.damaged` if the backup cannot be used. `.full`, `.inputOutput`; `CancellationError`.
    public static func restore(_ store: StoreDescription, from backup: URL) async throws {
        guard let file = store.migration else {
            throw StoreError(
                .unsupported,
                "cannot restore a \(store.name) store: it has no file, or is described as read-only. Use a store in a file that may be "
                    + "written")
        }
        let cancellation = Cancellation()
        try await withTaskCancellationHandler {
            try await DispatchQueue.blocking { try file.restore(from: backup, cancellation: cancellation) }
        } onCancel: {
            cancellation.cancel()
        }
    }
}
