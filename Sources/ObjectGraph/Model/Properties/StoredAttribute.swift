import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The conversion of attributes whose type is known only at run time, as the `@Model` macro chooses it by their type.
package enum StoredAttribute {
    /// Returns a stored value as a property's type: an ``AttributeValue``, a raw-value type, another `Codable` type, or an optional of
    /// these. Returns nil for other types, and if the value has another type.
    package static func value<V>(_ value: Value, as type: V.Type) -> V? {
        // A cast of nil to an optional type succeeds, so nil is excluded before each cast.
        if let type = V.self as? any AttributeValue.Type {
            guard let decoded = type.init(value) else { return nil }
            return decoded as? V
        }
        if let type = V.self as? any OptionalAttribute.Type {
            guard let decoded = type.decoded(value) else { return nil }
            return decoded as? V
        }
        if let type = V.self as? any RawRepresentable.Type, let raw = raw(value, type) { return raw as? V }
        guard case .data(let bytes) = value, let type = V.self as? any Decodable.Type else { return nil }
        return (try? AttributeJSON.decode(type, from: bytes)) as? V
    }

    private static func raw<R: RawRepresentable>(_ value: Value, _ type: R.Type) -> R? {
        guard let raw = R.RawValue.self as? any AttributeValue.Type else { return nil }
        return (raw.init(value) as? R.RawValue).flatMap(R.init(rawValue:))
    }
}

/// An optional, which stores nil as null.
private protocol OptionalAttribute {
    static func decoded(_ value: Value) -> Any?
}

extension Optional: OptionalAttribute {
    fileprivate static func decoded(_ value: Value) -> Any? {
        if value.isNull { return Wrapped?.none as Any }
        return StoredAttribute.value(value, as: Wrapped.self).map { Optional.some($0) as Any }
    }
}
