import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Whether a store orders the values of a type as Swift does. Stores order what is stored: raw values, and the bytes of JSON.
package enum StoredOrder {
    /// Returns whether Swift's `<` gives the order of the stored values. For an enum with a raw value, only its list of all cases can show
    /// that. O(cases).
    package static func isOrder<T: Comparable>(of type: T.Type) -> Bool {
        if type is any CodableAttribute.Type { return false }
        guard let raw = type as? any RawRepresentable.Type else { return isPlain(type) }
        guard let listed = type as? any CaseIterable.Type, let cases = allCases(of: listed) as? [T] else { return false }
        let values = cases.compactMap { storedValue($0, raw) }
        guard values.count == cases.count else { return false }
        let order = cases.indices.sorted { values[$0].order(values[$1]) < 0 }
        return zip(order, order.dropFirst()).allSatisfy { cases[$0] < cases[$1] }
    }

    /// Throws an error if stores cannot compare values of a type as Swift does.
    static func require<T: Comparable>(_ type: T.Type) throws(FetchError) {
        guard isOrder(of: type) else {
            throw .unsupportedPredicate(part: "the order of \(type), whose stored values have another order")
        }
    }

    /// Whether columns have the order of a type of the library. A type of a program decides itself what it stores.
    private static func isPlain(_ type: Any.Type) -> Bool {
        if type is any (FixedWidthInteger & AttributeValue).Type { return true }
        let others: [Any.Type] = [Float.self, Double.self, String.self, Date.self, UUID.self, Decimal.self]
        return others.contains { $0 == type }
    }

    private static func allCases<C: CaseIterable>(of type: C.Type) -> [Any] { type.allCases.map { $0 } }

    private static func storedValue<R: RawRepresentable>(_ value: Any, _ type: R.Type) -> Value? {
        ((value as? R)?.rawValue as? any AttributeValue)?.storeValue
    }
}
