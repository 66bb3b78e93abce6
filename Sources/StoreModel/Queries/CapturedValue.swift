#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A value that a computation uses, compared by its content: by `==`, or else by its JSON. A value of another type equals nothing.
///
/// `@unchecked Sendable` is safe because the value comes from a `Predicate`, whose values are sendable, and is only compared.
package struct CapturedValue: @unchecked Sendable, Equatable {
    private let value: Any

    package init(_ value: Any) { self.value = value }

    package static func == (a: CapturedValue, b: CapturedValue) -> Bool {
        if let first = a.value as? any Equatable { return first.equals(b.value) }
        guard let first = json(a.value), let second = json(b.value) else { return false }
        return first == second
    }

    private static func json(_ value: Any) -> Data? {
        guard let value = value as? any Encodable else { return nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try? encoder.encode(value)
    }
}

extension Equatable {
    fileprivate func equals(_ other: Any) -> Bool { (other as? Self) == self }
}
