import StoreInterface
import StoreModel

/// A captured value that is not an attribute value but has a meaning in a predicate.
protocol PredicateConstant {
    /// The value as a term; nil if an element has a type that columns cannot store.
    var predicateTerm: PredicateTerm? { get }
    /// The type of the wrapped value, of the elements or of the bounds.
    static var valueType: Any.Type { get }
}

extension PredicateTerm {
    /// Creates a term from a captured value; nil if columns cannot store such a value.
    init?<T>(captured value: T) {
        // Its bytes do not decide whether it is equal to another, but Swift does, for each object.
        if value is any CodableAttribute { return nil }
        if let id = value as? any ObjectIDConvertible {
            self = .identities([id.objectID])
        } else if let constant = value as? any PredicateConstant {
            guard let term = constant.predicateTerm else { return nil }
            self = term
        } else if let attribute = value as? any AttributeValue {
            self = .constant(attribute.storeValue)
        } else if let text = value as? any StringProtocol {
            self = .constant(.string(String(text)))
        } else if let raw = value as? any RawRepresentable {
            // Models store such a value by its raw value.
            guard let stored = raw.rawValue as? any AttributeValue else { return nil }
            self = .constant(stored.storeValue)
        } else {
            return nil
        }
    }

    /// Creates a term from elements that are all ids, or all attribute values.
    fileprivate init?(elements: some Sequence) {
        var ids: [ObjectID] = []
        var values: [Value] = []
        for element in elements {
            if element is any CodableAttribute { return nil }
            if let id = element as? any ObjectIDConvertible {
                ids.append(id.objectID)
            } else if let value = element as? any AttributeValue ?? (element as? any RawRepresentable)?.rawValue
                as? any AttributeValue
            {
                values.append(value.storeValue)
            } else {
                return nil
            }
        }
        if !ids.isEmpty {
            guard values.isEmpty else { return nil }
            self = .identities(ids)
        } else {
            self = .constants(values)
        }
    }
}

extension Optional: PredicateConstant {
    static var valueType: Any.Type { Wrapped.self }
    var predicateTerm: PredicateTerm? {
        switch self {
        case nil: .constant(.null)
        case _ as any CodableAttribute: nil
        case let id as any ObjectIDConvertible: .identities([id.objectID])
        case let value as any AttributeValue: .constant(value.storeValue)
        case let raw as any RawRepresentable: (raw.rawValue as? any AttributeValue).map { .constant($0.storeValue) }
        // The wrapped value, because the optional itself is such a constant, too.
        case let wrapped?: (wrapped as? any PredicateConstant)?.predicateTerm
        }
    }
}

extension Array: PredicateConstant {
    static var valueType: Any.Type { Element.self }
    var predicateTerm: PredicateTerm? { PredicateTerm(elements: self) }
}

extension ArraySlice: PredicateConstant {
    static var valueType: Any.Type { Element.self }
    var predicateTerm: PredicateTerm? { PredicateTerm(elements: self) }
}

extension Set: PredicateConstant {
    static var valueType: Any.Type { Element.self }
    var predicateTerm: PredicateTerm? { PredicateTerm(elements: self) }
}

extension ClosedRange: PredicateConstant {
    static var valueType: Any.Type { Bound.self }
    var predicateTerm: PredicateTerm? {
        guard let lower = lowerBound as? any AttributeValue, let upper = upperBound as? any AttributeValue else { return nil }
        return .range(PredicateRange(lower: lower.storeValue, upper: upper.storeValue))
    }
}

extension Range: PredicateConstant {
    static var valueType: Any.Type { Bound.self }
    var predicateTerm: PredicateTerm? {
        guard let lower = lowerBound as? any AttributeValue, let upper = upperBound as? any AttributeValue else { return nil }
        return .range(PredicateRange(lower: lower.storeValue, upper: upper.storeValue, upperComparison: .less))
    }
}

extension PartialRangeFrom: PredicateConstant {
    static var valueType: Any.Type { Bound.self }
    var predicateTerm: PredicateTerm? {
        (lowerBound as? any AttributeValue).map { .range(PredicateRange(lower: $0.storeValue)) }
    }
}

extension PartialRangeThrough: PredicateConstant {
    static var valueType: Any.Type { Bound.self }
    var predicateTerm: PredicateTerm? {
        (upperBound as? any AttributeValue).map { .range(PredicateRange(upper: $0.storeValue)) }
    }
}

extension PartialRangeUpTo: PredicateConstant {
    static var valueType: Any.Type { Bound.self }
    var predicateTerm: PredicateTerm? {
        (upperBound as? any AttributeValue).map { .range(PredicateRange(upper: $0.storeValue, upperComparison: .less)) }
    }
}
