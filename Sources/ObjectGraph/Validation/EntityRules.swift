import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The rules of one entity, in a form that is fast to check.
final class EntityRules: Sendable {
    /// A rule for the value of a column.
    struct ColumnRule: Sendable {
        var column: ColumnIndex
        var property: String
        var form: ValueForm
        var rule: PropertyRule
        var check: Check
        /// The entity that declares the property; nil without inheritance.
        var owner: Owner?
    }

    /// A rule for the number of objects in a relationship to many objects.
    struct CountRule: Sendable {
        /// The number of the relationship.
        var relationship: Int
        var property: String
        var rule: PropertyRule
        var bounds: CountBounds
        /// The entity that declares the property; nil without inheritance.
        var owner: Owner?
    }

    /// The entity of a hierarchy that declares a property with a rule.
    struct Owner: Sendable {
        var entity: String
        var typeColumn: ColumnIndex
        /// The types of the objects that have the property; nil if all have it.
        var types: Set<Value>?

        /// Returns whether the rule is for objects of a type. A nil type is that of an object whose property was changed, and which
        /// therefore has it.
        func applies(to type: Value?) -> Bool { type.flatMap { type in types.map { $0.contains(type) } } ?? true }
    }

    /// A rule with everything that can be computed before the first check.
    enum Check: Sendable {
        case required
        case characters(CountBounds)
        case bytes(CountBounds)
        case elements(CountBounds)
        case range(ValueBounds)
        case pattern(CompiledPattern)
    }

    let entity: String
    /// The rules of columns, in declaration order.
    let columns: [ColumnRule]
    /// The rules among ``columns`` for references, which the checks of the writer may clear.
    let references: [ColumnRule]
    let counts: [CountRule]

    /// Returns nil if no property has rules.
    ///
    /// - Throws: ``ModelError`` for a rule that does not fit its property.
    convenience init?(_ description: EntityDescription) throws(ModelError) {
        var draft = Draft()
        var column: ColumnIndex = 0
        var relationship = 0
        for property in description.properties {
            try draft.add(property, of: description.name, column: column, relationship: relationship, nil)
            if case .relationship = property { relationship += 1 }
            if property.hasColumn { column = column.next }
        }
        self.init(draft, entity: description.name)
    }

    /// Returns nil if no property has rules.
    init?(_ draft: Draft, entity: String) {
        if draft.columns.isEmpty && draft.counts.isEmpty { return nil }
        self.entity = entity
        columns = draft.columns
        references = columns.filter { $0.form.type == .reference }
        counts = draft.counts
    }

    /// The rules while they are being collected.
    struct Draft {
        fileprivate var columns: [ColumnRule] = []
        fileprivate var counts: [CountRule] = []

        mutating func add(
            _ property: PropertyDescription, of entity: String, column: ColumnIndex, relationship: Int, _ owner: Owner?
        ) throws(ModelError) {
            switch property {
            case .attribute(let attribute):
                var rules = attribute.rules
                if owner?.types != nil, !attribute.isOptional, !rules.contains(.required) { rules.append(.required) }
                for rule in rules {
                    columns.append(
                        ColumnRule(
                            column: column, property: attribute.name,
                            form: ValueForm(type: attribute.type, content: attribute.content), rule: rule,
                            check: try Check(rule, attribute, of: entity), owner: owner))
                }
            case .relationship(let described):
                for rule in described.rules {
                    let bounds = try described.bounds(of: rule, in: entity)
                    if let bounds {
                        counts.append(
                            CountRule(
                                relationship: relationship, property: described.name, rule: rule, bounds: bounds, owner: owner))
                    } else {
                        columns.append(
                            ColumnRule(
                                column: column, property: described.name, form: ValueForm(type: .reference), rule: rule,
                                check: .required, owner: owner))
                    }
                }
            }
        }
    }
}

