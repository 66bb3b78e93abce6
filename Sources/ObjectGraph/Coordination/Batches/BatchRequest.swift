import StoreInterface

/// How a batch is saved.
public struct BatchOptions: Sendable {
    public var durability: Durability = .durable
    /// Who saves, for the history.
    public var author = ""
    /// Rows of an import that are one save, all or none of them; also what is held in memory at a time, twice over.
    public var rowsPerSave = 16_384

    public init() {}
}

/// What an import does with a row whose values of some properties an object has already.
///
/// A null among the values equals nothing. Properties with an index are looked up in it, others by a scan a row.
public enum UpsertRule: Sendable, Hashable {
    /// Inserts each row. A row that breaks a unique constraint makes its save fail.
    case insert
    /// The object with the same values of these properties takes the row's values, and keeps those that the row does not name.
    case update(on: [String])
    /// The object stays as it is and the row is dropped.
    case keep(on: [String])

    var properties: [String]? {
        switch self {
        case .insert: nil
        case .update(let properties), .keep(let properties): properties
        }
    }
}

/// What a batch did. The ids are made when asked for.
public struct BatchResult: Sendable {
    /// What each save of the batch changed, in their order: to be shown to contexts, as any save's.
    public private(set) var changes: [ChangeSet] = []
    private let entity: Int
    private let store: StoreIdentity

    init(entity: Int, store: StoreIdentity) {
        self.entity = entity
        self.store = store
    }

    mutating func add(_ set: ChangeSet) {
        if !set.isEmpty { changes.append(set) }
    }

    /// Whether the store has changed.
    public var hasChanged: Bool { !changes.isEmpty }
    /// Objects of the batch's entity that were inserted; likewise the others. O(pages).
    public var insertedCount: Int { count(\.inserted) }
    public var updatedCount: Int { count(\.updated) }
    public var deletedCount: Int { count(\.deleted) }
    public var insertedIDs: [ObjectID] { ids(\.insertedKeys) }
    public var updatedIDs: [ObjectID] { ids(\.updatedKeys) }
    public var deletedIDs: [ObjectID] { ids(\.deletedKeys) }

    private func count(_ mask: KeyPath<ChangeSet.PageChange, UInt64>) -> Int {
        changes.reduce(0) { sum, set in
            (set.change(of: entity)?.pages ?? []).reduce(sum) { $0 + $1[keyPath: mask].nonzeroBitCount }
        }
    }

    private func ids(_ keys: KeyPath<ChangeSet.EntityChange, [ObjectKey]>) -> [ObjectID] {
        changes.flatMap { set in
            (set.change(of: entity)?[keyPath: keys] ?? []).map { ObjectID(store: store, entity: entity, key: $0) }
        }
    }
}

/// Why a batch was refused before anything was written.
public enum BatchError: Error, Sendable, CustomStringConvertible {
    case wrongValue(entity: String, property: String, value: Value)
    case wrongCount(entity: String, row: Int, values: Int, properties: Int)
    /// A property that is one end of a one-to-one relationship.
    case oneToOne(entity: String, property: String)
    /// A save of an import failed; those before it stay.
    case importStopped(savedRows: Int, error: any Error)

    public var description: String {
        switch self {
        case .wrongValue(let entity, let property, let value):
            "\(entity).\(property) cannot hold \(value); give a value of its type, or null if it is optional"
        case .wrongCount(let entity, let row, let values, let properties):
            "row \(row) for \(entity) has \(values) values for \(properties) properties; give one for each"
        case .oneToOne(let entity, let property):
            "\(entity).\(property) is one end of a one-to-one relationship, of which a batch would leave the other end as it is; "
                + "set it through a context"
        case .importStopped(let savedRows, let error):
            "the import stopped after \(savedRows) rows, which stay: \(error)"
        }
    }
}
