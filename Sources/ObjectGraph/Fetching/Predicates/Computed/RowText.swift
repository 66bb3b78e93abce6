import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The texts of computed expressions, for `explain` and messages.
enum RowText {
    static func constant<T>(_ value: T) -> String {
        if let text = value as? String { return "\"\(text)\"" }
        if let text = value as? any LosslessStringConvertible { return text.description }
        return "a captured value"
    }

    /// Returns the name of a key path's last property, without addresses: those of computed properties have no name at run time.
    static func property(_ keyPath: AnyKeyPath, of root: String) -> String {
        guard let name = name(of: keyPath) else { return "a property of \(root)" }
        return "\(root).\(name)"
    }

    /// The end of the words for a property that has no name at run time.
    static let withoutName = "(it is computed, transient, or behind a relationship)"

    /// Returns a property's name for messages.
    static func property(_ keyPath: AnyKeyPath) -> String {
        name(of: keyPath) ?? "of type \(type(of: keyPath).valueType) \(withoutName)"
    }

    /// Returns the name of a key path's last property; nil if the key path has none at run time.
    static func name(of keyPath: AnyKeyPath) -> String? {
        let text = "\(keyPath)"
        guard !text.contains("<"), let name = text.split(separator: ".").last else { return nil }
        return String(name)
    }

    static func symbol(_ op: PredicateExpressions.ArithmeticOperator) -> String {
        switch op {
        case .add: "+"
        case .subtract: "-"
        case .multiply: "*"
        @unknown default: "?"
        }
    }

    static func symbol(_ comparison: StorePredicate.Comparison) -> String {
        switch comparison {
        case .equal: "=="
        case .notEqual: "!="
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        }
    }
}
