import StoreInterface
import StoreModel

extension StoreWriter {
    /// The number of saves deleted in one transaction, which takes some milliseconds of the writer's time.
    private static let deletedAtOnce = 1024

    /// Deletes the beginning of the history in small transactions. Other saves run between them.
    func deleteHistory(_ cut: HistoryCut) async throws -> Int {
        var total = 0
        while true {
            let count = try await onQueue { try $0.deleteSome(cut) }
            total += count
            if count < Self.deletedAtOnce { return total }
        }
    }

    /// Deletes the beginning of the history as ``deleteHistory(_:)`` does. Blocks; do not call it on the writer's queues.
    func deleteHistoryAndWait(_ cut: HistoryCut) throws -> Int {
        var total = 0
        while true {
            let count = try queue.sync { try deleteSome(cut) }
            total += count
            if count < Self.deletedAtOnce { return total }
        }
    }

    private func deleteSome(_ cut: HistoryCut) throws -> Int {
        try transaction { try $0.deleteHistory(cut, limit: Self.deletedAtOnce) }
    }
}
