#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import Dispatch
import StoreInterface

extension PersistentStoreCoordinator {
    /// The place after the newest save that is on disk. Deferred saves come after it.
    public var currentHistoryToken: HistoryToken {
        HistoryToken(store, writer.state.base.generation)
    }

    /// The saves that a request selects, oldest first (S160): of every context and process, as far as they are on disk. Call
    /// `flush()` before to have the deferred ones too.
    ///
    /// Runs on a background queue; O(saves after the token and their changed pages).
    /// - Throws: ``HistoryError`` when the token is of another store or another copy of it, or older than what is kept; `StoreError`.
    public func history(_ request: HistoryRequest = HistoryRequest()) async throws -> [HistoryTransaction] {
        try checkOpen()
        let start = try request.after?.place(in: store)
        let wanted = request.entities.map { names in Set(names.compactMap { model.entity(named: $0)?.number }) }
        return try await offExecutor { [self] in
            var found: [HistoryTransaction] = []
            var place = start
            let limit = request.limit ?? .max
            // In parts, so that a limit does not read a long history whole.
            while found.count < limit {
                guard let part = try store.history(after: place, limit: Self.historyPart) else {
                    throw HistoryError.tokenExpired(HistoryToken(store, place ?? 0))
                }
                for changes in part where found.count < limit && request.takes(changes.origin) {
                    guard let chosen = wanted.map({ changes.restricted(to: $0, model) }) ?? changes else { continue }
                    found.append(HistoryTransaction(chosen, model: model, in: store))
                }
                guard part.count == Self.historyPart, let last = part.last else { break }
                place = last.generation
            }
            return found
        }
    }

    /// Deletes the saves up to a token from the history: all of them have been read by whoever reads it.
    ///
    /// In small transactions on the writer's thread. Gives how many saves were deleted.
    @discardableResult
    public func deleteHistory(before token: HistoryToken) async throws -> Int {
        try checkOpen()
        return try await writer.deleteHistory(.through(token.place(in: store)))
    }

    /// Deletes the oldest saves from the history, as far as they were made before a date.
    @discardableResult
    public func deleteHistory(before date: Date) async throws -> Int {
        try checkOpen()
        return try await writer.deleteHistory(.before(time: SaveOrigin.time(of: date)))
    }

    private static let historyPart = 1024

    /// Runs blocking work on a background queue.
    func offExecutor<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }
}

extension ChangeSet {
    /// What is left of the set when only some entities count; nil when nothing is.
    fileprivate func restricted(to wanted: Set<Int>, _ model: Model) -> ChangeSet? {
        var part = self
        part.entities = entities.filter { wanted.contains($0.entity) }
        part.tombstones = tombstones.filter { wanted.contains($0.entity) }
        part.links = links.compactMap { change in
            guard model.storeSchema.links.indices.contains(change.link) else { return nil }
            let ends = model.storeSchema.links[change.link]
            var change = change
            if !wanted.contains(ends.source) { change.sources = [] }
            if !wanted.contains(ends.destination) { change.destinations = [] }
            return change.sources.isEmpty && change.destinations.isEmpty ? nil : change
        }
        return part.isEmpty ? nil : part
    }
}
