import StoreInterface
import StoreModel

extension EntityRules.Check {
    /// Throws ``ModelError`` if the rule does not fit the attribute.
    init(_ rule: PropertyRule, _ attribute: AttributeDescription, of entity: String) throws(ModelError) {
        func error(_ reason: ModelError.Reason, _ remedy: String) -> ModelError {
            ModelError(reason, entity: entity, property: attribute.name, remedy: remedy)
        }
        switch rule.kind {
        case .required: self = .required
        case .length(let bounds):
            if bounds.isEmpty { throw error(.wrongRule, "\(rule) accepts no length; give a range of numbers from 0 on") }
            switch (attribute.type, attribute.content) {
            case (.string, _): self = .characters(bounds)
            case (.data, .plain): self = .bytes(bounds)
            case (.data, .elements): self = .elements(bounds)
            default: throw error(.ruleDoesNotFit, "\(rule) is for strings, data, arrays and sets")
            }
        case .range(let bounds):
            guard let stored = bounds.stored(as: attribute.type, attribute.content) else {
                throw error(.ruleDoesNotFit, "\(rule) is for numbers, and for dates if its bounds are dates")
            }
            if stored.isEmpty { throw error(.wrongRule, "\(rule) accepts no value; give a larger range") }
            self = .range(stored)
        case .pattern(let pattern):
            guard attribute.type == .string else { throw error(.ruleDoesNotFit, "\(rule) is for strings") }
            do { self = .pattern(try CompiledPattern(pattern)) } catch let cause {
                throw error(.wrongRule, "\(rule) is no regular expression: \(cause)".singleLine)
            }
        case .count: throw error(.ruleDoesNotFit, "\(rule) is for relationships to many objects; use .length for arrays")
        }
    }
}

extension RelationshipDescription {
    /// Returns the bounds of a rule for the number of objects; nil for `.required`. Throws ``ModelError`` for a rule that does not fit.
    func bounds(of rule: PropertyRule, in entity: String) throws(ModelError) -> CountBounds? {
        switch (rule.kind, cardinality) {
        case (.required, .toOne): return nil
        case (.required, .toMany):
            throw ModelError(
                .ruleDoesNotFit, entity: entity, property: name, remedy: "use .count(1...) for a relationship to many objects")
        case (.count(let bounds), .toMany):
            guard !bounds.isEmpty else {
                throw ModelError(
                    .wrongRule, entity: entity, property: name,
                    remedy: "\(rule) accepts no number of objects; give a range of numbers from 0 on")
            }
            return bounds
        case (.count, .toOne):
            throw ModelError(
                .ruleDoesNotFit, entity: entity, property: name, remedy: "use .required for a relationship to one object")
        case (.length, _), (.range, _), (.pattern, _):
            throw ModelError(.ruleDoesNotFit, entity: entity, property: name, remedy: "\(rule) is for attributes")
        }
    }
}

extension String {
    /// The text with spaces in place of line breaks.
    fileprivate var singleLine: String { split(whereSeparator: \.isNewline).joined(separator: " ") }
}
