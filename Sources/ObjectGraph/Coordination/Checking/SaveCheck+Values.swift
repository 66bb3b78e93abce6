import StoreInterface
import StoreModel

/// Checks that every value can be stored. A deferred save is acknowledged before a store sees it. A value out of its column's range
/// would then block all later saves.
extension SaveCheck {
    /// Checks the values of the inserted and updated rows, and the rules of properties. O(their set columns).
    ///
    /// - Throws: ``SaveError/validation(_:)`` with each object and property; `StoreError` `.valueTooLarge`.
    func checkValues() throws {
        var errors = ValidationErrors()
        try checkTypes(&errors)
        if let rules = request.validation { try check(rules, &errors) }
        if errors.isEmpty { return }
        errors.sort()
        throw SaveError.validation(errors)
    }

    private func checkTypes(_ errors: inout ValidationErrors) throws {
        let layer = layer
        for (entity, schema) in writer.store.schema.entities.enumerated(as: EntityIndex.self) {
            let rules = writer.valueRules[entity]
            guard let changes = layer.entity(entity), rules.refusesAny(of: changes) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.inserted | page.updated) {
                    guard let row = page[slot], let column = rules.firstRefused(in: row) else { continue }
                    if let error = StoreError.tooLarge(row[column], in: schema, column) { throw error }
                    let id = ObjectID(
                        store: writer.store.identity, entity: entity, key: PageAddress.key(page: number, slot: slot))
                    errors.append(
                        id, InvalidValue(schema, column: column, value: row[column]),
                        listingAtMost: ValidationErrors.listedByWriter)
                }
            }
        }
    }

    /// Checks the rules of the values that no context has validated: all values of a batch, values that a merge policy or this check have
    /// changed, and updates of objects that were deleted when their context validated them (S022).
    ///
    /// Checks the numbers of related objects against the state that the save follows, which the context may not have read.
    private func check(_ rules: ValidationRules, _ errors: inout ValidationErrors) throws {
        let layer = layer
        let store = writer.store.identity
        let isValidated = request.make == nil && !isChanged && !request.mayUpdateDeleted
        for (entity, entityRules) in rules.entities.enumerated(as: EntityIndex.self) {
            guard let entityRules else { continue }
            let columns = isValidated ? entityRules.references : entityRules.columns
            if columns.isEmpty { continue }
            for mask in [\LayerPage.inserted, \.updated] {
                try layer.forEachRow(of: entity, mask) { key, row in
                    try ValidationRules.check(columns, row: row, other: { try type(of: entity, key, $0) }) { rule, value in
                        let violation = rule.violation(
                            value, entity: entityRules.entity, id: ObjectID(store: store, entity: entity, key: key))
                        if let violation { errors.append(violation, listingAtMost: ValidationErrors.listedByWriter) }
                    }
                }
            }
        }
        guard !rules.counted.isEmpty else { return }
        let after = after
        for open in try rules.countsToCheck(layer, before: state.view) {
            if let violation = try rules.violation(open, in: after, store) {
                errors.append(violation, listingAtMost: ValidationErrors.listedByWriter)
            }
        }
    }
}

extension SaveCheck {
    /// Returns the type of an object in its hierarchy; nil for another column than that of types.
    fileprivate func type(of entity: EntityIndex, _ key: ObjectKey, _ column: ColumnIndex) throws -> Value? {
        guard column == writer.store.schema.entities[entity].typeColumn else { return nil }
        return try state.view.value(entity, key: key, column: column)
    }
}

/// The types of the columns of one entity, in a form that is fast to check.
struct ValueRules: Sendable {
    private struct Rule {
        var type: ColumnType
        var isOptional: Bool
        /// Whether values have a size that needs a check.
        var hasSize: Bool
    }

    private let rules: ContiguousArray<Rule>

    init(_ schema: EntitySchema) {
        rules = ContiguousArray(
            schema.columns.map { Rule(type: $0.type, isOptional: $0.isOptional, hasSize: $0.type == .string || $0.type == .data) }
        )
    }

    /// Returns whether an inserted or updated row has an invalid value. The pages are not sorted, because sorting them costs as much as
    /// this check.
    func refusesAny(of changes: EntityLayer) -> Bool {
        var isRefused = false
        for page in changes.pages.values {
            page.forEachRow(in: page.inserted | page.updated) { row, _ in
                if firstRefused(in: row) != nil { isRefused = true }
            }
        }
        return isRefused
    }

    /// Returns the first column whose value is invalid or too large; nil if there is none. A new row sets every column.
    func firstRefused(in row: Row) -> ColumnIndex? {
        row.withValues { set, values in
            var refused: ColumnIndex?
            set.forEach { column in
                let rule = rules[column.rawValue]
                let value = values[column.rawValue]
                if refused == nil, !rule.type.accepts(value, isOptional: rule.isOptional) || rule.hasSize && value.isTooLarge {
                    refused = column
                }
            }
            return refused
        }
    }
}

/// A validation error: a property has a value that its attribute cannot store.
///
/// ```swift
/// do {
///     try await context.save()
/// } catch SaveError.validation(let errors) {
///     for (_, error) in errors {
///         if let invalid = error as? InvalidValue { print(invalid.entity, invalid.property, invalid.value) }
///     }
/// }
/// ```
public struct InvalidValue: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the entity.
    public let entity: String
    /// The name of the property.
    public let property: String
    /// The invalid value.
    public let value: Value
    private let type: ColumnType

    init(_ schema: EntitySchema, column: ColumnIndex, value: Value) {
        entity = schema.name
        property = schema.columns[column].name
        type = schema.columns[column].type
        self.value = value
    }

    /// The property, its value and the reason why it cannot be stored.
    public var description: String {
        value.isNull
            ? "\(entity).\(property) has no value: it is not optional. Give it one"
            : "\(entity).\(property) cannot hold \(value.text(as: type)): it is \(type.rawValue). Give a value in its range"
    }
}
