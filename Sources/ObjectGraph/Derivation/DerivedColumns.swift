import StoreInterface
import StoreModel

/// The derived columns of a schema whose values each save keeps.
final class DerivedColumns: Sendable {
    /// One derived column.
    struct Column: Sendable {
        var entity: EntityIndex
        var column: ColumnIndex
        var derivation: ColumnDerivation
        var type: ColumnType
        /// The value if there is nothing to derive one from.
        var missing: Value
        /// The entities of the objects along the path, beginning with ``entity``; the last one has the value.
        var pathEntities: [EntityIndex]
        /// The entity and column of the property in messages.
        var name: String

        /// Whether a change of one related object changes the value by a difference that needs no other object.
        var isSummable: Bool {
            derivation.function == .count || derivation.function == .sum && type == .int64
        }
    }

    let columns: [Column]
    /// The derived columns, by entity.
    let sets: [ColumnSet]

    /// Returns nil if no column is derived.
    ///
    /// - Parameter pending: Whether to take the columns whose existing values are not computed yet, instead of the others.
    init?(_ schema: StoreSchema, pending: Bool = false) {
        var columns: [Column] = []
        var sets = schema.entities.map { _ in ColumnSet() }
        for (entity, definition) in schema.entities.enumerated(as: EntityIndex.self) {
            for (number, column) in definition.columns.enumerated(as: ColumnIndex.self) {
                guard let derivation = column.derivation, derivation.isPending == pending else { continue }
                sets[entity].insert(number)
                var entities = [entity]
                for reference in derivation.path {
                    entities.append(schema.entities[entities[entities.count - 1]].columns[reference].destination ?? entity)
                }
                let missing =
                    switch derivation.function {
                    case .count, .sum: Value.zero(of: column.type)
                    default: column.isOptional ? Value.null : column.initialValue
                    }
                columns.append(
                    Column(
                        entity: entity, column: number, derivation: derivation, type: column.type, missing: missing,
                        pathEntities: entities, name: "\(definition.name).\(column.name)"))
            }
        }
        if columns.isEmpty { return nil }
        self.columns = columns
        self.sets = sets
    }

    /// Returns the value of a derived column in a state, computed from the values that it is derived from.
    func value(of derived: Column, _ key: ObjectKey, in view: some ObjectReader) throws -> Value {
        let derivation = derived.derivation
        guard let column = derivation.column else {
            guard let relation = derivation.relation else { return derived.missing }
            return derived.type.widened(.int(Int64(try view.related(relation, to: key).count)))
        }
        if let relation = derivation.relation {
            let values = try view.related(relation, to: key).compactMap {
                try view.value(relation.entity, key: $0, column: column)
            }
            return try aggregate(derived, values.filter { !$0.isNull })
        }
        var reached = key
        for (entity, reference) in zip(derived.pathEntities, derivation.path) {
            guard let next = try view.value(entity, key: reached, column: reference)?.referenceKey else { return derived.missing }
            reached = next
        }
        let found = try view.value(derived.pathEntities[derived.pathEntities.count - 1], key: reached, column: column) ?? .null
        switch derivation.function {
        case .lowercased: return found.mapText { $0.lowercased() } ?? derived.missing
        case .folded: return found.mapText(TextFolding.folded) ?? derived.missing
        default: return found.isNull ? derived.missing : found
        }
    }

    private func aggregate(_ derived: Column, _ values: [Value]) throws -> Value {
        guard !values.isEmpty else { return derived.missing }
        switch derived.derivation.function {
        case .sum where derived.type == .int64:
            return .int(try derived.sum(values.lazy.map(\.integer)))
        case .sum: return .double(values.reduce(0) { $0 + $1.number })
        case .average: return .double(values.reduce(0) { $0 + $1.number } / Double(values.count))
        case .minimum: return values.dropFirst().reduce(values[0]) { $1.order($0) < 0 ? $1 : $0 }
        case .maximum: return values.dropFirst().reduce(values[0]) { $0.order($1) < 0 ? $1 : $0 }
        default: return derived.missing
        }
    }
}

extension DerivedColumns.Column {
    /// Returns the sum, also if the sum of the first numbers does not fit.
    func sum(_ numbers: some Sequence<Int64>) throws -> Int64 {
        var (sum, carry) = (Int64(0), 0)
        for number in numbers {
            let (next, overflows) = sum.addingReportingOverflow(number)
            if overflows { carry += number < 0 ? -1 : 1 }
            sum = next
        }
        guard carry == 0 else {
            throw StoreError(
                .unsupported,
                "cannot save \(name): the sum does not fit 64 bits. Derive it from a smaller number, or from a double")
        }
        return sum
    }
}

extension Value {
    /// The number of an integer column except of unsigned 64-bit integers; 0 for null.
    var integer: Int64 { if case .int(let number) = self { number } else { 0 } }

    fileprivate var number: Double {
        switch self {
        case .int(let number): Double(number)
        case .uint(let number): Double(number)
        case .double(let number): number
        default: 0
        }
    }

    fileprivate func mapText(_ body: (String) -> String) -> Value? {
        if case .string(let text) = self { .string(body(text)) } else { nil }
    }
}
