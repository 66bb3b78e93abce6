/// A position in the history of a store, after one save.
public protocol HistoryToken: Sendable, Hashable, Comparable, Codable {}

/// One save in the history.
public protocol HistoryTransaction: Sendable, Hashable, Identifiable {
    /// The type of positions.
    associatedtype TokenType: HistoryToken
    /// The type of numbers of saves.
    associatedtype TransactionIdentifier: Sendable, Hashable, Comparable

    /// The position after the save.
    var token: TokenType { get }
    /// The number of the save.
    var transactionIdentifier: TransactionIdentifier { get }
    /// The time of the save.
    var timestamp: Date { get }
    /// The author of the context that saved.
    var author: String? { get }
    /// The identity of the store.
    var storeIdentifier: String { get }
    /// The changes of objects.
    var changes: [HistoryChange] { get }
}

/// A change of one object by a save.
///
/// ```swift
/// for change in save.changes {
///     if case .insert = change { print(change.changedPersistentIdentifier) }
/// }
/// ```
public enum HistoryChange: Sendable {
    /// The object is new.
    case insert(any HistoryInsert)
    /// Values of the object changed.
    case update(any HistoryUpdate)
    /// The object was deleted.
    case delete(any HistoryDelete)

    /// The identifier of the object.
    public var changedPersistentIdentifier: PersistentIdentifier {
        switch self {
        case .insert(let change): change.changedPersistentIdentifier
        case .update(let change): change.changedPersistentIdentifier
        case .delete(let change): change.changedPersistentIdentifier
        }
    }
}

/// An insertion in the history.
public protocol HistoryInsert<Model>: Sendable {
    /// The class of the object.
    associatedtype Model: PersistentModel
    /// The identifier of the object.
    var changedPersistentIdentifier: PersistentIdentifier { get }
    /// The number of the save.
    var transactionIdentifier: Int64 { get }
    /// The position of the change in the save.
    var changeIdentifier: Int64 { get }
}

/// An update in the history.
public protocol HistoryUpdate<Model>: Sendable {
    /// The class of the object.
    associatedtype Model: PersistentModel
    /// The identifier of the object.
    var changedPersistentIdentifier: PersistentIdentifier { get }
    /// The number of the save.
    var transactionIdentifier: Int64 { get }
    /// The position of the change in the save.
    var changeIdentifier: Int64 { get }
    /// The properties that changed.
    var updatedAttributes: [PartialKeyPath<Model> & Sendable] { get }
}

extension HistoryUpdate {
    /// The key path of a property that changed.
    public typealias PropertyUpdate = PartialKeyPath<Model> & Sendable
}

/// A deletion in the history.
public protocol HistoryDelete<Model>: Sendable {
    /// The class of the object.
    associatedtype Model: PersistentModel
    /// The identifier of the object.
    var changedPersistentIdentifier: PersistentIdentifier { get }
    /// The number of the save.
    var transactionIdentifier: Int64 { get }
    /// The position of the change in the save.
    var changeIdentifier: Int64 { get }
    /// The values of the attributes with the option `.preserveValueOnDeletion`.
    var tombstone: HistoryTombstone<Model> { get }
}

/// A description of a part of the history.
///
/// ```swift
/// var newer = HistoryDescriptor<DefaultHistoryTransaction>()
/// if let last { newer.predicate = #Predicate { $0.token > last } }
/// let saves = try context.fetchHistory(newer)
/// ```
public struct HistoryDescriptor<TransactionType: HistoryTransaction> {
    /// The condition, which is evaluated in memory; nil for the whole history.
    public var predicate: Predicate<TransactionType>?
    /// The largest number of saves; 0 for all.
    public var fetchLimit: UInt64 = 0
    /// The order; oldest first without it.
    public var sortBy: [SortDescriptor<TransactionType>]

    /// Creates a description.
    public init(predicate: Predicate<TransactionType>? = nil, sortBy: [SortDescriptor<TransactionType>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
