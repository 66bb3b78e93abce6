import ObjectGraph
import StoreInterface
import StoreModel

/// A position in the history. It can be stored and compared.
///
/// ```swift
/// let last = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token
/// try JSONEncoder().encode(last).write(to: file)
/// ```
public struct DefaultHistoryToken: HistoryToken {
    let token: ObjectGraph.HistoryToken

    /// Returns whether a position is before another of the same store.
    public static func < (a: Self, b: Self) -> Bool { a.token < b.token }
}

/// One save in the history, of any context and process.
///
/// ```swift
/// for save in try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()) {
///     print(save.timestamp, save.author ?? "unknown", save.changes.count)
/// }
/// ```
public struct DefaultHistoryTransaction: HistoryTransaction {
    /// The position after the save.
    public let token: DefaultHistoryToken
    /// The number of the save.
    public let transactionIdentifier: Int64
    /// The time of the save.
    public let timestamp: Date
    /// The author of the context that saved.
    public let author: String?
    /// The identity of the store.
    public let storeIdentifier: String
    /// The name of the context that saved.
    public let contextName: String?
    /// The identifier of the process that saved.
    public let processIdentifier: String
    private let transaction: ObjectGraph.HistoryTransaction
    private let model: ObjectGraph.Model

    /// The number of the save.
    public var id: Int64 { transactionIdentifier }
    /// The bundle identifier of the process that saved. Always empty, because the history does not record it.
    public var bundleIdentifier: String { "" }
    /// The changes of objects, computed at each access.
    public var changes: [HistoryChange] {
        transaction.changes.enumerated().compactMap { position, change in
            guard let type = model.entity(named: change.entityName).flatMap(model.type) as? any PersistentModel.Type else {
                return nil
            }
            return Self.change(type, change: change, transaction: transactionIdentifier, position: Int64(position))
        }
    }

    init(_ transaction: ObjectGraph.HistoryTransaction, _ model: ObjectGraph.Model) {
        self.transaction = transaction
        self.model = model
        token = DefaultHistoryToken(token: transaction.token)
        transactionIdentifier = Int64(clamping: transaction.id.rawValue)
        timestamp = transaction.date
        author = transaction.author
        contextName = transaction.contextName
        processIdentifier = String(transaction.processID)
        storeIdentifier = transaction.token.store.uuidString
    }

    private static func change<M: PersistentModel>(
        _ type: M.Type, change: ObjectGraph.HistoryChange, transaction: Int64, position: Int64
    ) -> HistoryChange {
        let id = PersistentIdentifier(change.objectID, entityName: change.entityName)
        switch change.kind {
        case .insert: return .insert(DefaultHistoryInsert<M>(id, transaction: transaction, position: position))
        case .update:
            return .update(
                DefaultHistoryUpdate<M>(id, transaction: transaction, position: position, names: change.updatedProperties))
        case .delete:
            return .delete(
                DefaultHistoryDelete<M>(
                    id, transaction: transaction, position: position, tombstone: HistoryTombstone(values: change.tombstone)))
        }
    }

    /// Returns whether two values are of one save.
    public static func == (a: Self, b: Self) -> Bool { a.token == b.token }
    /// Hashes the position of the save.
    public func hash(into hasher: inout Hasher) { hasher.combine(token) }
}

/// An insertion in the history.
public struct DefaultHistoryInsert<Model: PersistentModel>: HistoryInsert, Hashable {
    /// The identifier of the object.
    public let changedPersistentIdentifier: PersistentIdentifier
    /// The number of the save.
    public let transactionIdentifier: Int64
    /// The position of the change in the save.
    public let changeIdentifier: Int64

    init(_ id: PersistentIdentifier, transaction: Int64, position: Int64) {
        changedPersistentIdentifier = id
        transactionIdentifier = transaction
        changeIdentifier = position
    }
}

/// An update in the history.
public struct DefaultHistoryUpdate<Model: PersistentModel>: HistoryUpdate, Hashable {
    /// The identifier of the object.
    public let changedPersistentIdentifier: PersistentIdentifier
    /// The number of the save.
    public let transactionIdentifier: Int64
    /// The position of the change in the save.
    public let changeIdentifier: Int64
    private let names: Set<String>

    init(_ id: PersistentIdentifier, transaction: Int64, position: Int64, names: Set<String>) {
        changedPersistentIdentifier = id
        transactionIdentifier = transaction
        changeIdentifier = position
        self.names = names
    }

    /// The properties that changed, in the order of their names.
    public var updatedAttributes: [PartialKeyPath<Model> & Sendable] {
        let changed = Model.columnsByKeyPath.filter { names.contains($0.value) }.sorted { $0.value < $1.value }
        // Key paths of properties capture nothing, so they may be sent.
        return changed.compactMap { $0.key as? PartialKeyPath<Model> }
            .map { unsafeBitCast($0, to: (PartialKeyPath<Model> & Sendable).self) }
    }
}

