import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Writes a Foundation predicate in the words of ``Condition``: `artist.name == "Ravel" && plays > 3`. The format may change.
struct PredicateText {
    /// The texts of variables: empty for the object whose condition is being written.
    private var names: [PredicateExpressions.VariableID: String] = [:]
    /// The entities of the objects whose conditions enclose this part, with their variables.
    private var objects: [(key: PredicateExpressions.VariableID, entity: String)] = []
    private var depth = 0
    /// The level below which parts are left out.
    private static let maximumDepth = 32

    /// - Parameter isPart: Whether the text is joined with another condition, so that `||` needs parentheses.
    static func text<M: PersistentModel>(_ predicate: Predicate<M>, isPart: Bool) -> String {
        var writer = PredicateText()
        writer.enter(predicate.variable.key, M.self)
        return writer.text(
            predicate.expression, isPart: isPart && (predicate.expression as? any BinaryExpression)?.symbol == "||")
    }

    /// Returns the text of a part.
    ///
    /// - Parameter isPart: Whether a chain of conditions needs parentheses.
    mutating func text(_ expression: any PredicateExpression, isPart: Bool = true) -> String {
        guard depth < Self.maximumDepth else { return "more conditions" }
        depth += 1
        defer { depth -= 1 }
        return (expression as? any WritableExpression)?.text(&self, isPart: isPart) ?? "a computed condition"
    }

    /// Returns the parts of a chain of `&&` or `||`, which nests as deep as it is long.
    fileprivate mutating func chain(_ expression: any BinaryExpression, isPart: Bool) -> String {
        let symbol = expression.symbol
        var pending: [any PredicateExpression] = [expression]
        var parts: [String] = []
        while let next = pending.popLast() {
            if let next = next as? any BinaryExpression, next.symbol == symbol {
                pending += [next.operands.1, next.operands.0]
            } else {
                parts.append(text(next))
            }
        }
        let text = Condition.shown(parts, " \(symbol) ")
        return isPart ? "(\(text))" : text
    }

    // MARK: Variables

    /// Returns the name of a model's entity, or of another type.
    static func name(of type: Any.Type) -> String { (type as? any PersistentModel.Type)?.entityName ?? "\(type)" }

    private mutating func enter<T>(_ key: PredicateExpressions.VariableID, _ type: T.Type) {
        let entity = (type as? any PersistentModel.Type)?.entityName ?? "it"
        for outer in objects { names[outer.key] = outer.entity }
        objects.append((key, entity))
        names[key] = ""
    }

    /// Returns the text of a closure's condition on the elements of a collection.
    mutating func inClosure<T>(
        over type: T.Type, _ key: PredicateExpressions.VariableID, _ test: any PredicateExpression
    ) -> String {
        let outer = (names, objects)
        defer { (names, objects) = outer }
        enter(key, type)
        return text(test, isPart: false)
    }

    /// Returns the text of a part in which a variable stands for another part.
    mutating func text(
        _ expression: any PredicateExpression, binding key: PredicateExpressions.VariableID, to text: String, isPart: Bool
    ) -> String {
        names[key] = text
        return self.text(expression, isPart: isPart)
    }

    func variable(_ key: PredicateExpressions.VariableID) -> String {
        guard let name = names[key], !name.isEmpty else { return objects.last?.entity ?? "it" }
        return name
    }

    /// Returns the text of a property of a part.
    mutating func property(_ name: String, of root: any PredicateExpression) -> String {
        if let variable = root as? any VariableExpression, names[variable.key]?.isEmpty != false { return name }
        return "\(text(root)).\(name)"
    }

    // MARK: Values

    static func constant<T>(_ value: T) -> String {
        if let regex = value as? PredicateExpressions.PredicateRegex { return "/\(regex.stringRepresentation)/" }
        let form = ValueForm(capturedAs: T.self)
        return switch PredicateTerm(captured: value) {
        case .constant(let value): form.text(value)
        case .constants(let values): Condition.list(values, form)
        case .identities(let ids) where ids.count == 1: "\(ids[0].key)"
        case .identities(let ids): Condition.list(ids.map { .int(Int64(clamping: $0.key.rawValue)) })
        case .range(let range):
            "\(range.lower.map(form.text) ?? "")\(range.upperComparison == .less ? "..<" : "...")\(range.upper.map(form.text) ?? "")"
        default: json(value) ?? "a captured value"
        }
    }

