import StoreInterface
import StoreModel

extension Condition: CustomStringConvertible {
    /// The condition as text, for logs and messages: `title == "a" && plays > 3`. The format may change.
    public var description: String { text(isPart: false) }

    /// Whether the condition may leave out objects.
    var isRestrictive: Bool { if case .always = form { false } else { true } }

    private func text(isPart: Bool) -> String {
        switch form {
        case .always: "true"
        case .all(let parts): Self.joined(parts, by: " && ", empty: "true", isPart: isPart)
        case .any(let parts): Self.joined(parts, by: " || ", empty: "false", isPart: isPart)
        case .not(let part): "!(\(part.text(isPart: false)))"
        case .compare(let name, let comparison, let value): "\(name) \(RowText.symbol(comparison)) \(value.text(as: nil))"
        case .isNil(let name): "\(name) == nil"
        case .isIn(let name, let values): "\(name) is in \(Self.list(values))"
        case .between(let name, let lower, let upper): "\(name) is in \(lower)...\(upper)"
        case .string(let name, let match, let pattern, let sensitivity):
            "\(name) \(Self.words(match)) \(Value.string(pattern))\(sensitivity == .insensitive ? " ignoring case" : "")"
        case .ids(let ids): "id is in \(Self.list(ids.map { .int(Int64(clamping: $0.key.rawValue)) }))"
        case .related(let name, let quantifier, let part): "\(Self.words(quantifier)) \(name) where \(part.text(isPart: true))"
        case .relatedCount(let name, let part, let comparison, let number):
            "count of \(name) where \(part.text(isPart: true)) \(RowText.symbol(comparison)) \(number)"
        case .isKind(let name, let entity, let part):
            "\(name.map { "\($0) " } ?? "")is \(entity)\(part.isRestrictive ? " where \(part.text(isPart: true))" : "")"
        case .tooDeep: "a condition of \(depth) levels"
        }
    }

    private static func joined(_ parts: [Condition], by separator: String, empty: String, isPart: Bool) -> String {
        guard parts.count > 1 else { return parts.first?.text(isPart: isPart) ?? empty }
        let text = shown(parts.map { $0.text(isPart: true) }, separator)
        return isPart ? "(\(text))" : text
    }

    static func list(_ values: [Value], _ form: ValueForm = ValueForm()) -> String {
        "[\(shown(values.map(form.text), ", "))]"
    }

    /// Joins the first texts, so that a message stays short.
    static func shown(_ texts: [String], _ separator: String) -> String {
        let most = 20
        guard texts.count > most else { return texts.joined(separator: separator) }
        return texts.prefix(most).joined(separator: separator) + "\(separator)\(texts.count - most) more"
    }

    private static func words(_ match: StorePredicate.StringMatch) -> String {
        switch match {
        case .equals: "equals"
        case .contains: "contains"
        case .hasPrefix: "begins with"
        case .hasSuffix: "ends with"
        }
    }

    private static func words(_ quantifier: StorePredicate.Quantifier) -> String {
        switch quantifier {
        case .any: "any of"
        case .all: "all of"
        case .none: "none of"
        }
    }
}
