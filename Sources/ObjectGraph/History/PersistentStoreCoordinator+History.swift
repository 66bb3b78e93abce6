#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import Dispatch
import StoreInterface
import StoreModel

extension PersistentStoreCoordinator {
    /// The position after the newest save on disk. Deferred saves that are not yet flushed come after it, also those of other containers of
    /// this process.
    public var currentHistoryToken: HistoryToken {
        HistoryToken(store, min(writer.state.base.generation, writer.newestSynced))
    }

    /// Returns the saves that a request selects, oldest first, from every context and process (S160).
    ///
    /// Only saves on disk are returned, so that each token can be stored. To include deferred saves, call `flush()` first. In a store
    /// that has them in its file already, such as one in an SQLite file, those of this process are taken to disk and returned.
    /// Runs on a background queue. O(saves after the token and their changed pages), and one read per
    /// changed position in ordered many-to-many relationships.
    ///
    /// - Throws: ``HistoryError`` if the token belongs to another store or copy, or is older than the kept history; `StoreError`.
    public func history(_ request: HistoryRequest = HistoryRequest()) async throws -> [HistoryTransaction] {
        try checkOpen()
        return try await offExecutor { [self] in try historyNow(request) }
    }

    /// Returns the saves that a request selects, as ``history(_:)`` does, on the calling thread.
    package func historyNow(_ request: HistoryRequest = HistoryRequest()) throws -> [HistoryTransaction] {
        try checkOpen()
        guard writer.capabilities.contains(.history) else {
            throw StoreError(.unsupported, "cannot read the history of \(name): its store keeps none. Use a store with a history")
        }
        var place = try request.after.map(place(of:))
        let orders = contextModel.orders
        let wanted = request.entities.map { names in
            let named = Set(names.compactMap { model.entity(named: $0)?.number })
            return named.union(orders.filter { named.contains($0.ownerEntity) }.map(\.number))
        }
        try writer.syncCommitted()
        var found: [HistoryTransaction] = []
        let limit = request.limit ?? .max
        // Read in parts, so that a request with a limit does not read the whole of a long history.
        while found.count < limit {
            guard let part = try store.history(after: place, limit: Self.historyPart) else {
                // The saves after the position were deleted, perhaps since the last part. Without a token, the oldest save that is left is
                // the first.
                if request.after != nil || place == nil {
                    throw HistoryError.tokenExpired(request.after ?? HistoryToken(store, 0))
                }
                (found, place) = ([], nil)
                continue
            }
            // A deferred save that came meanwhile may be lost, and its number used again.
            let newestSynced = writer.newestSynced
            // A snapshot taken after reading the history contains all these saves.
            let newest = try orders.isEmpty || part.isEmpty ? nil : store.snapshot()
            for changes in part where found.count < limit && request.takes(changes.metadata) && changes.generation <= newestSynced
            {
                guard let chosen = wanted.map({ changes.restricted(to: $0, contextModel) }) ?? changes else { continue }
                let reordered = try newest.map { try contextModel.listsWithChangedOrder(chosen, in: $0) } ?? [:]
                let transaction = HistoryTransaction(chosen, model: contextModel, in: store, reordered: reordered)
                // If a save has only moves that are not listed, a request for certain entities does not return it.
                if wanted == nil || orders.isEmpty || !transaction.changes.isEmpty { found.append(transaction) }
            }
            // Saves of a later part must not follow saves that were left out.
            guard part.count == Self.historyPart, let last = part.last, last.generation <= newestSynced else { break }
            // Otherwise a damaged record, or one that another program has changed, would be read again and again.
            if let place, last.generation <= place {
                throw StoreError(
                    .damaged,
                    "\(name): the history has save \(last.generation) after save \(place). Verify the store, or restore a copy")
            }
            place = last.generation
        }
        return found
    }

    /// Deletes the saves up to a token from the history. Call this when all readers have processed them.
    ///
    /// Runs in small transactions on the writer's thread. While the store is suspended, waits until it is resumed.
    ///
    /// - Returns: The number of deleted saves.
    @discardableResult
    public func deleteHistory(before token: HistoryToken) async throws -> Int {
        try checkOpen()
        return try await writer.deleteHistory(.through(place(of: token)), for: self)
    }

    /// Deletes the saves made before a date from the history, oldest first. Runs as ``deleteHistory(before:)-(HistoryToken)`` does.
    ///
    /// - Returns: The number of deleted saves.
    @discardableResult
    public func deleteHistory(before date: Date) async throws -> Int {
        try checkOpen()
        return try await writer.deleteHistory(.before(time: SaveMetadata.time(of: date)), for: self)
    }

    /// Deletes the saves up to a token from the history, and blocks until they are deleted.
    @discardableResult
    package func deleteHistoryNow(before token: HistoryToken) throws -> Int {
        try checkOpen()
        return try writer.deleteHistoryAndWait(.through(place(of: token)))
    }

    /// Deletes the saves made before a date from the history, and blocks until they are deleted.
    @discardableResult
    package func deleteHistoryNow(before date: Date) throws -> Int {
        try checkOpen()
        return try writer.deleteHistoryAndWait(.before(time: SaveMetadata.time(of: date)))
    }

    private static let historyPart = 1024

    /// Returns the position of a token.
    ///
    /// - Throws: ``HistoryError``, also if the token is newer than the store, whose file was then replaced by an older copy.
    private func place(of token: HistoryToken) throws -> Generation {
        let place = try token.place(in: store)
        // The state of this process includes its deferred saves, a new snapshot the saves of other processes.
        if place > writer.state.generation, try place > store.snapshot().generation {
            throw HistoryError.tokenOfAnotherCopy(token)
        }
        return place
    }

    /// Runs blocking work on a background queue.
    func offExecutor<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await DispatchQueue.blocking(body)
    }
}

extension ChangeSet {
    /// Returns the changes of the wanted entities only; nil if there are none.
    fileprivate func restricted(to wanted: Set<EntityIndex>, _ model: Model) -> ChangeSet? {
        var part = self
        part.entities = entities.filter { wanted.contains($0.entity) }
        part.tombstones = tombstones.filter { wanted.contains($0.entity) }
        part.links = links.compactMap { change in
            guard model.storeSchema.linkIndices.contains(change.link) else { return nil }
            let ends = model.storeSchema.links[change.link]
            var change = change
            if !wanted.contains(ends.source) { change.sources = [] }
            if !wanted.contains(ends.destination) { change.destinations = [] }
            return change.sources.isEmpty && change.destinations.isEmpty ? nil : change
        }
        return part.isEmpty ? nil : part
    }
}
