import StoreInterface

/// One row of a result of values: a dictionary whose keys are the request's columns. Sendable, and independent of any context.
public struct ResultRow: Sendable, Hashable {
    let shape: ResultShape
    /// In the order of the request's columns.
    public let values: [Value]

    /// The names of the columns, in the request's order.
    public var names: [String] { shape.names }

    /// nil when the result has no such column; null is `.null`.
    public subscript(_ name: String) -> Value? { shape.position(of: name).map { values[$0] } }

    /// nil when there is no such column or its value is of another type.
    public subscript<V: AttributeValue>(_ name: String, as type: V.Type) -> V? { self[name].flatMap { V($0) } }

    /// The value of a column by key path; nil as for a name.
    public func value<M: PersistentModel, V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> V? {
        self[M.name(of: keyPath), as: V.self]
    }

    /// The id in a column that is the object's own id or a to-one relationship; nil for null.
    public func objectID(_ name: String) -> ObjectID? {
        guard let position = shape.position(of: name), let entity = shape.entities[position],
            let key = values[position].referenceKey
        else { return nil }
        return ObjectID(store: shape.store, entity: entity, key: key)
    }

    public var dictionary: [String: Value] {
        Dictionary(zip(shape.names, values), uniquingKeysWith: { first, _ in first })
    }

    public static func == (a: ResultRow, b: ResultRow) -> Bool { a.shape.names == b.shape.names && a.values == b.values }

    public func hash(into hasher: inout Hasher) { hasher.combine(values) }
}

/// What all rows of one result share.
final class ResultShape: Sendable {
    let names: [String]
    /// Of columns that hold ids: the entity that they belong to.
    let entities: [Int?]
    let store: StoreIdentity

    init(names: [String], entities: [Int?], store: StoreIdentity) {
        self.names = names
        self.entities = entities
        self.store = store
    }

    /// Results have few columns.
    func position(of name: String) -> Int? { names.firstIndex(of: name) }
}
