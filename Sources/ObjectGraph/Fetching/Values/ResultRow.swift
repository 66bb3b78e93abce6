import StoreInterface
import StoreModel

/// A row of a value request, as a dictionary whose keys are the request's columns. `Sendable`, and independent of any context.
///
/// ```swift
/// let album = row.objectID("album")
/// let plays = row["sum(playCount)", as: Int.self]
/// ```
public struct ResultRow: Sendable, Hashable {
    let shape: ResultShape
    /// The values in the order of the request's columns.
    public let values: [Value]

    /// The names of the columns in the request's order.
    public var names: [String] { shape.names }

    /// The value of a column; nil if the result has no such column. Null is `.null`.
    public subscript(_ name: String) -> Value? { shape.position(of: name).map { values[$0] } }

    /// The value of a column as a Swift type; nil if there is no such column or its value has another type.
    public subscript<V: AttributeValue>(_ name: String, as type: V.Type) -> V? { self[name].flatMap { V($0) } }

    /// Returns the value of a column by key path; nil if there is no such column or its value has another type.
    public func value<M: PersistentModel, V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> V? {
        self[M.name(of: keyPath), as: V.self]
    }

    /// Returns the value of a column of a raw-value or `Codable` type by key path; nil if there is no such column or its value has another
    /// type.
    @_disfavoredOverload
    public func value<M: PersistentModel, V>(_ keyPath: KeyPath<M, V>) -> V? {
        self[M.name(of: keyPath)].flatMap { Self.value($0, as: V.self) }
    }

    /// Returns a value as a property's type. No stored value of a `Codable` type is its empty value, as the property reads.
    static func value<V>(_ value: Value, as type: V.Type) -> V? {
        if let stored = StoredAttribute.value(value, as: type) { return stored }
        guard value == .zero(of: .data), !(type is any AttributeValue.Type), let type = type as? any Decodable.Type else {
            return nil
        }
        return AttributeJSON.empty(type) as? V
    }

    /// Returns the id in a column of ids or of a to-one relationship; nil for null.
    public func objectID(_ name: String) -> ObjectID? {
        guard let position = shape.position(of: name), let entity = shape.entities[position],
            let key = values[position].referenceKey
        else { return nil }
        return ObjectID(store: shape.store, entity: entity, key: key)
    }

    /// The values by column name.
    public var dictionary: [String: Value] {
        Dictionary(zip(shape.names, values), uniquingKeysWith: { first, _ in first })
    }

    /// Returns whether two rows have the same columns and equal values.
    public static func == (a: ResultRow, b: ResultRow) -> Bool { a.shape.names == b.shape.names && a.values == b.values }

    /// Hashes the values.
    public func hash(into hasher: inout Hasher) { hasher.combine(values) }
}

extension ResultRow: CustomStringConvertible, CustomReflectable {
    /// The names and values of the columns: `(title: "Baguette", plays: 3)`. An object is shown by its key.
    public var description: String { "(" + texts.map { "\($0): \($1)" }.joined(separator: ", ") + ")" }

    /// The values of the columns as children.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: zip(shape.names, values).enumerated().map { position, column in
                (label: column.0 as String?, value: shape.child(column.1, at: position))
            }, displayStyle: .struct)
    }

    private var texts: [(String, String)] {
        zip(shape.names, values).enumerated().map { position, column in
            (column.0, shape.text(column.1, at: position))
        }
    }
}

/// The names and types that all rows of one result share.
final class ResultShape: Sendable {
    let names: [String]
    /// For each column of ids, the entity to which they belong; nil for other columns.
    let entities: [EntityIndex?]
    let store: StoreIdentity
    private let forms: [ValueForm]

    init(names: [String], forms: [ValueForm], entities: [EntityIndex?], store: StoreIdentity) {
        self.names = names
        self.forms = forms
        self.entities = entities
        self.store = store
    }

    /// Returns the text of a column's value. An object is shown by its key.
    func text(_ value: Value, at position: Int) -> String {
        if let key = value.referenceKey { return "id \(key)" }
        return forms[position].text(value)
    }

    /// Returns a column's value for mirrors.
    func child(_ value: Value, at position: Int) -> Any {
        value.referenceKey == nil ? forms[position].child(value) : text(value, at: position)
    }

    /// Returns the position of a column. A linear search suffices, because results have few columns.
    func position(of name: String) -> Int? { names.firstIndex(of: name) }
}
