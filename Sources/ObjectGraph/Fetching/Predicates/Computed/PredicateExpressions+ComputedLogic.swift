import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PredicateExpressions.Conjunction: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("(\(left.text) && \(right.text))", of: left, right) {
            // A part that cannot be evaluated is false, as it is outside of closures.
            try left.holds($0) && right.holds($0)
        }
    }
}

extension PredicateExpressions.Disjunction: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("(\(left.text) || \(right.text))", of: left, right) {
            try left.holds($0) || right.holds($0)
        }
    }
}

extension PredicateExpressions.Negation: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let part = try lowering.row(wrapped)
        return RowExpression("!(\(part.text))", of: part) { try !part.holds($0) }
    }
}

// MARK: Comparing

extension PredicateExpressions.Equal: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("\(left.text) == \(right.text)", of: left, right) {
            StoreOrder.areEqual(try left.evaluate($0), try right.evaluate($0))
        }
    }
}

extension PredicateExpressions.NotEqual: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        return RowExpression("\(left.text) != \(right.text)", of: left, right) {
            !StoreOrder.areEqual(try left.evaluate($0), try right.evaluate($0))
        }
    }
}

extension PredicateExpressions.Comparison: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (left, right) = (try lowering.row(lhs), try lowering.row(rhs))
        let comparison = try storeComparison
        return RowExpression("\(left.text) \(RowText.symbol(comparison)) \(right.text)", of: left, right) {
            StoreOrder.compare(try left.evaluate($0), comparison, to: try right.evaluate($0))
        }
    }
}

/// Comparisons as stores make them: strings by code point.
private enum StoreOrder {
    static func areEqual<T: Equatable>(_ a: T, _ b: T) -> Bool {
        if let a = a as? String, let b = b as? String { return a.utf8.elementsEqual(b.utf8) }
        return a == b
    }

    static func compare<T: Comparable>(_ a: T, _ comparison: StorePredicate.Comparison, to b: T) -> Bool {
        if let a = a as? String, let b = b as? String { return StorePredicate.compare(.string(a), comparison, to: .string(b)) }
        return switch comparison {
        case .equal: a == b
        case .notEqual: a != b
        case .less: a < b
        case .lessOrEqual: a <= b
        case .greater: a > b
        case .greaterOrEqual: a >= b
        }
    }

    static func contains<R: RangeExpression>(_ range: R, _ element: R.Bound) -> Bool {
        func isAfter(_ bound: R.Bound) -> Bool { compare(element, .greaterOrEqual, to: bound) }
        func isBefore(_ bound: R.Bound) -> Bool { compare(element, .less, to: bound) }
        func isUpTo(_ bound: R.Bound) -> Bool { compare(element, .lessOrEqual, to: bound) }
        return switch range {
        case let range as Range<R.Bound>: isAfter(range.lowerBound) && isBefore(range.upperBound)
        case let range as ClosedRange<R.Bound>: isAfter(range.lowerBound) && isUpTo(range.upperBound)
        case let range as PartialRangeFrom<R.Bound>: isAfter(range.lowerBound)
        case let range as PartialRangeUpTo<R.Bound>: isBefore(range.upperBound)
        case let range as PartialRangeThrough<R.Bound>: isUpTo(range.upperBound)
        default: range.contains(element)
        }
    }
}

// MARK: Sequences

extension PredicateExpressions.SequenceContains: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (sequence, element) = (try lowering.row(sequence), try lowering.row(element))
        return RowExpression("\(sequence.text).contains(\(element.text))", of: sequence, element) {
            let element = try element.evaluate($0)
            return try sequence.evaluate($0).contains { StoreOrder.areEqual($0, element) }
        }
    }
}

extension PredicateExpressions.SequenceContainsWhere: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        if let (related, test) = try lowering.closure(test, over: sequence, variable.key) {
            return RowExpression("\(related.text).contains { \(test.text) }", of: related, test) { row in
                try related.rows(row).contains { try test.holds($0) }
            }
        }
        let (sequence, key) = (try lowering.row(sequence), variable.key)
        let test = try lowering.row(test, over: key)
        return RowExpression("\(sequence.text).contains { \(test.text) }", of: sequence, test) { row in
            try sequence.evaluate(row).contains { try test.holds(row.setting(key, to: $0)) }
        }
    }
}

extension PredicateExpressions.SequenceAllSatisfy: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        if let (related, test) = try lowering.closure(test, over: sequence, variable.key) {
            return RowExpression("\(related.text).allSatisfy { \(test.text) }", of: related, test) { row in
                try related.rows(row).allSatisfy { try test.holds($0) }
            }
        }
        let (sequence, key) = (try lowering.row(sequence), variable.key)
        let test = try lowering.row(test, over: key)
        return RowExpression("\(sequence.text).allSatisfy { \(test.text) }", of: sequence, test) { row in
            try sequence.evaluate(row).allSatisfy { try test.holds(row.setting(key, to: $0)) }
        }
    }
}

extension PredicateExpressions.Filter: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (sequence, key) = (try lowering.row(sequence), variable.key)
        let test = try lowering.row(filter, over: key)
        return RowExpression("\(sequence.text).filter { \(test.text) }", of: sequence, test) { row in
            try sequence.evaluate(row).filter { try test.holds(row.setting(key, to: $0)) }
        }
    }
}

