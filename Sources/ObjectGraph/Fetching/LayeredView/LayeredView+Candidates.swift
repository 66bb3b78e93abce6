import StoreInterface
import StoreModel

/// The objects that a query can select at all. If its condition lists keys, as in a batch of a stream, only those objects are read. If it
/// gives a unique attribute a value, indexes find the objects.
extension LayeredView {
    /// Returns the slots, by page, that have a row in a layer and that the query can select. O(pages changed), or O(keys listed).
    func touchedPages(of query: StoreQuery) -> [PageNumber: UInt64] {
        guard let keys = query.predicate.requiredKeys else { return touchedPages(query.entity) }
        return Self.pages(of: keys).reduce(into: [:]) { pages, page in
            var touched: UInt64 = 0
            for layer in layers { touched |= layer.entity(query.entity)?.page(page.key)?.touched ?? 0 }
            if touched & page.value != 0 { pages[page.key] = touched & page.value }
        }
    }

    /// Returns every object in this view that the query can select, ascending. O(objects of the entity, or keys listed).
    func candidates(of query: StoreQuery) throws -> [ObjectKey] {
        guard let keys = query.predicate.requiredKeys else { return try allKeys(query.entity) }
        return try keys.sorted().filter { try exists(query.entity, $0) }
    }

    /// The largest number of values, and of objects that may have them, for which ``selectedByUniqueValue(_:)`` answers.
    private static let fewCandidates = 64

    /// Returns the keys of all objects that the query selects, ascending. Returns nil if its condition gives no unique attribute a value, or
    /// many values. One look-up per layer and value, and one in the base.
    ///
    /// If a row of some layer sets one of the values of a selected object, the index of that layer finds the object. Otherwise all values
    /// come from the base, which finds the object.
    func selectedByUniqueValue(_ query: StoreQuery) throws -> [ObjectKey]? {
        let entity = query.entity
        // A part that is computed in Swift may throw for any changed object.
        guard !query.predicate.hasEvaluatedParts, let required = query.predicate.uniqueValues(in: schema.entities[entity]),
            required.allSatisfy({ $0.values.count <= Self.fewCandidates })
        else { return nil }
        var found: Set<ObjectKey> = []
        for layer in layers {
            for part in required {
                for value in part.values {
                    found.formUnion(layer.candidates(entity: entity, column: part.column, value: value))
                    guard found.count <= Self.fewCandidates else { return nil }
                }
            }
        }
        found.formUnion(try base.keys(StoreQuery(entity: entity, predicate: .all(required.map(\.condition)))))
        return try found.sorted().filter { try selects(query, $0) }
    }

    private static func pages(of keys: Set<ObjectKey>) -> [PageNumber: UInt64] {
        keys.reduce(into: [:]) { $0[$1.page, default: 0] |= 1 << UInt64($1.slot) }
    }
}

extension StorePredicate {
    /// The keys to which the condition restricts its objects; nil if it lists none.
    var requiredKeys: Set<ObjectKey>? {
        switch form {
        case .keys(let keys): keys
        case .and(let parts): parts.lazy.compactMap(\.requiredKeys).min { $0.count < $1.count }
        default: nil
        }
    }
}

/// A condition that only objects with one of a few values in a column satisfy. Null is not one of them.
private struct RequiredValues {
    let column: ColumnIndex
    let values: Set<Value>
    let condition: StorePredicate
}

extension StorePredicate {
    /// Returns the parts of the condition that require values of all columns of a unique constraint; nil if there is no such constraint.
    fileprivate func uniqueValues(in entity: EntitySchema) -> [RequiredValues]? {
        let required = requiredValues
        if required.isEmpty { return nil }
        if let single = required.first(where: { entity.columns[$0.column].index == .unique }) { return [single] }
        for index in entity.indexes where index.kind == .unique {
            let found = index.columns.compactMap { column in required.first { $0.column == column } }
            if found.count == index.columns.count { return found }
        }
        return nil
    }

    private var requiredValues: [RequiredValues] {
        switch form {
        case .compare(let column, .equal, let value):
            guard let values = value.comparedAsEqual else { return [] }
            return [RequiredValues(column: column, values: values, condition: self)]
        case .isIn(let column, let values):
            return values.contains(.null) ? [] : [RequiredValues(column: column, values: values, condition: self)]
        case .and(let parts): return parts.flatMap(\.requiredValues)
        default: return []
        }
    }
}

extension Value {
    /// The values that a comparison finds equal to this one; nil for null, NaN, and doubles that equal several integers.
    ///
    /// Numbers of different storage classes may compare equal. An unsaved object may have a number of another class than its column, until
    /// a save refuses it.
    fileprivate var comparedAsEqual: Set<Value>? {
        var equal: Set<Value> = [self]
        switch self {
        case .null: return nil
        case .int(let number):
            equal.insert(.double(Double(number)))
            if let unsigned = UInt64(exactly: number) { equal.insert(.uint(unsigned)) }
        case .uint(let number):
            equal.insert(.double(Double(number)))
            if let signed = Int64(exactly: number) { equal.insert(.int(signed)) }
        case .double(let number):
            guard abs(number) < 0x1p53 else { return nil }
            if let signed = Int64(exactly: number) { equal.insert(.int(signed)) }
            if let unsigned = UInt64(exactly: number) { equal.insert(.uint(unsigned)) }
        case .bool, .string, .data, .uuid, .reference: break
        }
        return equal
    }
}
