import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension ResultRow {
    /// Decodes the row as a `Decodable` type, whose coding keys are the names of the columns.
    ///
    /// Columns of ids decode as ``ObjectID``, and columns of `Codable` attributes as their types. A null column is nil.
    /// - Throws: ``FetchError/undecodableRow(type:column:reason:)``.
    public func decode<T: Decodable>(_ type: T.Type) throws -> T {
        do {
            // UUIDs, decimals, URLs, data, ids and types with raw values encode themselves otherwise than columns store them.
            if values.count == 1,
                T.self == ObjectID.self || T.isPlainAttribute || T.self is any RawRepresentable.Type || isList(T.self)
            {
                return try ColumnDecoder(row: self, position: 0).decode(type)
            }
            return try T(from: RowDecoder(row: self))
        } catch let error as UndecodableColumn {
            throw FetchError.undecodableRow(type: "\(T.self)", column: error.column, reason: error.reason)
        } catch let error as DecodingError {
            let cause = UndecodableValue(error)
            throw FetchError.undecodableRow(type: "\(T.self)", column: cause.field, reason: cause.reason)
        }
    }

    /// Whether a type is a list, which is never the shape of a row, and the only column has the bytes of one.
    private func isList(_ type: Any.Type) -> Bool {
        guard case .data = values[0] else { return false }
        return type is any RangeReplaceableCollection.Type || type is any SetAlgebra.Type
    }

    /// Returns a column's value as a type of tuples' elements.
    func element<V: AttributeValue>(_ position: Int, _ type: V.Type) throws -> V { try element(position) { V($0) } }

    /// Returns a column's value as a type of tuples' elements that is known only at run time.
    func dynamicElement<V>(_ position: Int, _ type: V.Type) throws -> V {
        try element(position) { value in
            guard let key = value.referenceKey, let entity = shape.entities[position] else {
                return Self.value(value, as: V.self)
            }
            return ObjectID(store: shape.store, entity: entity, key: key) as? V
        }
    }

    private func element<V>(_ position: Int, decode: (Value) -> V?) throws -> V {
        guard values.indices.contains(position) else {
            throw FetchError.undecodableRow(
                type: "\(V.self)", column: nil, reason: "the request has only \(values.count) columns")
        }
        guard let value = decode(values[position]) else {
            throw FetchError.undecodableRow(
                type: "\(V.self)", column: names[position], reason: "it is \(shape.text(values[position], at: position))")
        }
        return value
    }
}

extension Decodable {
    /// Whether the type is an attribute's, and neither optional nor a `Codable` type that may also be the shape of a row.
    fileprivate static var isPlainAttribute: Bool {
        guard let attribute = self as? any AttributeValue.Type else { return false }
        return !attribute.isOptional && !(attribute is any CodableAttribute.Type)
    }
}

/// A column that a type cannot be decoded from.
private struct UndecodableColumn: Error {
    var column: String
    var reason: String
}

/// Decodes a type from the columns of a row.
private struct RowDecoder: Decoder {
    let row: ResultRow
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(RowContainer<Key>(row: row))
    }

    /// Decodes types with one value, such as numbers, from rows with one column.
    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        guard row.values.count == 1 else { throw unnamed }
        return ColumnDecoder(row: row, position: 0)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw unnamed }

    private var unnamed: DecodingError {
        .dataCorrupted(
            .init(codingPath: [], debugDescription: "a row has named columns. Use a struct whose properties have their names"))
    }
}

private struct RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let row: ResultRow
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { row.names.compactMap(Key.init(stringValue:)) }

    func contains(_ key: Key) -> Bool { row.shape.position(of: key.stringValue) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try column(key).decodeNil() }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try column(key).decode(type) }

    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        try column(key).container(keyedBy: keyedBy)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try column(key).unkeyedContainer() }
    func superDecoder() -> any Decoder { RowDecoder(row: row) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try column(key) }

    private func column(_ key: Key) throws -> ColumnDecoder {
        guard let position = row.shape.position(of: key.stringValue) else {
            throw UndecodableColumn(column: key.stringValue, reason: "the request has no column of that name")
        }
        return ColumnDecoder(row: row, position: position)
    }
}

/// Decodes a type from one column.
private struct ColumnDecoder: Decoder, SingleValueDecodingContainer {
    let row: ResultRow
    let position: Int
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    private var value: Value { row.values[position] }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }
    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw wrong("it is \(shown), which has no fields")
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw wrong("it is \(shown), which is no list") }

    func decodeNil() -> Bool { value.isNull }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let type = T.self as? any AttributeValue.Type {
            guard let decoded = type.init(value) as? T else {
                throw wrong(value.isNull ? Self.missing : "it is \(shown), and not of type \(T.self)")
            }
            return decoded
        }
        if T.self == ObjectID.self {
            guard let id = row.objectID(row.names[position]) as? T else { throw wrong("it is \(shown), which is no id") }
            return id
        }
        if value.isNull { throw wrong(Self.missing) }
        // Stored by its raw value, however the type encodes itself.
        if T.self is any RawRepresentable.Type, let decoded = StoredAttribute.value(value, as: T.self) { return decoded }
        // Attributes of `Codable` types are stored as JSON. Without a stored value, they read as empty.
        if case .data(let bytes) = value {
            if bytes.isEmpty, let empty = AttributeJSON.empty(T.self) { return empty }
            do { return try AttributeJSON.decode(T.self, from: bytes) } catch {
                let cause = UndecodableValue(error)
                throw wrong(cause.field.map { "the field \($0) of the value: \(cause.reason)" } ?? cause.reason)
            }
        }
        return try T(from: self)
    }

    private static let missing = "it is nil. Make the property optional"
    private var shown: String { row.shape.text(value, at: position) }
    private func wrong(_ reason: String) -> UndecodableColumn { UndecodableColumn(column: row.names[position], reason: reason) }
}
