import StoreInterface
import StoreModel

/// Comparisons of two terms. Equality and order comparisons return conditions that are never nil.
extension PredicateLowering {
    func equal(_ left: PredicateTerm, _ right: PredicateTerm) throws -> StorePredicate {
        switch (left, right) {
        case (.constant(let a), .constant(let b)):
            return .constant(StorePredicate.compare(a, .equal, to: b))
        case (.scalar(let scalar), .constant(let value)), (.constant(let value), .scalar(let scalar)):
            return try equal(scalar, value)
        case (.scalar(let a), .scalar(let b)):
            return try equal(a, b)
        case (.object(let path), .constant(.null)), (.constant(.null), .object(let path)),
            (.objectID(let path), .constant(.null)), (.constant(.null), .objectID(let path)):
            return .negating(try exists(path))
        case (.collection(let collection), .constant(.null)), (.constant(.null), .collection(let collection)):
            // A to-many relationship is never nil itself.
            return .negating(try exists(collection.path))
        case (.objectID(let path), .identities(let ids)), (.identities(let ids), .objectID(let path)):
            return try isOne(path, of: ids)
        case (.truth(let truth), .constant(let value)), (.constant(let value), .truth(let truth)):
            return equal(truth, value)
        default:
            guard let a = try asTruth(left), let b = try asTruth(right) else {
                throw FetchError.unsupportedPredicate(part: "a comparison of \(Self.kind(left)) with \(Self.kind(right))")
            }
            let neither = StorePredicate.all([.negating(a.isDefined), .negating(b.isDefined)])
            return .any([.all([a.isTrue, b.isTrue]), .all([a.isFalse, b.isFalse]), neither])
        }
    }

    private func equal(_ truth: PredicateTruth, _ value: Value) -> StorePredicate {
        switch value {
        case .bool(true): truth.isTrue
        case .bool(false): truth.isFalse
        case .null: .negating(truth.isDefined)
        default: .constant(false)
        }
    }

    private func equal(_ scalar: PredicateScalar, _ value: Value) throws -> StorePredicate {
        if value.isNull {
            return scalar.fallback == nil ? .negating(try isPresent(scalar)) : .constant(false)
        }
        return try compare(scalar, .equal, to: value)
    }

    private func equal(_ a: PredicateScalar, _ b: PredicateScalar) throws -> StorePredicate {
        let both = try compare(a, .equal, to: b)
        guard !a.path.isCertain else { return both }
        return .any([.negating(try exists(a.path)), both])
    }

    /// Returns an order comparison.
    ///
    /// - Parameter comparison: An order, never `equal` or `notEqual`.
    func ordered(
        _ left: PredicateTerm, _ comparison: StorePredicate.Comparison, to right: PredicateTerm
    ) throws -> StorePredicate {
        switch (left, right) {
        case (.constant(let a), .constant(let b)): return .constant(StorePredicate.compare(a, comparison, to: b))
        case (.scalar(let scalar), .constant(let value)): return try compare(scalar, comparison, to: value)
        case (.constant(let value), .scalar(let scalar)): return try compare(scalar, comparison.flipped, to: value)
        case (.scalar(let a), .scalar(let b)): return try compare(a, comparison, to: b)
        default:
            throw FetchError.unsupportedPredicate(part: "a comparison of \(Self.kind(left)) with \(Self.kind(right))")
        }
    }

    /// Returns a comparison that is false if the scalar is nil and has no fallback.
    private func compare(
        _ scalar: PredicateScalar, _ comparison: StorePredicate.Comparison, to value: Value
    ) throws -> StorePredicate {
        let value = asDecimal(value, scalar)
        if comparison != .equal, comparison != .notEqual { try checkOrder(of: scalar, and: value) }
        let leaf: StorePredicate
        switch scalar.source {
        case .column(let column, _):
            leaf = .compare(column, comparison, to: value)
        case .count(let relation, let condition):
            guard case .int(let number) = value else { return .constant(false) }
            leaf = .toManyCount(relation, where: condition, comparison, to: Int(number))
        }
        let present = try along(scalar.path, leaf)
        guard let fallback = scalar.fallback, StorePredicate.compare(fallback, comparison, to: value) else { return present }
        return .any([present, .negating(try isPresent(scalar))])
    }

    /// Returns what the bytes of a scalar are; nil if it is no column of bytes.
    private func content(of scalar: PredicateScalar) -> AttributeContent? {
        guard case .column(let column, _) = scalar.source else { return nil }
        let entity = model.entities[scalar.path.entity]
        return entity.columns[column].type == .data ? entity.form(of: column, in: model).content : nil
    }

    /// Returns whether a scalar is a column of decimals, which stores have as bytes.
    private func isDecimal(_ scalar: PredicateScalar) -> Bool { content(of: scalar) == .decimal }

    /// Returns a number as a column of decimals stores it, for such a column. Conditions by name have numbers of any type.
    private func asDecimal(_ value: Value, _ scalar: PredicateScalar) -> Value {
        isDecimal(scalar) ? value.asDecimal ?? value : value
    }

    /// Throws if a constant has another storage class than the values of a column. Values of two classes have an order, so that the
    /// comparison would select every object or none.
    private func checkOrder(of scalar: PredicateScalar, and value: Value) throws {
        guard case .column(let column, _) = scalar.source else { return }
        let entity = model.entities[scalar.path.entity]
        let schema = entity.columns[column]
        let isOrdered =
            switch value {
            case .null: true
            // Every comparison of order with it is false.
            case .double(let number) where number.isNaN: true
            case .int, .uint, .double: schema.type.isFloating || schema.type.isSigned || schema.type == .uint64
            default: schema.type.holds(value)
            }
        guard !isOrdered else { return }
        let type = isDecimal(scalar) ? "decimal" : schema.type.rawValue
        throw FetchError.unsupportedPredicate(
            part: "\(value) instead of a value of the type \(type) in a comparison of \(entity.name).\(schema.name)")
    }

