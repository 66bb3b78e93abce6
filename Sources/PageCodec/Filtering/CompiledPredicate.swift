import StoreInterface
import StoreModel

/// A condition prepared for pages. It is created once per scan and returns a mask per page.
///
/// The results equal those of `StorePredicate.matches(_:key:in:)`. A page cannot evaluate the parts of a condition that
/// read other objects. In that case the mask is the smallest superset that the rest of the condition allows, and ``isExact``
/// is false.
public struct CompiledPredicate: Sendable {
    private let root: PredicateNode
    /// A Boolean value that indicates whether the mask is exact. If false, the caller checks the objects of the mask with the
    /// whole condition.
    public let isExact: Bool

    /// Prepares a condition. O(size of the condition).
    public init(_ predicate: StorePredicate) {
        root = PredicateNode(predicate, bound: .upper)
        isExact = !predicate.traversesRelationships
    }

    /// Returns the objects of a page that satisfy the condition. A number or a Bool costs about 1 ns per row. Strings are
    /// compared in place.
    public func mask(of page: ObjectPage, number: PageNumber) throws(PageError) -> UInt64 {
        try root.mask(PredicateSubject(page: page, number: number), page.presence)
    }
}

/// The page that a condition is evaluated for.
struct PredicateSubject {
    var page: ObjectPage
    var number: PageNumber
}

/// A condition in the form in which pages evaluate it.
enum PredicateNode: Sendable {
    case constant(Bool)
    case compare(ColumnComparison)
    case compareColumns(ColumnIndex, StorePredicate.Comparison, ColumnIndex)
    case isIn(ColumnMembership)
    case string(StringCondition)
    /// The selected slots of each page.
    case keys([PageNumber: UInt64])
    case and([PredicateNode])
    case or([PredicateNode])
    indirect case not(PredicateNode)

    /// The result for a condition that a page cannot evaluate: all objects that may satisfy it, or only those that certainly
    /// do.
    enum Bound {
        case upper, lower
        var opposite: Bound { self == .upper ? .lower : .upper }
    }

    init(_ predicate: StorePredicate, bound: Bound) {
        switch predicate.form {
        case .constant(let value): self = .constant(value)
        case .compare(let column, let comparison, let value):
            self = .compare(ColumnComparison(column: column, comparison: comparison, value: value))
        case .compareColumns(let left, let comparison, let right): self = .compareColumns(left, comparison, right)
        case .isIn(let column, let values): self = .isIn(ColumnMembership(column: column, values: values))
        case .string(let column, let match, let pattern, let sensitivity):
            self = .string(StringCondition(column: column, match: match, pattern: pattern, sensitivity: sensitivity))
        case .keys(let keys):
            var pages: [PageNumber: UInt64] = [:]
            for key in keys { pages[key.page, default: 0] |= 1 << UInt64(key.slot) }
            self = .keys(pages)
        case .and(let parts): self = .and(parts.map { PredicateNode($0, bound: bound) })
        case .or(let parts): self = .or(parts.map { PredicateNode($0, bound: bound) })
        case .not(let part): self = .not(PredicateNode(part, bound: bound.opposite))
        case .toOne, .toMany, .toManyCount, .evaluated, .tooDeep: self = .constant(bound == .upper)
        }
    }

    /// Returns the candidates that satisfy the condition.
    func mask(_ subject: PredicateSubject, _ candidates: UInt64) throws(PageError) -> UInt64 {
        switch self {
        case .constant(let value): return value ? candidates : 0
        case .compare(let condition): return try condition.mask(subject.page, candidates)
        case .compareColumns(let left, let comparison, let right):
            var result: UInt64 = 0
            for slot in SlotIterator(candidates) {
                let value = try subject.page.value(slot, left)
                if StorePredicate.compare(value, comparison, to: try subject.page.value(slot, right)) {
                    result |= 1 << UInt64(slot)
                }
            }
            return result
        case .isIn(let condition): return try condition.mask(subject.page, candidates)
        case .string(let condition): return try condition.mask(subject.page, candidates)
        case .keys(let pages): return candidates & (pages[subject.number] ?? 0)
        case .and(let parts):
            var rest = candidates
            for part in parts.indices where rest != 0 { rest = try parts[part].mask(subject, rest) }
            return rest
        case .or(let parts):
            var rest = candidates
            for part in parts where rest != 0 { rest &= ~(try part.mask(subject, rest)) }
            return candidates & ~rest
        case .not(let part): return candidates & ~(try part.mask(subject, candidates))
        }
    }
}