    /// Returns a value that stores keep as JSON; nil for other values.
    private static func json<T>(_ value: T) -> String? {
        guard let value = value as? any Encodable, let bytes = try? AttributeJSON.encode(value) else { return nil }
        return ValueForm(type: .data, content: .encoded).text(.data(bytes))
    }
}

extension ValueForm {
    /// Creates the form of captured values: those of an attribute, an optional or a collection of them, or the bounds of a range.
    fileprivate init(capturedAs type: Any.Type) {
        if let type = type as? any PredicateConstant.Type {
            self.init(capturedAs: type.valueType)
        } else if let type = type as? any AttributeValue.Type {
            self.init(type: type.columnType, content: AttributeContent(of: type))
        } else if let type = type as? any RawRepresentable.Type {
            self.init(capturedAs: Self.rawType(type))
        } else {
            self.init()
        }
    }

    private static func rawType<R: RawRepresentable>(_ type: R.Type) -> Any.Type { R.RawValue.self }
}

/// A part of a Foundation predicate that has a text.
private protocol WritableExpression: PredicateExpression {
    func text(_ writer: inout PredicateText, isPart: Bool) -> String
}

private protocol VariableExpression: PredicateExpression {
    var key: PredicateExpressions.VariableID { get }
}

/// An operator with two sides.
private protocol BinaryExpression: WritableExpression {
    var symbol: String { get }
    var operands: (any PredicateExpression, any PredicateExpression) { get }
}

extension BinaryExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(operands.0)) \(symbol) \(writer.text(operands.1))"
    }
}

/// An operator that computes a value from two sides. The parentheses keep it apart from the operators around it.
private protocol ComputingExpression: BinaryExpression {}

extension ComputingExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(\(writer.text(operands.0)) \(symbol) \(writer.text(operands.1)))"
    }
}

extension PredicateExpressions.Value: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { PredicateText.constant(value) }
}

extension PredicateExpressions.NilLiteral: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { "nil" }
}

extension PredicateExpressions.Variable: WritableExpression, VariableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { writer.variable(key) }
}

extension PredicateExpressions.KeyPath: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        switch kind {
        case .collectionCount: return "count of \(writer.text(root))"
        case .collectionIsEmpty: return "\(writer.text(root)) is empty"
        default: break
        }
        let stored = (Root.Output.self as? any PersistentModel.Type)?.columnsByKeyPath[keyPath]
        if let name = stored ?? RowText.name(of: keyPath) { return writer.property(name, of: root) }
        if Output.self is any ObjectIDConvertible.Type { return writer.property("id", of: root) }
        return writer.property("a computed property", of: root)
    }
}

// MARK: Logic

extension PredicateExpressions.Conjunction: BinaryExpression {
    fileprivate var symbol: String { "&&" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        writer.chain(self, isPart: isPart)
    }
}

extension PredicateExpressions.Disjunction: BinaryExpression {
    fileprivate var symbol: String { "||" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        writer.chain(self, isPart: isPart)
    }
}

extension PredicateExpressions.Negation: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { "!(\(writer.text(wrapped, isPart: false)))" }
}

extension PredicateExpressions.Conditional: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(\(writer.text(test)) ? \(writer.text(trueBranch)) : \(writer.text(falseBranch)))"
    }
}

extension PredicateExpressions.NilCoalesce: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(\(writer.text(lhs)) ?? \(writer.text(rhs)))"
    }
}

extension PredicateExpressions.ForcedUnwrap: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { writer.text(inner, isPart: isPart) }
}

extension PredicateExpressions.OptionalFlatMap: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        writer.text(transform, binding: variable.key, to: writer.text(wrapped), isPart: isPart)
    }
}

// MARK: Comparing and computing

