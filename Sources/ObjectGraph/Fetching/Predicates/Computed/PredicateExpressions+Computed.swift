import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PredicateExpressions.Value: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        RowExpression(constant: value, RowText.constant(value))
    }
}

extension PredicateExpressions.Variable: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        guard lowering.elements.contains(key) else {
            return try lowering.row(of: lowering.binding(key), in: lowering.boundScope(of: key), as: Output.self)
        }
        let key = key
        var row = RowExpression("element") { row in
            guard let element = row.variables[key] as? Output else { throw MissingValue() }
            return element
        }
        row.variables = [key]
        return row
    }
}

extension PredicateExpressions.KeyPath: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        if ModelTypes.contain(Root.Output.self) {
            if let row = try countRow(&lowering) { return row }
            return try lowering.row(of: try lower(&lowering), as: Output.self)
        }
        let root = try lowering.row(root)
        let keyPath = keyPath
        var row = RowExpression(RowText.property(keyPath, of: root.text), of: root) { try root.evaluate($0)[keyPath: keyPath] }
        // The text of a computed property has no name.
        if RowText.name(of: keyPath) == nil { row.constants.append(CapturedValue(keyPath)) }
        return row
    }
}

extension PredicateExpressions.KeyPath {
    /// Returns the number of related objects that a closure selects, or whether there are any; nil for other key paths.
    fileprivate func countRow(_ lowering: inout PredicateLowering) throws -> RowExpression<Output>? {
        guard root is any RelatedExpression else { return nil }
        let related = try lowering.related(root)
        switch kind {
        case .collectionCount:
            return RowExpression("\(related.text).count", of: related) { try related.rows($0).count } as? RowExpression<Output>
        case .collectionIsEmpty:
            return RowExpression("\(related.text).isEmpty", of: related) { try related.rows($0).isEmpty }
                as? RowExpression<Output>
        default: return nil
        }
    }
}

/// Types that have no values outside of a context: models and collections of models.
enum ModelTypes {
    static func contain(_ type: Any.Type) -> Bool {
        if type is any PersistentModel.Type { return true }
        guard let type = type as? any Sequence.Type else { return false }
        return hasModels(type)
    }

    private static func hasModels<S: Sequence>(_ type: S.Type) -> Bool { S.Element.self is any PersistentModel.Type }
}

// MARK: Numbers

extension PredicateExpressions.Arithmetic: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        let (op, symbol) = (op, RowText.symbol(op))
        return RowExpression("\(left.text) \(symbol) \(right.text)", of: left, right) {
            try op.applied(try left.evaluate($0), try right.evaluate($0))
        }
    }
}

extension PredicateExpressions.ArithmeticOperator {
    /// Returns the result; throws ``MissingValue`` if it overflows.
    fileprivate func applied<N: Numeric>(_ a: N, _ b: N) throws -> N {
        if let a = a as? any FixedWidthInteger { return try checked(a, b) }
        switch self {
        case .add: return a + b
        case .subtract: return a - b
        case .multiply: return a * b
        @unknown default: throw MissingValue()
        }
    }

    private func checked<I: FixedWidthInteger, N: Numeric>(_ a: I, _ b: N) throws -> N {
        guard let b = b as? I else { throw MissingValue() }
        let (result, overflow) =
            switch self {
            case .add: a.addingReportingOverflow(b)
            case .subtract: a.subtractingReportingOverflow(b)
            case .multiply: a.multipliedReportingOverflow(by: b)
            @unknown default: (a, true)
            }
        guard !overflow, let result = result as? N else { throw MissingValue() }
        return result
    }
}

extension PredicateExpressions.UnaryMinus: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let number = try lowering.row(wrapped)
        return RowExpression("-\(number.text)", of: number) { row in
            let value = try number.evaluate(row)
            guard let integer = value as? any FixedWidthInteger else { return -value }
            guard !integer.isMinimum else { throw MissingValue() }
            return -value
        }
    }
}

extension FixedWidthInteger {
    /// Whether the negative of the number overflows.
    fileprivate var isMinimum: Bool { Self.isSigned && self == .min }
}

