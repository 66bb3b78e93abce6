import StoreInterface

extension StoreWriter {
    /// The number of saves deleted in one transaction, which takes some milliseconds of the writer's time.
    private static let deletedAtOnce = 1024

    /// Deletes the beginning of the history in small transactions. Other saves run between them.
    func deleteHistory(_ cut: HistoryCut) async throws -> Int {
        var total = 0
        while true {
            let count = try await onQueue { writer in
                try writer.transaction { try $0.deleteHistory(cut, limit: Self.deletedAtOnce) }
            }
            total += count
            if count < Self.deletedAtOnce { return total }
        }
    }
}
