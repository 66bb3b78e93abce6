import StoreInterface
import StoreModel

/// Options of a batch operation.
///
/// ```swift
/// var options = BatchOptions()
/// options.author = "importer"
/// options.rowsPerSave = 1_000
/// ```
public struct BatchOptions: Sendable {
    /// The durability of the batch's saves.
    public var durability: Durability = .durable
    /// The author recorded in the history.
    public var author = ""
    /// The number of rows per save of an import. Each save is atomic. Up to twice this number of rows is in memory.
    public var rowsPerSave = 16_384

    /// Creates the default options: durable saves without an author, 16,384 rows each.
    public init() {}
}

/// The treatment of an imported row that has the same values of some properties as an existing object.
///
/// A null among the values equals nothing. Properties with an index are looked up in the index; other properties need a scan per row.
/// If the properties have no unique constraint, each row also examines the objects in saves that are not on disk yet.
///
/// ```swift
/// try await container.coordinator.insert(
///     into: "Track", ["title"], rows: titles.map { [.string($0)] }, rule: .update(on: ["title"]), options: options)
/// ```
public enum UpsertRule: Sendable, Hashable {
    /// Inserts each row. A row that violates a unique constraint makes its save fail.
    case insert
    /// Updates the object with the same values of these properties. The object keeps its values of properties that are not imported.
    case update(on: [String])
    /// Keeps the object unchanged and drops the row.
    case keep(on: [String])

    var properties: [String]? {
        switch self {
        case .insert: nil
        case .update(let properties), .keep(let properties): properties
        }
    }
}

/// The result of a batch operation. Ids are computed on access. The objects of a batch on a keyed collection are its entries.
///
/// ```swift
/// print("\(result.deletedCount) tracks were deleted in \(result.changes.count) saves")
/// ```
public struct BatchResult: Sendable {
    /// The changes of each save of the batch, in order. Contexts can merge them like those of any save.
    public private(set) var changes: [ChangeSet] = []
    private let entity: EntityIndex
    private let store: StoreIdentity
    /// An object of the entity that is in no count: see ``ImportChunk/hiddenObject``.
    private var hiddenObject: ObjectKey?

    init(entity: EntityIndex, store: StoreIdentity) {
        self.entity = entity
        self.store = store
    }

    /// Adds the changes of a save.
    ///
    /// - Parameters:
    ///   - set: The changes.
    ///   - hidden: An object that is left out of the counts and ids of all saves; nil for none.
    mutating func add(_ set: ChangeSet, hiding hidden: ObjectKey? = nil) {
        if !set.isEmpty { changes.append(set) }
        if let hidden { hiddenObject = hidden }
    }

    /// A Boolean value that indicates whether the batch changed the store.
    public var hasChanged: Bool { !changes.isEmpty }
    /// The number of inserted objects of the batch's entity. O(pages).
    public var insertedCount: Int { count(\.inserted) }
    /// The number of updated objects of the batch's entity, including objects whose one-to-one relationship or derived value changed because
    /// the batch changed others. O(pages).
    public var updatedCount: Int { count(\.updated) }
    /// The number of deleted objects of the batch's entity. O(pages).
    public var deletedCount: Int { count(\.deleted) }
    /// The ids of the inserted objects of the batch's entity.
    public var insertedIDs: [ObjectID] { ids(\.insertedKeys) }
    /// The ids of the updated objects of the batch's entity.
    public var updatedIDs: [ObjectID] { ids(\.updatedKeys) }
    /// The ids of the deleted objects of the batch's entity.
    public var deletedIDs: [ObjectID] { ids(\.deletedKeys) }

    private func count(_ mask: KeyPath<ChangeSet.PageChange, UInt64>) -> Int {
        changes.reduce(0) { sum, set in
            (set.change(of: entity)?.pages ?? []).reduce(sum) { sum, page in
                sum + (page[keyPath: mask] & ~hiddenSlots(in: page.number)).nonzeroBitCount
            }
        }
    }

    private func hiddenSlots(in page: PageNumber) -> UInt64 {
        guard let hiddenObject, hiddenObject.page == page else { return 0 }
        return 1 << UInt64(hiddenObject.slot)
    }

    private func ids(_ keys: KeyPath<ChangeSet.EntityChange, [ObjectKey]>) -> [ObjectID] {
        changes.flatMap { set in
            (set.change(of: entity)?[keyPath: keys] ?? []).filter { $0 != hiddenObject }
                .map { ObjectID(store: store, entity: entity, key: $0) }
        }
    }
}