extension EntityRules.ColumnRule {
    /// Returns the violation of the rule by a value; nil if the value follows it.
    func violation(_ value: Value, entity: String, id: @autoclosure () -> ObjectID?) -> RuleViolation? {
        guard let broken = check.broken(by: value) else { return nil }
        return RuleViolation(
            objectID: id(), entity: owner?.entity ?? entity, property: property, value: value, valueText: text(value), rule: rule,
            requirement: broken)
    }

    private func text(_ value: Value) -> String {
        if case .range(let bounds) = check { return bounds.text(value) }
        return form.text(value)
    }
}

extension EntityRules.CountRule {
    /// Returns the violation of the rule by a number of objects; nil if it follows the rule.
    func violation(_ count: Int, entity: String, id: ObjectID) -> RuleViolation? {
        if bounds.contains(count) { return nil }
        let value = Value.int(Int64(count))
        return RuleViolation(
            objectID: id, entity: owner?.entity ?? entity, property: property, value: value, valueText: "of \(count)", rule: rule,
            requirement: "must have \(bounds.phrase("object", "objects")), has \(count)")
    }
}

extension EntityRules.Check {
    /// Returns what a value must be instead, as a phrase that follows the name of the property; nil if the value follows the rule.
    func broken(by value: Value) -> String? {
        switch (self, value) {
        case (.required, .null): "must have a value"
        case (.required, _), (_, .null): nil
        case (.characters(let bounds), .string(let text)):
            Self.broken(bounds, bytes: text.utf8.count, one: "character", many: "characters") { text.count }
        case (.bytes(let bounds), .data(let data)):
            Self.broken(bounds, bytes: data.count, one: "byte", many: "bytes") { data.count }
        case (.elements(let bounds), .data(let data)):
            Self.broken(bounds, bytes: data.count, one: "element", many: "elements") { data.elementsOfJSON }
        case (.range(let bounds), _): bounds.contains(value) ? nil : "must be \(bounds.phrase), is \(bounds.text(value))"
        case (.pattern(let pattern), .string(let text)): pattern.matches(text) ? nil : "must match \(pattern.text)"
        // A value of another type, which the check of values reports.
        case (.characters, _), (.bytes, _), (.elements, _), (.pattern, _): nil
        }
    }

    /// - Parameters:
    ///   - bytes: The number of bytes, which the length cannot exceed.
    ///   - length: Computes the length, which may take long.
    private static func broken(_ bounds: CountBounds, bytes: Int, one: String, many: String, _ length: () -> Int) -> String? {
        if bounds.minimum == 0, let maximum = bounds.maximum, bytes <= maximum { return nil }
        if bounds.minimum <= 1, bounds.maximum == nil, bytes > 2 { return nil }
        let length = length()
        return bounds.contains(length) ? nil : "must have \(bounds.phrase(one, many)), has \(length)"
    }
}

/// A regular expression that several threads use.
final class CompiledPattern: @unchecked Sendable {
    // `@unchecked Sendable` is safe because an expression that was compiled from text contains no closures, and the match in the
    // initializer completes it. Nothing changes it afterwards.
    let text: String
    private let regex: Regex<AnyRegexOutput>

    /// Throws the error of `Regex` for a pattern that it does not accept.
    init(_ text: String) throws {
        self.text = text
        regex = try Regex(text)
        _ = try regex.wholeMatch(in: "")
    }

    /// Returns whether the pattern matches the whole text.
    func matches(_ text: String) -> Bool { (try? regex.wholeMatch(in: text)) != nil }
}

extension Data {
    /// The number of elements of a JSON array without spaces, as the attributes of arrays store it; 0 for other bytes.
    var elementsOfJSON: Int {
        guard count > 2, first == UInt8(ascii: "[") else { return 0 }
        var depth = 0
        var commas = 0
        var isInText = false
        var isEscaped = false
        for byte in self {
            if isInText {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInText = true
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ",") where depth == 1: commas += 1
            default: break
            }
        }
        return commas + 1
    }
}