extension PredicateExpressions.Equal: BinaryExpression {
    fileprivate var symbol: String { "==" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.NotEqual: BinaryExpression {
    fileprivate var symbol: String { "!=" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.Comparison: BinaryExpression {
    fileprivate var symbol: String {
        switch op {
        case .lessThan: "<"
        case .lessThanOrEqual: "<="
        case .greaterThan: ">"
        case .greaterThanOrEqual: ">="
        @unknown default: "compared with"
        }
    }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.Arithmetic: ComputingExpression {
    fileprivate var symbol: String { RowText.symbol(op) }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.IntDivision: ComputingExpression {
    fileprivate var symbol: String { "/" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.FloatDivision: ComputingExpression {
    fileprivate var symbol: String { "/" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.IntRemainder: ComputingExpression {
    fileprivate var symbol: String { "%" }
    fileprivate var operands: (any PredicateExpression, any PredicateExpression) { (lhs, rhs) }
}

extension PredicateExpressions.UnaryMinus: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { "-\(writer.text(wrapped))" }
}

extension PredicateExpressions.SequenceMinimum: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { "minimum of \(writer.text(elements))" }
}

extension PredicateExpressions.SequenceMaximum: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String { "maximum of \(writer.text(elements))" }
}

// MARK: Strings, collections and ranges

extension PredicateExpressions.SequenceContains: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(element)) is in \(writer.text(sequence))"
    }
}

extension PredicateExpressions.RangeExpressionContains: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(element)) is in \(writer.text(range))"
    }
}

extension PredicateExpressions.ClosedRange: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(lower))...\(writer.text(upper))"
    }
}

extension PredicateExpressions.Range: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(lower))..<\(writer.text(upper))"
    }
}

extension PredicateExpressions.CollectionContainsCollection: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(base)) contains \(writer.text(other))"
    }
}

extension PredicateExpressions.SequenceStartsWith: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(base)) begins with \(writer.text(prefix))"
    }
}

extension PredicateExpressions.StringLocalizedStandardContains: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(root)) contains \(writer.text(other)) as people search"
    }
}

extension PredicateExpressions.StringContainsRegex: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(subject)) contains \(writer.text(regex))"
    }
}

extension PredicateExpressions.StringCaseInsensitiveCompare: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(order of \(writer.text(root)) and \(writer.text(other)) ignoring case)"
    }
}

extension PredicateExpressions.StringLocalizedCompare: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(order of \(writer.text(root)) and \(writer.text(other)) as people sort)"
    }
}

extension PredicateExpressions.CollectionIndexSubscript: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(wrapped))[\(writer.text(index))]"
    }
}

extension PredicateExpressions.CollectionRangeSubscript: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(wrapped))[\(writer.text(range))]"
    }
}

extension PredicateExpressions.DictionaryKeySubscript: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(wrapped))[\(writer.text(key))]"
    }
}

extension PredicateExpressions.DictionaryKeyDefaultValueSubscript: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(wrapped))[\(writer.text(key)), default: \(writer.text(`default`))]"
    }
}

extension PredicateExpressions.SequenceContainsWhere: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "any of \(writer.text(sequence)) where \(writer.inClosure(over: LHS.Output.Element.self, variable.key, test))"
    }
}

extension PredicateExpressions.SequenceAllSatisfy: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "all of \(writer.text(sequence)) where \(writer.inClosure(over: LHS.Output.Element.self, variable.key, test))"
    }
}

extension PredicateExpressions.Filter: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(sequence)) where \(writer.inClosure(over: LHS.Output.Element.self, variable.key, filter))"
    }
}

// MARK: Types

extension PredicateExpressions.TypeCheck: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "\(writer.text(input)) is \(PredicateText.name(of: Desired.self))"
    }
}

extension PredicateExpressions.ConditionalCast: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(\(writer.text(input)) as? \(PredicateText.name(of: Desired.self)))"
    }
}

extension PredicateExpressions.ForceCast: WritableExpression {
    fileprivate func text(_ writer: inout PredicateText, isPart: Bool) -> String {
        "(\(writer.text(input)) as! \(PredicateText.name(of: Desired.self)))"
    }
}
