extension StorePredicate {
    /// Returns whether an object, read through `reader`, satisfies the condition. The object must exist.
    ///
    /// This is the reference semantics: every store's native evaluation is tested against it.
    public func matches(_ entity: EntityIndex, key: ObjectKey, in reader: some ObjectReader) throws -> Bool {
        switch form {
        case .constant(let value):
            return value
        case .compare(let column, let comparison, let value):
            return Self.compare(try reader.value(entity, key: key, column: column) ?? .null, comparison, to: value)
        case .compareColumns(let left, let comparison, let right):
            let other = try reader.value(entity, key: key, column: right) ?? .null
            return Self.compare(try reader.value(entity, key: key, column: left) ?? .null, comparison, to: other)
        case .isIn(let column, let values):
            return values.contains(try reader.value(entity, key: key, column: column) ?? .null)
        case .string(let column, let match, let pattern, let sensitivity):
            guard case .string(let text)? = try reader.value(entity, key: key, column: column) else { return false }
            return match.matches(text, pattern: pattern, sensitivity: sensitivity)
        case .keys(let keys):
            return keys.contains(key)
        case .and(let parts):
            return try parts.allSatisfy { try $0.matches(entity, key: key, in: reader) }
        case .or(let parts):
            return try parts.contains { try $0.matches(entity, key: key, in: reader) }
        case .not(let part):
            return try !part.matches(entity, key: key, in: reader)
        case .toOne(let column, let part):
            guard let destination = reader.schema.entities[entity].columns[column].destination,
                let other = try reader.value(entity, key: key, column: column)?.referenceKey,
                try reader.exists(destination, other)
            else { return false }
            return try part.matches(destination, key: other, in: reader)
        case .toMany(let relation, let quantifier, let part):
            let related = try reader.related(relation, to: key)
            switch quantifier {
            case .any: return try related.contains { try part.matches(relation.entity, key: $0, in: reader) }
            case .all: return try related.allSatisfy { try part.matches(relation.entity, key: $0, in: reader) }
            case .none: return try !related.contains { try part.matches(relation.entity, key: $0, in: reader) }
            }
        case .toManyCount(let relation, let part, let comparison, let number):
            var count = try reader.related(relation, to: key)
            if part != .constant(true) { count = try count.filter { try part.matches(relation.entity, key: $0, in: reader) } }
            return Self.compare(.int(Int64(count.count)), comparison, to: .int(Int64(number)))
        case .evaluated(let condition):
            return try condition.matches(key, in: reader)
        case .tooDeep:
            try checkDepth()
            return false
        }
    }

    /// Compares two values with a two-valued result. NaN equals nothing and has no order, as in Swift.
    public static func compare(_ a: Value, _ comparison: Comparison, to b: Value) -> Bool {
        if case .double(let x) = a, x.isNaN { return comparison == .notEqual }
        if case .double(let y) = b, y.isNaN { return comparison == .notEqual }
        switch comparison {
        case .equal: return a.order(b) == 0
        case .notEqual: return a.order(b) != 0
        default: break
        }
        if a.isNull || b.isNull { return false }
        let order = a.order(b)
        return switch comparison {
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        default: order >= 0
        }
    }

    /// A Boolean value that indicates whether the condition needs a reader of objects: it reads objects other than the one it is
    /// evaluated for, or a part of it is computed in Swift.
    public var traversesRelationships: Bool {
        switch form {
        case .toOne, .toMany, .toManyCount, .evaluated: true
        case .and(let parts), .or(let parts): parts.contains(where: \.traversesRelationships)
        case .not(let part): part.traversesRelationships
        default: false
        }
    }
}

extension StorePredicate.StringMatch {
    /// Compares by UTF-8 bytes (code points), not by canonical equivalence.
    public func matches(_ text: String, pattern: String, sensitivity: StorePredicate.CaseSensitivity) -> Bool {
        if sensitivity == .insensitive {
            return matches(text.lowercased(), pattern: pattern.lowercased(), sensitivity: .sensitive)
        }
        let text = text.utf8
        let pattern = pattern.utf8
        switch self {
        case .equals: return text.elementsEqual(pattern)
        case .hasPrefix: return text.starts(with: pattern)
        case .hasSuffix: return text.count >= pattern.count && text.suffix(pattern.count).elementsEqual(pattern)
        case .contains:
            if pattern.isEmpty { return true }
            guard text.count >= pattern.count, let first = pattern.first else { return false }
            var rest = text[...]
            while let start = rest.firstIndex(of: first) {
                if rest[start...].starts(with: pattern) { return true }
                rest = rest[rest.index(after: start)...]
            }
            return false
        }
    }
}