extension PredicateExpressions.IntDivision: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("\(left.text) / \(right.text)", of: left, right) {
            let (a, b) = (try left.evaluate($0), try right.evaluate($0))
            guard b.divides(a) else { throw MissingValue() }
            return a / b
        }
    }
}

extension PredicateExpressions.IntRemainder: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("\(left.text) % \(right.text)", of: left, right) {
            let (a, b) = (try left.evaluate($0), try right.evaluate($0))
            guard b.divides(a) else { throw MissingValue() }
            return a % b
        }
    }
}

extension BinaryInteger {
    /// Whether dividing another number by this one has a result: not for zero, and not for the minimum divided by -1.
    fileprivate func divides(_ other: Self) -> Bool {
        if self == 0 { return false }
        guard Self.isSigned, self == -1, let other = other as? any FixedWidthInteger else { return true }
        return !other.isMinimum
    }
}

extension PredicateExpressions.FloatDivision: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("\(left.text) / \(right.text)", of: left, right) {
            try left.evaluate($0) / right.evaluate($0)
        }
    }
}

// MARK: Choices

extension PredicateExpressions.Conditional: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let test = try lowering.row(test)
        let (yes, no) = (try lowering.row(trueBranch), try lowering.row(falseBranch))
        return RowExpression("(\(test.text) ? \(yes.text) : \(no.text))", of: test, yes, no) {
            try test.holds($0) ? yes.evaluate($0) : no.evaluate($0)
        }
    }
}

extension PredicateExpressions.NilCoalesce: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("(\(left.text) ?? \(right.text))", of: left, right) {
            try left.evaluate($0) ?? right.evaluate($0)
        }
    }
}

extension PredicateExpressions.ForcedUnwrap: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let optional = try lowering.row(inner)
        return RowExpression("\(optional.text)!", of: optional) {
            guard let value = try optional.evaluate($0) else { throw MissingValue() }
            return value
        }
    }
}

extension PredicateExpressions.NilLiteral: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> { RowExpression(constant: nil, "nil") }
}

extension PredicateExpressions.OptionalFlatMap: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        if ModelTypes.contain(Wrapped.self) { return try throughObject(&lowering) }
        let base = try lowering.row(wrapped)
        let key = variable.key
        let transform = try lowering.row(transform, over: key)
        return RowExpression(transform.text.replacing("element", with: "\(base.text)?", maxReplacements: 1), of: base, transform)
        {
            guard let value = try base.evaluate($0) else { return nil }
            return try transform.evaluate($0.setting(key, to: value)) as? Result
        }
    }

    /// Computes the transform of the object at the end of a path; nil if there is none.
    private func throughObject(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let term = try lowering.term(wrapped)
        let path: PredicatePath
        switch term {
        case .object(let found): path = found
        // A to-many relationship is never nil itself.
        case .collection(let collection): path = collection.path
        default: throw FetchError.unsupportedPredicate(part: "?. of \(PredicateLowering.kind(term))")
        }
        let start = try lowering.location(of: path)
        let transform = try lowering.row(transform, binding: variable.key, to: term)
        var row: RowExpression<Output> = RowExpression(transform.text, of: transform) {
            try start.object($0) == nil ? nil : try transform.evaluate($0) as? Result
        }
        row.scopes.insert(path.scope)
        if !path.steps.isEmpty { row.follows.append(path.following(.constant(true))) }
        return row
    }
}

// MARK: Types

extension PredicateExpressions.ConditionalCast: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let input = try lowering.row(input)
        return RowExpression("\(input.text) as? \(Desired.self)", of: input) { try input.evaluate($0) as? Desired }
    }
}

extension PredicateExpressions.ForceCast: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let input = try lowering.row(input)
        return RowExpression("\(input.text) as! \(Desired.self)", of: input) {
            guard let value = try input.evaluate($0) as? Desired else { throw MissingValue() }
            return value
        }
    }
}

extension PredicateExpressions.TypeCheck: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let input = try lowering.row(input)
        return RowExpression("\(input.text) is \(Desired.self)", of: input) { try input.evaluate($0) is Desired }
    }
}
