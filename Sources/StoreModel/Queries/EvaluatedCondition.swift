/// A condition on one object that is computed in Swift, such as `plays + 1 > rank`.
///
/// Stores do not look into it. They find candidates by the rest of a condition (see ``StorePredicate/withoutEvaluated``)
/// and check each of them with ``StorePredicate/matches(_:key:in:)``.
public struct EvaluatedCondition: Sendable, Hashable, CustomStringConvertible {
    /// The computation. It is called on any thread, several at once.
    public typealias Evaluation = @Sendable (ObjectKey, any ObjectReader) throws -> Bool

    /// The condition as text, for people.
    public let description: String
    /// Conditions that follow each relationship that the computation follows. Changes of objects at their ends may change the result.
    public let follows: [StorePredicate]
    /// The values that the computation uses, because the text shortens them or leaves them out.
    package var constants: [CapturedValue] = []
    private let evaluation: Closure

    /// Compared by identity, because closures have no equality.
    private final class Closure: Sendable {
        let call: Evaluation

        init(_ call: @escaping Evaluation) { self.call = call }
    }

    /// Creates a condition from its text, the relationships that it follows, and its computation.
    public init(_ description: String, follows: [StorePredicate] = [], evaluation: @escaping Evaluation) {
        self.description = description
        self.follows = follows
        self.evaluation = Closure(evaluation)
    }

    /// Returns whether an object, which must exist, satisfies the condition.
    public func matches(_ key: ObjectKey, in reader: any ObjectReader) throws -> Bool { try evaluation.call(key, reader) }

    /// Returns whether two conditions have the same computation.
    public static func == (a: EvaluatedCondition, b: EvaluatedCondition) -> Bool { a.evaluation === b.evaluation }

    /// Hashes the identity of the computation.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(evaluation)) }
}

extension StorePredicate {
    /// The condition without its parts of the form ``evaluated(_:)``: it selects the same objects and possibly more.
    public var withoutEvaluated: StorePredicate { hasEvaluatedParts ? bounded(isUpper: true) : self }

    /// A Boolean value that indicates whether a part of the condition has the form ``evaluated(_:)``.
    public var hasEvaluatedParts: Bool {
        switch form {
        case .evaluated: true
        case .and(let parts), .or(let parts): parts.contains(where: \.hasEvaluatedParts)
        case .not(let part), .toOne(_, let part), .toMany(_, _, let part), .toManyCount(_, let part, _, _): part.hasEvaluatedParts
        default: false
        }
    }

    /// The condition with `true` in place of its parts of the form ``evaluated(_:)``, for comparing it with others.
    package var withEvaluatedPartsTrue: StorePredicate {
        guard hasEvaluatedParts else { return self }
        switch form {
        case .evaluated: return .constant(true)
        case .and(let parts): return .and(parts.map(\.withEvaluatedPartsTrue))
        case .or(let parts): return .or(parts.map(\.withEvaluatedPartsTrue))
        case .not(let part): return .not(part.withEvaluatedPartsTrue)
        case .toOne(let column, let part): return .toOne(column, part.withEvaluatedPartsTrue)
        case .toMany(let relation, let quantifier, let part):
            return .toMany(relation, quantifier, where: part.withEvaluatedPartsTrue)
        case .toManyCount(let relation, let part, let comparison, let count):
            return .toManyCount(relation, where: part.withEvaluatedPartsTrue, comparison, to: count)
        default: return self
        }
    }

    /// The parts that are computed in Swift, in order.
    package var evaluatedParts: [EvaluatedCondition] {
        switch form {
        case .evaluated(let condition): [condition]
        case .and(let parts), .or(let parts): parts.flatMap(\.evaluatedParts)
        case .not(let part), .toOne(_, let part), .toMany(_, _, let part), .toManyCount(_, let part, _, _): part.evaluatedParts
        default: []
        }
    }

    /// Replaces computed parts so that the condition selects more objects, or fewer.
    private func bounded(isUpper: Bool) -> StorePredicate {
        guard hasEvaluatedParts else { return self }
        switch form {
        case .and(let parts): return .and(parts.map { $0.bounded(isUpper: isUpper) })
        case .or(let parts): return .or(parts.map { $0.bounded(isUpper: isUpper) })
        case .not(let part): return .not(part.bounded(isUpper: !isUpper))
        case .toOne(let column, let part): return .toOne(column, part.bounded(isUpper: isUpper))
        case .toMany(let relation, .none, let part): return .toMany(relation, .none, where: part.bounded(isUpper: !isUpper))
        case .toMany(let relation, let quantifier, let part):
            return .toMany(relation, quantifier, where: part.bounded(isUpper: isUpper))
        default: return .constant(isUpper)
        }
    }
}