/// A deletion in the history.
public struct DefaultHistoryDelete<Model: PersistentModel>: HistoryDelete, Hashable {
    /// The identifier of the object.
    public let changedPersistentIdentifier: PersistentIdentifier
    /// The number of the save.
    public let transactionIdentifier: Int64
    /// The position of the change in the save.
    public let changeIdentifier: Int64
    /// The values of the attributes with the option `.preserveValueOnDeletion`.
    public let tombstone: HistoryTombstone<Model>

    init(_ id: PersistentIdentifier, transaction: Int64, position: Int64, tombstone: HistoryTombstone<Model>) {
        changedPersistentIdentifier = id
        transactionIdentifier = transaction
        changeIdentifier = position
        self.tombstone = tombstone
    }
}

/// The preserved values of a deleted object.
///
/// ```swift
/// for case .delete(let deletion as DefaultHistoryDelete<Trip>) in save.changes {
///     print(deletion.tombstone[\.name] ?? "a trip without a kept name")
/// }
/// ```
public struct HistoryTombstone<Model: PersistentModel>: Sendable, Hashable {
    let values: [String: StoreInterface.Value]

    /// Returns the value of an attribute; nil if the model does not preserve it.
    public subscript<V>(keyPath: KeyPath<Model, V>) -> V? {
        guard let name = Model.columnsByKeyPath[keyPath], let value = values[name] else { return nil }
        return StoredAttribute.value(value, as: V.self)
    }
}

extension ModelContext {
    /// Returns the saves that a description selects, of every context and process. Waits until the saves so far are on disk.
    ///
    /// - Throws: ``SwiftDataError/historyTokenExpired`` if the predicate asks for the saves after a token, alone or as one of several
    ///   conditions that must all hold, and saves after it were deleted; if it compares with a token of another store, or of another copy
    ///   of this one; or the store's error.
    public func fetchHistory(
        _ descriptor: HistoryDescriptor<DefaultHistoryTransaction>
    ) throws -> [DefaultHistoryTransaction] {
        try checkTokens(of: descriptor)
        return try select(descriptor, from: history(after: descriptor.predicate.flatMap { $0.expression.tokenBefore }))
    }

    /// Refuses tokens of other stores and of other copies of this one, whose numbers are those of other saves here (S168).
    private func checkTokens(of descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws {
        let coordinator = historyCoordinator
        do {
            // With the limit zero, only the position is looked up.
            for token in descriptor.predicate?.expression.comparedTokens ?? [] {
                _ = try coordinator.historyNow(HistoryRequest(after: token, limit: 0))
            }
        } catch let error as HistoryError {
            throw SwiftDataError.historyTokenExpired.saying("\(error)")
        }
    }

    private func select(
        _ descriptor: HistoryDescriptor<DefaultHistoryTransaction>, from all: [DefaultHistoryTransaction]
    ) throws -> [DefaultHistoryTransaction] {
        var found = try descriptor.predicate.map { predicate in try all.filter { try predicate.evaluate($0) } } ?? all
        if !descriptor.sortBy.isEmpty { found.sort(using: descriptor.sortBy) }
        return descriptor.fetchLimit == 0 ? found : Array(found.prefix(Int(clamping: descriptor.fetchLimit)))
    }

    /// Deletes the oldest saves from the history, up to the first that a description does not select.
    ///
    /// - Throws: ``SwiftDataError/historyTokenExpired`` if the predicate compares with a token of another store, or of another copy of this
    ///   one, as in ``fetchHistory(_:)``; or the store's error.
    public func deleteHistory(_ descriptor: HistoryDescriptor<DefaultHistoryTransaction>) throws {
        try checkTokens(of: descriptor)
        let all = try history()
        let selected = Set(try select(descriptor, from: all))
        guard let last = all.prefix(while: { selected.contains($0) }).last else { return }
        _ = try historyCoordinator.deleteHistoryNow(before: last.token.token)
    }

    /// The coordinator of the container, or of the copy that a migration changes.
    private var historyCoordinator: PersistentStoreCoordinator {
        storage?.container.coordinator ?? context.persistentStoreCoordinator ?? container.storage.container.coordinator
    }

    private func history(after token: ObjectGraph.HistoryToken? = nil) throws -> [DefaultHistoryTransaction] {
        let coordinator = historyCoordinator
        // The program's next flush reports saves that were left out (S067). A migration has deferred none.
        try storage?.container.flushNow(reportsFailures: false)
        do {
            return try coordinator.historyNow(HistoryRequest(after: token)).map {
                DefaultHistoryTransaction($0, coordinator.model)
            }
        } catch let error as HistoryError {
            throw SwiftDataError.historyTokenExpired.saying("\(error)")
        }
    }
}
