import StoreInterface
import StoreModel

/// The meaning of a part of a predicate, with positions of columns instead of key paths.
enum PredicateTerm {
    case truth(PredicateTruth)
    case constant(Value)
    case constants([Value])
    case range(PredicateRange)
    case identities([ObjectID])
    case object(PredicatePath)
    /// The id of the object at the end of a path.
    case objectID(PredicatePath)
    case scalar(PredicateScalar)
    case collection(PredicateCollection)
}

extension PredicateTerm {
    /// Whether the term is a value that is nil wherever another term is nil, because it is read through that term.
    func isNil(where base: PredicateTerm) -> Bool {
        switch (base, self) {
        case (.scalar(let base), .scalar(let value)):
            base.path == value.path && base.source == value.source && value.fallback == nil
        case (.object(let path), _), (.objectID(let path), _):
            self.path?.leads(through: path) ?? false
        case (.collection(let collection), _):
            path?.leads(through: collection.path) ?? false
        // Captured values that are not nil.
        case (.constant, _), (.constants, _), (.range, _), (.identities, _): true
        default: false
        }
    }

    /// The path to a value without a fallback.
    private var path: PredicatePath? {
        switch self {
        case .object(let path), .objectID(let path): path
        case .scalar(let scalar): scalar.fallback == nil ? scalar.path : nil
        case .collection(let collection): collection.path
        case .truth, .constant, .constants, .range, .identities: nil
        }
    }
}

/// A path through to-one relationships from the object that a condition tests.
struct PredicatePath: Equatable {
    /// The number of collections that enclose the condition. In an inner scope, a path of an outer scope can only be computed.
    var scope: Int
    /// The entity at the end of the path.
    var entity: EntityIndex
    /// The reference columns, in order.
    var steps: [ColumnIndex] = []
    /// Conditions on the types of objects on the path, by the number of steps that lead to the object: `as? BusinessTrip`.
    var casts: [Int: StorePredicate] = [:]

    /// Whether there always is an object at the end.
    var isCertain: Bool { steps.isEmpty && casts.isEmpty }

    /// Whether there is an object at the end only if there is one at the end of another path.
    func leads(through other: PredicatePath) -> Bool {
        scope == other.scope && steps.starts(with: other.steps) && other.casts.allSatisfy { casts[$0.key] == $0.value }
    }

    func appending(_ column: ColumnIndex, entity: EntityIndex) -> PredicatePath {
        PredicatePath(scope: scope, entity: entity, steps: steps + [column], casts: casts)
    }

    /// Returns the path to the object at the end if it satisfies a condition on its type.
    func casting(to selection: StorePredicate) -> PredicatePath {
        var path = self
        path.casts[steps.count] = .all([path.casts[steps.count], selection].compactMap(\.self))
        return path
    }
}

/// A value at the end of a path: a column, or a count of related objects.
struct PredicateScalar {
    enum Source: Equatable {
        case column(ColumnIndex, isOptional: Bool)
        case count(Relation, StorePredicate)
    }

    var path: PredicatePath
    var source: Source
    /// The replacement for nil in a `??` expression.
    var fallback: Value?

    /// Whether the value can be nil in Swift.
    var mayBeNil: Bool {
        if !path.isCertain { return true }
        if case .column(_, let isOptional) = source { return isOptional }
        return false
    }
}

/// The destinations of a to-many relationship that satisfy a condition.
struct PredicateCollection {
    var path: PredicatePath
    var relation: Relation
    var condition: StorePredicate = .constant(true)
}

/// A condition that may itself be nil, such as `$0.title?.contains("x")`.
struct PredicateTruth {
    var isTrue: StorePredicate
    var isDefined: StorePredicate = .constant(true)

    init(_ isTrue: StorePredicate, isDefined: StorePredicate = .constant(true)) {
        self.isTrue = isTrue
        self.isDefined = isDefined
    }

    var isFalse: StorePredicate { .all([isDefined, .negating(isTrue)]) }
}

struct PredicateRange {
    var lower: Value?
    var upper: Value?
    /// `lessOrEqual` or `less`.
    var upperComparison: StorePredicate.Comparison = .lessOrEqual
}

extension StorePredicate {
    /// Returns `and`, with constants folded and nested conjunctions flattened.
    static func all(_ parts: [StorePredicate]) -> StorePredicate {
        var kept: [StorePredicate] = []
        for part in parts {
            switch part.form {
            case .constant(true): continue
            case .constant(false): return .constant(false)
            case .and(let inner): kept.append(contentsOf: inner)
            default: kept.append(part)
            }
        }
        return kept.count == 1 ? kept[0] : (kept.isEmpty ? .constant(true) : .and(kept))
    }

    /// Returns `or`, with constants folded and nested disjunctions flattened.
    static func any(_ parts: [StorePredicate]) -> StorePredicate {
        var kept: [StorePredicate] = []
        for part in parts {
            switch part.form {
            case .constant(false): continue
            case .constant(true): return .constant(true)
            case .or(let inner): kept.append(contentsOf: inner)
            default: kept.append(part)
            }
        }
        return kept.count == 1 ? kept[0] : (kept.isEmpty ? .constant(false) : .or(kept))
    }

    /// Returns `not`, replaced by the exact opposite for conditions that have one.
    static func negating(_ part: StorePredicate) -> StorePredicate {
        switch part.form {
        case .constant(let value): .constant(!value)
        case .not(let inner): inner
        case .compare(let column, .equal, let value): .compare(column, .notEqual, to: value)
        case .compare(let column, .notEqual, let value): .compare(column, .equal, to: value)
        case .toMany(let relation, .any, let inner): .toMany(relation, .none, where: inner)
        case .toMany(let relation, .none, let inner): .toMany(relation, .any, where: inner)
        default: .not(part)
        }
    }
}

extension StorePredicate.Comparison {
    /// The comparison for exchanged operands.
    var flipped: StorePredicate.Comparison {
        switch self {
        case .equal, .notEqual: self
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        }
    }
}