    private func compare(
        _ a: PredicateScalar, _ comparison: StorePredicate.Comparison, to b: PredicateScalar
    ) throws -> StorePredicate {
        guard a.path == b.path, a.fallback == nil, b.fallback == nil, case .column(let left, _) = a.source,
            case .column(let right, _) = b.source
        else {
            let (left, right) = (name(of: a), name(of: b))
            throw FetchError.unsupportedPredicate(part: "a comparison of \(left) with \(right) of two objects")
        }
        // Values of a `Codable` type may be equal although their bytes differ, so Swift compares them.
        for scalar in [a, b] {
            if let content = content(of: scalar), content == .encoded || content == .elements {
                throw FetchError.unsupportedPredicate(part: "the stored bytes of \(name(of: scalar)) in a comparison")
            }
        }
        return try along(a.path, .compareColumns(left, comparison, to: right))
    }

    private func name(of scalar: PredicateScalar) -> String {
        guard case .column(let column, _) = scalar.source else { return names(of: scalar.path, "count") }
        return names(of: scalar.path, model.entities[scalar.path.entity].columns[column].name)
    }

    // MARK: Membership

    /// Returns a number as the column of a scalar stores it, because stores look values up by their class. A number that the column
    /// cannot hold is returned as it is, and equals no value.
    private func asStored(_ value: Value, _ scalar: PredicateScalar) -> Value {
        guard case .column(let column, _) = scalar.source else { return value }
        let value = asDecimal(value, scalar)
        let number: Value? =
            switch model.entities[scalar.path.entity].columns[column].type {
            case .float, .double, .date:
                switch value {
                case .int(let number): Double(exactly: number).map(Value.double)
                case .uint(let number): Double(exactly: number).map(Value.double)
                default: nil
                }
            case .uint64:
                switch value {
                case .int(let number): UInt64(exactly: number).map(Value.uint)
                case .double(let number): UInt64(exactly: number).map(Value.uint)
                default: nil
                }
            default:
                switch value {
                case .uint(let number): Int64(exactly: number).map(Value.int)
                case .double(let number): Int64(exactly: number).map(Value.int)
                default: nil
                }
            }
        return number ?? value
    }

    func isIn(_ element: PredicateTerm, _ sequence: PredicateTerm) throws -> StorePredicate {
        switch (element, sequence) {
        case (.constant(let value), .constants(let values)):
            return .constant(values.contains { StorePredicate.compare(value, .equal, to: $0) })
        case (.scalar(let scalar), .constants(let values)):
            let set = Set(values.map { asStored($0, scalar) })
            let present = try on(scalar, { .isIn($0, set.subtracting([.null])) }, fallback: { set.contains($0) })
            guard scalar.fallback == nil, set.contains(.null) else { return present }
            return .any([present, .negating(try isPresent(scalar))])
        case (.objectID(let path), .identities(let ids)):
            return try isOne(path, of: ids)
        case (.objectID, .constants(let values)) where values.isEmpty:
            return .constant(false)
        default:
            throw FetchError.unsupportedPredicate(
                part: "contains(_:) of \(Self.kind(element)) in \(Self.kind(sequence))")
        }
    }

    /// Returns a condition that the object at the end of a path has one of the ids. Ids of another entity or store select nothing.
    private func isOne(_ path: PredicatePath, of ids: [ObjectID]) throws -> StorePredicate {
        let keys = request.keys(ids, of: path.entity)
        guard !keys.isEmpty else { return .constant(false) }
        guard let last = path.steps.last, path.casts[path.steps.count] == nil else { return try along(path, .keys(keys)) }
        var prefix = path
        prefix.steps.removeLast()
        if keys.count == 1, let key = keys.first { return try along(prefix, .compare(last, .equal, to: .reference(key))) }
        return try along(prefix, .isIn(last, Set(keys.map { .reference($0) })))
    }

    func isWithin(_ element: PredicateTerm, _ range: PredicateRange) throws -> StorePredicate {
        var parts: [StorePredicate] = []
        if let lower = range.lower { parts.append(try ordered(element, .greaterOrEqual, to: .constant(lower))) }
        if let upper = range.upper { parts.append(try ordered(element, range.upperComparison, to: .constant(upper))) }
        return .all(parts)
    }

    // MARK: Strings

    func string(
        _ base: PredicateTerm, _ match: StorePredicate.StringMatch, pattern: PredicateTerm, named name: String
    ) throws -> StorePredicate {
        guard case .constant(.string(let pattern)) = pattern else {
            throw FetchError.unsupportedPredicate(part: "\(name) with something other than a captured string")
        }
        switch base {
        case .constant(.string(let text)):
            return .constant(match.matches(text, pattern: pattern, sensitivity: .sensitive))
        case .scalar(let scalar):
            return try on(scalar, { .string($0, match, pattern: pattern, sensitivity: .sensitive) }) { fallback in
                if case .string(let text) = fallback {
                    match.matches(text, pattern: pattern, sensitivity: .sensitive)
                } else {
                    false
                }
            }
        default:
            throw FetchError.unsupportedPredicate(part: "\(name) of \(Self.kind(base))")
        }
    }

    /// Returns a description of a term for error messages.
    static func kind(_ term: PredicateTerm) -> String {
        switch term {
        case .truth: "a condition"
        case .constant: "a captured value"
        case .constants: "captured values"
        case .range: "a range"
        case .identities: "an object's id"
        case .object: "an object"
        case .objectID: "a fetched object's id"
        case .scalar: "a property"
        case .collection: "a to-many relationship"
        }
    }
}