extension PredicateExpressions.SequenceMinimum: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let elements = try lowering.row(elements)
        return RowExpression("\(elements.text).min()", of: elements) {
            try elements.evaluate($0).min { StoreOrder.compare($0, .less, to: $1) }
        }
    }
}

extension PredicateExpressions.SequenceMaximum: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let elements = try lowering.row(elements)
        return RowExpression("\(elements.text).max()", of: elements) {
            try elements.evaluate($0).max { StoreOrder.compare($0, .less, to: $1) }
        }
    }
}

extension PredicateExpressions.CollectionContainsCollection: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (base, other) = (try lowering.row(base), try lowering.row(other))
        return RowExpression("\(base.text).contains(\(other.text))", of: base, other) {
            let (a, b) = (try base.evaluate($0), try other.evaluate($0))
            if let a = a as? any StringProtocol, let b = b as? any StringProtocol {
                return StorePredicate.StringMatch.contains.matches(String(a), pattern: String(b), sensitivity: .sensitive)
            }
            let wanted = Array(b)
            let elements = Array(a)
            return elements.count >= wanted.count
                && (0...elements.count - wanted.count).contains { start in
                    elements[start...].starts(with: wanted) { StoreOrder.areEqual($0, $1) }
                }
        }
    }
}

extension PredicateExpressions.SequenceStartsWith: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (base, prefix) = (try lowering.row(base), try lowering.row(prefix))
        return RowExpression("\(base.text).starts(with: \(prefix.text))", of: base, prefix) {
            let (a, b) = (try base.evaluate($0), try prefix.evaluate($0))
            if let a = a as? any StringProtocol, let b = b as? any StringProtocol {
                return StorePredicate.StringMatch.hasPrefix.matches(String(a), pattern: String(b), sensitivity: .sensitive)
            }
            return a.starts(with: b) { StoreOrder.areEqual($0, $1) }
        }
    }
}

extension PredicateExpressions.StringContainsRegex: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (subject, regex) = (try lowering.row(subject), try lowering.row(regex))
        return RowExpression("\(subject.text).contains(\(regex.text))", of: subject, regex) {
            try subject.evaluate($0).contains(try regex.evaluate($0).regex)
        }
    }
}

// MARK: Elements

extension PredicateExpressions.CollectionIndexSubscript: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (collection, index) = (try lowering.row(wrapped), try lowering.row(index))
        return RowExpression("\(collection.text)[\(index.text)]", of: collection, index) {
            let (elements, index) = (try collection.evaluate($0), try index.evaluate($0))
            guard elements.startIndex <= index, index < elements.endIndex else { throw MissingValue() }
            return elements[index]
        }
    }
}

extension PredicateExpressions.CollectionRangeSubscript: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (collection, range) = (try lowering.row(wrapped), try lowering.row(range))
        return RowExpression("\(collection.text)[\(range.text)]", of: collection, range) {
            let (elements, range) = (try collection.evaluate($0), try range.evaluate($0))
            guard elements.startIndex <= range.lowerBound, range.upperBound <= elements.endIndex else { throw MissingValue() }
            return elements[range]
        }
    }
}

extension PredicateExpressions.DictionaryKeySubscript: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (values, key) = (try lowering.row(wrapped), try lowering.row(key))
        return RowExpression("\(values.text)[\(key.text)]", of: values, key) { try values.evaluate($0)[key.evaluate($0)] }
    }
}

extension PredicateExpressions.DictionaryKeyDefaultValueSubscript: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (values, key) = (try lowering.row(wrapped), try lowering.row(key))
        let other = try lowering.row(`default`)
        return RowExpression("\(values.text)[\(key.text), default: \(other.text)]", of: values, key, other) {
            try values.evaluate($0)[key.evaluate($0)] ?? other.evaluate($0)
        }
    }
}

// MARK: Ranges

extension PredicateExpressions.Range: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (lower, upper) = (try lowering.row(lower), try lowering.row(upper))
        return RowExpression("\(lower.text)..<\(upper.text)", of: lower, upper) {
            let (a, b) = (try lower.evaluate($0), try upper.evaluate($0))
            guard a <= b, StoreOrder.compare(a, .lessOrEqual, to: b) else { throw MissingValue() }
            return a..<b
        }
    }
}

extension PredicateExpressions.ClosedRange: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (lower, upper) = (try lowering.row(lower), try lowering.row(upper))
        return RowExpression("\(lower.text)...\(upper.text)", of: lower, upper) {
            let (a, b) = (try lower.evaluate($0), try upper.evaluate($0))
            guard a <= b, StoreOrder.compare(a, .lessOrEqual, to: b) else { throw MissingValue() }
            return a...b
        }
    }
}

extension PredicateExpressions.RangeExpressionContains: ComputedExpression {
    func row(_ lowering: inout PredicateLowering) throws -> RowExpression<Output> {
        let (range, element) = (try lowering.row(range), try lowering.row(element))
        return RowExpression("(\(range.text)).contains(\(element.text))", of: range, element) {
            StoreOrder.contains(try range.evaluate($0), try element.evaluate($0))
        }
    }
}
