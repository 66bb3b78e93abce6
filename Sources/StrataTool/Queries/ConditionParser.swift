import ObjectGraph
import StoreInterface
import StoreModel

/// Parses the text of a condition to a condition of the library.
///
/// ```
/// title contains "blue" and (artist.name = 'AC/DC' or plays > 100) and not genre = nil
/// released between 2010-01-01 and 2010-12-31 and any tracks (milliseconds > 300000)
/// ```
struct ConditionParser {
    private let model: Model
    private let tokens: [ConditionLexer.Placed]
    private let end: Int
    private var place = 0
    private var depth = 0

    /// Returns the condition that a text describes.
    /// - Throws: ``ToolError`` with the position of the first mistake, or the name that does not exist.
    static func condition(_ text: String, on entity: Entity, in model: Model) throws -> Condition {
        let tokens = try ConditionLexer.tokens(text)
        if tokens.isEmpty { return .always }
        var parser = ConditionParser(model: model, tokens: tokens, end: text.count + 1)
        let condition = try parser.alternatives(entity)
        guard parser.place == tokens.count else { throw parser.unexpected("and, or, or the end of the condition") }
        return condition
    }

    private init(model: Model, tokens: [ConditionLexer.Placed], end: Int) {
        self.model = model
        self.tokens = tokens
        self.end = end
    }

    static func failure(_ reason: String, at position: Int) -> ToolError {
        .wrongInput("cannot read the condition at character \(position): \(reason). See `strata help query`")
    }

    private var token: ConditionLexer.Token? { place < tokens.count ? tokens[place].token : nil }
    private var position: Int { place < tokens.count ? tokens[place].position : end }

    /// The name at the present place, if there is one.
    private var name: String? {
        switch token {
        case .word(let name)?, .name(let name)?: name
        default: nil
        }
    }

    private func unexpected(_ wanted: String) -> ToolError { Self.failure("expected \(wanted)", at: position) }

    private mutating func takeSign(_ signs: String...) -> Bool {
        guard case .sign(let sign)? = token, signs.contains(sign) else { return false }
        place += 1
        return true
    }

    /// Takes a keyword, in any case.
    private mutating func takeWord(_ words: String...) -> Bool {
        guard case .word(let word)? = token, words.contains(word.lowercased()) else { return false }
        place += 1
        return true
    }

    // MARK: Logic

    private mutating func alternatives(_ entity: Entity) throws -> Condition {
        var parts = [try conjunction(entity)]
        while takeWord("or") || takeSign("||") { parts.append(try conjunction(entity)) }
        return parts.count == 1 ? parts[0] : .any(parts)
    }