/// An error of a batch operation.
///
/// ```swift
/// do {
///     try await coordinator.insert(into: "Track", ["title"], rows: rows)
/// } catch BatchError.importStopped(let savedRows, let error) {
///     show("\(savedRows) rows are saved. \(error)")
/// }
/// ```
public enum BatchError: Error, Sendable, CustomStringConvertible {
    /// A value does not have the type of its property.
    case wrongValue(entity: String, property: String, value: Value)
    /// A row does not have one value per property.
    case wrongCount(entity: String, row: Int, values: Int, properties: Int)
    /// An update would give one object to several objects in a one-to-one relationship.
    case sharedPartner(entity: String, property: String, objects: Int)
    /// The property is derived from other values, which an update must change instead. An import may contain the property, and its values
    /// are replaced.
    case derived(entity: String, property: String)
    /// No object has the value of the unique attribute by which a relationship is set.
    case noDestination(entity: String, property: String, destination: String, attribute: String, value: Value)
    /// A relationship is set by a value, and its destination has no unique attribute, or several.
    case noUniqueAttribute(entity: String, property: String, destination: String)
    /// The values of an import set a relationship to many objects, which only an import into a context does.
    case toManyRelationship(entity: String, property: String)
    /// A Swift value has a property of a type that its entity cannot store.
    case notStorable(entity: String, property: String, type: String)
    /// An import into an abstract entity. Import into an entity that inherits from it.
    case abstractEntity(String)
    /// A save of an import failed, or its task was cancelled. The saves before it stay.
    case importStopped(savedRows: Int, error: any Error)

    /// The failed operation, the reason and the remedy, as one line.
    public var description: String {
        switch self {
        case .wrongValue(let entity, let property, let value):
            "cannot set \(entity).\(property) to \(value): it cannot store that value. Use a value of its type, or null if it is optional."
        case .wrongCount(let entity, let row, let values, let properties):
            "cannot import row \(row) of \(entity): it has \(values) values for \(properties) properties. Use one value per property."
        case .sharedPartner(let entity, let property, let objects):
            "cannot set \(entity).\(property) of \(objects) objects to the same object: the relationship is one-to-one. "
                + "Select one object, or use null."
        case .derived(let entity, let property):
            "cannot set \(entity).\(property): saves derive it from other values. Change those values instead."
        case .noDestination(let entity, let property, let destination, let attribute, let value):
            "cannot set \(entity).\(property): no \(destination) has the \(attribute) "
                + "\(UniqueForms.form(of: attribute, in: destination).text(value)). Insert it first, or use null."
        case .noUniqueAttribute(let entity, let property, let destination):
            "cannot set \(entity).\(property) by a value: \(destination) does not have exactly one unique attribute. "
                + "Declare one, or set the relationship in a context."
        case .toManyRelationship(let entity, let property):
            "cannot set \(entity).\(property): it is a relationship to many objects. Use insert(contentsOf:as:) of a context."
        case .notStorable(let entity, let property, let type):
            "cannot set \(entity).\(property): it cannot store a value of type \(type). Use a value of its type."
        case .abstractEntity(let entity):
            "cannot insert objects of \(entity): it is abstract. Insert objects of an entity that inherits from it."
        case .importStopped(let savedRows, let error) where error is CancellationError:
            "the import was cancelled after \(savedRows) rows, which are saved. Import the rows after them to continue."
        case .importStopped(let savedRows, let error):
            "the import stopped after \(savedRows) rows, which are saved: \(error)"
        }
    }
}

/// The progress of an import, reported after each of its saves.
///
/// ```swift
/// try await coordinator.insert(into: "Track", ["title"], rows: rows) { progress in
///     print("\(progress.savedRows) of \(progress.totalRows ?? 0) rows")
/// }
/// ```
public struct BatchProgress: Sendable, Hashable, CustomStringConvertible {
    /// The number of rows that are saved. They stay, whatever follows.
    public var savedRows: Int
    /// The number of rows in the import; nil if the rows are no `Collection`, or a lazy one whose closures would run to count it.
    public var totalRows: Int?

    /// The numbers of saved rows and of all rows: `4096 of 10000 rows`.
    public var description: String { totalRows.map { "\(savedRows) of \($0) rows" } ?? "\(savedRows) rows" }
}

extension BatchResult: CustomStringConvertible {
    /// The numbers of inserted, updated and deleted objects.
    public var description: String { "\(insertedCount) inserted, \(updatedCount) updated, \(deletedCount) deleted" }
}
