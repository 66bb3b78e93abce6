import StoreInterface
import StoreModel

/// Conversions between stored values and the types of a model's properties.
enum StoredValue {
    /// Returns a stored value as a Swift type: an attribute type, an enum with a raw value, or a `Codable` type stored as JSON.
    ///
    /// No bytes, the value of a required property without a stored value, are the empty value of a `Codable` type, as the property reads.
    static func decode<T>(_ value: Value, as type: T.Type) -> T? {
        if let attribute = T.self as? any AttributeValue.Type { return attribute.init(value) as? T }
        if let optional = T.self as? any OptionalType.Type { return optional.wrapping(value) as? T }
        if let raw = T.self as? any RawRepresentable.Type, let result = Self.raw(value, raw) as? T { return result }
        guard let codable = T.self as? any Codable.Type else { return nil }
        return encoded(value, codable) as? T
    }

    /// Returns an object's id as a Swift type of ids, or an optional of one; nil for another type.
    static func identifier<T>(_ id: ObjectID, entityName: String, as type: T.Type) -> T? {
        if let identifier = T.self as? any ObjectIDConvertible.Type {
            return identifier.init(objectID: id, entityName: entityName) as? T
        }
        guard let optional = T.self as? any OptionalType.Type else { return nil }
        return optional.wrapping(id, entityName: entityName) as? T
    }

    private static func encoded<C: Codable>(_ value: Value, _ type: C.Type) -> C? {
        value == .zero(of: .data) ? EncodedAttribute<C>.fallback?.value : EncodedAttribute<C>(value)?.value
    }

    private static func raw<R: RawRepresentable>(_ value: Value, _ type: R.Type) -> R? {
        decode(value, as: R.RawValue.self).flatMap(R.init(rawValue:))
    }

    /// Returns the raw value of an enum as the store represents it; nil for other types, and for raw values that are no attributes.
    static func rawValue(of value: some RawRepresentable) -> Value? {
        (value.rawValue as? any AttributeValue)?.storeValue
    }
}

private protocol OptionalType {
    /// Returns the value in the optional type; nil, not wrapped, if it cannot be converted.
    static func wrapping(_ value: Value) -> Any?
    /// Returns an object's id in the optional type; nil, not wrapped, if the wrapped type is no type of ids.
    static func wrapping(_ id: ObjectID, entityName: String) -> Any?
}

extension Optional: OptionalType {
    fileprivate static func wrapping(_ value: Value) -> Any? {
        if value.isNull { return .some(Wrapped?.none as Any) }
        return StoredValue.decode(value, as: Wrapped.self).map { Wrapped?.some($0) as Any }
    }

    fileprivate static func wrapping(_ id: ObjectID, entityName: String) -> Any? {
        StoredValue.identifier(id, entityName: entityName, as: Wrapped.self).map { Wrapped?.some($0) as Any }
    }
}
