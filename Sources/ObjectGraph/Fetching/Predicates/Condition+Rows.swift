import StoreInterface
import StoreModel

/// Conditions on the rows of a result, by the names of its columns, as used in `having`.
extension Condition {
    /// Throws for a name that is not a column, and for conditions that apply only to objects.
    func checkNames(_ names: Set<String>, _ entity: String) throws {
        switch form {
        case .always: break
        case .tooDeep: try checkDepth(entity)
        case .all(let parts), .any(let parts): for part in parts { try part.checkNames(names, entity) }
        case .not(let part): try part.checkNames(names, entity)
        case .compare(let name, _, _), .isNil(let name), .isIn(let name, _), .between(let name, _, _), .string(let name, _, _, _):
            guard names.contains(name) else { throw FetchError.unknownProperty(entity: entity, property: name) }
        case .ids, .related, .relatedCount, .isKind:
            throw FetchError.unsupportedPredicate(part: "a condition on objects in having")
        }
    }

    /// Returns the condition with other constants. ``matches(_:)`` compares them with values as they are.
    ///
    /// - Parameter replacement: Returns the constant to compare with a column, by the column's name and the constant so far.
    func replacingConstants(_ replacement: (String, Value) -> Value) -> Condition {
        switch form {
        case .all(let parts): .all(parts.map { $0.replacingConstants(replacement) })
        case .any(let parts): .any(parts.map { $0.replacingConstants(replacement) })
        case .not(let part): .not(part.replacingConstants(replacement))
        case .compare(let name, let comparison, let constant): .compare(name, comparison, to: replacement(name, constant))
        case .isIn(let name, let values): .isIn(name, values.map { replacement(name, $0) })
        case .between(let name, let lower, let upper):
            .between(name, replacement(name, lower), and: replacement(name, upper))
        case .always, .isNil, .string, .ids, .related, .relatedCount, .isKind, .tooDeep: self
        }
    }

    /// Returns whether a row satisfies the condition. The result is never unknown, as for other predicates.
    ///
    /// - Precondition: ``checkNames(_:_:)`` has passed.
    func matches(_ value: (String) -> Value) -> Bool {
        switch form {
        case .always: true
        case .all(let parts): parts.allSatisfy { $0.matches(value) }
        case .any(let parts): parts.contains { $0.matches(value) }
        case .not(let part): !part.matches(value)
        case .compare(let name, let comparison, let constant): StorePredicate.compare(value(name), comparison, to: constant)
        case .isNil(let name): value(name).isNull
        case .isIn(let name, let values): values.contains { StorePredicate.compare(value(name), .equal, to: $0) }
        case .between(let name, let lower, let upper):
            StorePredicate.compare(value(name), .greaterOrEqual, to: lower)
                && StorePredicate.compare(value(name), .lessOrEqual, to: upper)
        case .string(let name, let match, let pattern, let sensitivity):
            if case .string(let text) = value(name) {
                match.matches(text, pattern: pattern, sensitivity: sensitivity)
            } else {
                false
            }
        case .ids, .related, .relatedCount, .isKind, .tooDeep: false
        }
    }
}