    private mutating func conjunction(_ entity: Entity) throws -> Condition {
        var parts = [try term(entity)]
        while takeWord("and") || takeSign("&&") { parts.append(try term(entity)) }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private mutating func term(_ entity: Entity) throws -> Condition {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Condition.maximumDepth else {
            throw Self.failure("it is nested more than \(Condition.maximumDepth) levels deep", at: position)
        }
        if takeWord("not") || takeSign("!") { return .not(try term(entity)) }
        if takeSign("(") {
            let inner = try alternatives(entity)
            guard takeSign(")") else { throw unexpected("a closing parenthesis") }
            return inner
        }
        for (word, quantifier) in [("any", StorePredicate.Quantifier.any), ("all", .all), ("none", .none)] {
            guard case .word(let found)? = token, found.lowercased() == word, place + 1 < tokens.count else { continue }
            // A property may have such a name: `any = 5`.
            if case .sign = tokens[place + 1].token { continue }
            place += 1
            let (name, related) = try collection(entity)
            guard takeSign("(") else { throw unexpected("the condition on \(name), in parentheses") }
            let inner = try alternatives(related)
            guard takeSign(")") else { throw unexpected("a closing parenthesis") }
            return .related(name, quantifier, where: inner)
        }
        return try comparison(entity)
    }

    /// Reads the path of a to-many relationship.
    private mutating func collection(_ entity: Entity) throws -> (name: String, related: Entity) {
        let start = position
        guard let name else { throw unexpected("the name of a to-many relationship") }
        place += 1
        guard case .collection(let related)? = PropertyPath.resolve(name, on: entity, in: model) else {
            throw Self.failure("\(entity.name) has no to-many relationship \(name)", at: start)
        }
        return (name, related)
    }

    // MARK: Comparisons

    private static let comparisons: [String: StorePredicate.Comparison] = [
        "=": .equal, "==": .equal, "!=": .notEqual, "<>": .notEqual, "<": .less, "<=": .lessOrEqual, ">": .greater,
        ">=": .greaterOrEqual,
    ]

    private mutating func comparison(_ entity: Entity) throws -> Condition {
        let start = position
        guard let name else { throw unexpected("the name of a property") }
        place += 1
        switch PropertyPath.resolve(name, on: entity, in: model) {
        case .column(let column): return try comparison(name, column)
        case .count(let collection):
            guard case .sign(let sign)? = token, let comparison = Self.comparisons[sign] else {
                throw unexpected("a comparison of \(name) with a number")
            }
            place += 1
            guard case .number(let text)? = token, let number = Int(text) else { throw unexpected("a whole number") }
            place += 1
            return .relatedCount(collection, where: .always, comparison, to: number)
        case .collection:
            throw Self.failure(
                "\(name) is a to-many relationship; write \(name).count > 0, or any \(name) (…)", at: start)
        case nil:
            throw Self.failure(PropertyPath.problem(name, on: entity, in: model), at: start)
        }
    }

    private mutating func comparison(_ name: String, _ column: ColumnSchema) throws -> Condition {
        if case .sign(let sign)? = token, let comparison = Self.comparisons[sign] {
            place += 1
            return try compare(name, comparison, to: value(column))
        }
        if takeWord("is") {
            let isNegated = takeWord("not")
            guard takeWord("nil", "null") else { throw unexpected("nil") }
            return isNegated ? .not(.isNil(name)) : .isNil(name)
        }
        let isNegated = takeWord("not")
        let condition = try membership(name, column)
        return isNegated ? .not(condition) : condition
    }

    private func compare(_ name: String, _ comparison: StorePredicate.Comparison, to value: Value) throws -> Condition {
        guard value.isNull else { return .compare(name, comparison, to: value) }
        switch comparison {
        case .equal: return .isNil(name)
        case .notEqual: return .not(.isNil(name))
        default: throw orderOfNil
        }
    }

    private var orderOfNil: ToolError { Self.failure("nil can only be compared with = and !=", at: position) }

    private mutating func membership(_ name: String, _ column: ColumnSchema) throws -> Condition {
        if takeWord("in") {
            guard takeSign("(", "[", "{") else { throw unexpected("a list in parentheses") }
            var values: [Value] = []
            if !takeSign(")", "]", "}") {
                repeat { values.append(try value(column)) } while takeSign(",")
                guard takeSign(")", "]", "}") else { throw unexpected("a comma or a closing parenthesis") }
            }
            return .isIn(name, values)
        }
        if takeWord("between") {
            let lower = try value(column)
            guard takeWord("and") || takeSign(",") else { throw unexpected("and") }
            let upper = try value(column)
            if lower.isNull || upper.isNull { throw orderOfNil }
            return .between(name, lower, and: upper)
        }
        let matches: [(String, StorePredicate.StringMatch)] = [
            ("contains", .contains), ("beginswith", .hasPrefix), ("endswith", .hasSuffix), ("like", .equals),
        ]
        for (word, match) in matches where takeWord(word, word + "[c]") {
            guard column.type == .string else {
                throw Self.failure("\(name) is no text, so it cannot be compared with \(word)", at: position)
            }
            // As in Core Data, `contains[c]` ignores case.
            var sensitivity = StorePredicate.CaseSensitivity.sensitive
            if takeSign("[") {
                guard takeWord("c"), takeSign("]") else { throw unexpected("[c]") }
                sensitivity = .insensitive
            }
            guard case .string(let pattern)? = token else { throw unexpected("a text in quotes") }
            let start = position
            place += 1
            if match == .equals { return try LikePattern(pattern, at: start).condition(name, sensitivity: sensitivity) }
            return .string(name, match, pattern: pattern, sensitivity: sensitivity)
        }
        throw unexpected(
            "a comparison of \(name): =, !=, <, <=, >, >=, in, between, contains, beginswith, endswith, like or is nil")
    }

    /// Reads a value of a column: a number, a text, a date, true, false or nil.
    private mutating func value(_ column: ColumnSchema) throws -> Value {
        let start = position
        let isNegative = takeSign("-")
        guard let token else { throw unexpected("a value") }
        place += 1
        let found: Value?
        switch token {
        case .number(let text): found = ValueText.value((isNegative ? "-" : "") + text, column.type)
        case .string(let text) where !isNegative: found = ValueText.value(text, column.type)
        case .word(let word) where !isNegative:
            switch word.lowercased() {
            case "nil", "null": found = .null
            case "true", "yes": found = column.type == .bool ? .bool(true) : nil
            case "false", "no": found = column.type == .bool ? .bool(false) : nil
            default: found = nil
            }
        default: found = nil
        }
        guard let found else {
            throw Self.failure("\(column.name) is compared with values of the type \(column.type.rawValue)", at: start)
        }
        // 0.1 means the number that a column of floats keeps for it, which is another double.
        return column.type.stored(found)
    }
}
