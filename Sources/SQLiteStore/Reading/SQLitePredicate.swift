import StoreInterface
import StoreModel

/// Translates a predicate into an SQL condition that is true exactly where ``StorePredicate/matches(_:key:in:)`` is.
///
/// A condition that is NULL in SQL counts as false. `AND`, `OR` and `EXISTS` preserve that. `NOT` is written as
/// `IS NOT TRUE`.
struct SQLitePredicate {
    let layout: SQLiteLayout
    /// The values of the parameters, in their order.
    var arguments: [Value] = []
    private var aliases = 0
    /// The number of symbols on the stack of SQLite's parser when it reaches the current part.
    private var stack = 0

    /// An error for a rare condition that SQL cannot express exactly. The snapshot then evaluates the query in Swift.
    struct NotExpressible: Error {}

    /// The maximum number of list values that are bound one by one. SQLite's own limit is 32,766 parameters.
    private static let listLimit = 10_000

    /// The maximum number of symbols for nesting. SQLite's parser stops at 100 symbols, of which the surrounding statement and
    /// a comparison take up to 30.
    private static let stackLimit = 70

    /// The maximum number of parts of a list that are joined without parentheses. Each part adds a level to SQLite's
    /// expression, which may have 1,000 levels.
    private static let listWidth = 16

    /// The maximum number of parameters of a condition: the smallest limit of SQLite builds of recent years, less the
    /// parameters of the surrounding statement.
    static let parameterLimit = 32_700

    init(layout: SQLiteLayout) { self.layout = layout }

    mutating func condition(_ predicate: StorePredicate, entity: EntityIndex, alias: String) throws -> String {
        switch predicate.form {
        case .constant(let value): return value ? "1" : "0"
        case .compare(let column, let comparison, let value):
            return try compare(place(entity, column: column, alias: alias), comparison, to: value)
        case .compareColumns(let left, let comparison, let right):
            return try compareColumns(
                place(entity, column: left, alias: alias), comparison, to: place(entity, column: right, alias: alias))
        case .isIn(let column, let values): return try isIn(place(entity, column: column, alias: alias), values)
        case .string(let column, let match, let pattern, let sensitivity):
            return string(place(entity, column: column, alias: alias), match, pattern: pattern, sensitivity: sensitivity)
        case .keys(let keys): return keyList("\(alias).id", keys.map(\.stored))
        case .and(let parts): return try joined(parts[...], by: "AND", empty: "1", entity: entity, alias: alias)
        case .or(let parts): return try joined(parts[...], by: "OR", empty: "0", entity: entity, alias: alias)
        case .not(let part): return "((\(try nested(2, part: part, entity: entity, alias: alias))) IS NOT TRUE)"
        case .toOne(let column, let part):
            guard let destination = layout.schema.entities[entity].columns[column].destination else { return "0" }
            let other = nextAlias()
            let inner = try nested(9, part: part, entity: destination, alias: other)
            let reference = place(entity, column: column, alias: alias).name
            return "EXISTS (SELECT 1 FROM \(layout.tables[destination]) \(other) WHERE \(other).id = \(reference) AND \(inner))"
        case .toMany(let relation, .any, let part):
            return "EXISTS (SELECT 1 \(try related(relation, alias: alias, where: part, suffix: "")))"
        case .toMany(let relation, .none, let part):
            return "NOT EXISTS (SELECT 1 \(try related(relation, alias: alias, where: part, suffix: "")))"
        case .toMany(let relation, .all, let part):
            return "NOT EXISTS (SELECT 1 \(try related(relation, alias: alias, where: part, suffix: "IS NOT TRUE")))"
        case .toManyCount(let relation, let part, let comparison, let number):
            let count = try related(relation, alias: alias, where: part, suffix: "")
            return "(SELECT COUNT(*) \(count)) \(Self.symbol(comparison)) \(number)"
        case .evaluated, .tooDeep: throw NotExpressible()
        }
    }

    // MARK: Nesting

    /// Translates a part before which SQLite's parser keeps more symbols on its stack.
    private mutating func nested(_ symbols: Int, part: StorePredicate, entity: EntityIndex, alias: String) throws -> String {
        try enter(symbols)
        defer { stack -= symbols }
        return try condition(part, entity: entity, alias: alias)
    }

    private mutating func enter(_ symbols: Int) throws {
        stack += symbols
        if stack > Self.stackLimit { throw NotExpressible() }
    }

    /// Joins the parts as a tree of short lists, because SQLite limits both the length of a list and the nesting of
    /// parentheses.
    private mutating func joined(
        _ parts: ArraySlice<StorePredicate>, by word: String, empty: String, entity: EntityIndex, alias: String
    ) throws -> String {
        guard let first = parts.first else { return empty }
        if parts.count == 1 { return try condition(first, entity: entity, alias: alias) }
        // The parser keeps a parenthesis, the list so far and the word.
        try enter(3)
        defer { stack -= 3 }
        let size = (parts.count + Self.listWidth - 1) / Self.listWidth
        var texts: [String] = []
        var start = parts.startIndex
        while start < parts.endIndex {
            let end = min(start + size, parts.endIndex)
            texts.append(try joined(parts[start..<end], by: word, empty: empty, entity: entity, alias: alias))
            start = end
        }
        return "(" + texts.joined(separator: " \(word) ") + ")"
    }

    // MARK: Names

    private struct ColumnOperand {
        var name: String
        var type: ColumnType
    }

    private func place(_ entity: EntityIndex, column: ColumnIndex, alias: String) -> ColumnOperand {
        ColumnOperand(
            name: "\(alias).\(layout.columns[entity][column])",
            type: layout.schema.entities[entity].columns[column].type)
    }

    private mutating func nextAlias() -> String {
        aliases += 1
        return "t\(aliases)"
    }

    private static func symbol(_ comparison: StorePredicate.Comparison) -> String {
        switch comparison {
        case .equal: "="
        case .notEqual: "<>"
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        }
    }

    // MARK: Comparing with a value

    private mutating func compare(_ place: ColumnOperand, _ comparison: StorePredicate.Comparison, to value: Value) throws
        -> String
    {
        let name = place.name
        switch (place.type, value) {
        case (_, .null):
            return switch comparison {
            case .equal: "\(name) IS NULL"
            case .notEqual: "\(name) IS NOT NULL"
            default: "0"
            }
        case (_, .double(let number)) where number.isNaN: return comparison == .notEqual ? "1" : "0"
        case (.uint64, .uint(let number)): return unsigned(name, comparison, to: number)
        case (.uint64, .int(let number)) where number >= 0: return unsigned(name, comparison, to: UInt64(number))
        case (.uint64, .int): return constant(place, comparison, order: 1)
        case (.float, .int(let number)), (.double, .int(let number)), (.date, .int(let number)):
            return plain(place, comparison, to: .double(Double(number)))
        case (_, .uint(let number)) where place.type.isSigned:
            guard let small = Int64(exactly: number) else { return constant(place, comparison, order: -1) }
            return plain(place, comparison, to: .int(small))
        case (_, .double) where place.type.isSigned:
            // Swift's comparison rounds the integer to a double. SQLite's comparison is exact.
            return plain(ColumnOperand(name: "CAST(\(name) AS REAL)", type: .int64), comparison, to: value)
        default:
            if place.type.holds(value) { return plain(place, comparison, to: value) }
            throw NotExpressible()
        }
    }

    private mutating func plain(_ place: ColumnOperand, _ comparison: StorePredicate.Comparison, to value: Value) -> String {
        arguments.append(value)
        switch comparison {
        case .notEqual: return "\(place.name) IS NOT ?"
        case .greater, .greaterOrEqual:
            // NaN is stored as text, which is greater than every number.
            let text = "\(place.name) \(Self.symbol(comparison)) ?"
            return place.type.isFloating ? "(\(text) AND \(place.name) <= 9e999)" : text
        default: return "\(place.name) \(Self.symbol(comparison)) ?"
        }
    }

    /// Returns a comparison whose result is the same for every stored number.
    private func constant(_ place: ColumnOperand, _ comparison: StorePredicate.Comparison, order: Int) -> String {
        switch comparison {
        case .equal: "0"
        case .notEqual: "1"
        case .less, .lessOrEqual: order < 0 ? "\(place.name) IS NOT NULL" : "0"
        case .greater, .greaterOrEqual: order > 0 ? "\(place.name) IS NOT NULL" : "0"
        }
    }

    /// Compares unsigned numbers by their stored bit patterns. Numbers from 2^63 on are stored as negative numbers, and
    /// compare greater than all positive numbers.
    private mutating func unsigned(_ name: String, _ comparison: StorePredicate.Comparison, to number: UInt64) -> String {
        arguments.append(.uint(number))
        let isLarge = number > UInt64(Int64.max)
        switch comparison {
        case .equal: return "\(name) = ?"
        case .notEqual: return "\(name) IS NOT ?"
        case .less, .lessOrEqual:
            return "(\(name) \(Self.symbol(comparison)) ? \(isLarge ? "OR" : "AND") \(name) >= 0)"
        case .greater, .greaterOrEqual:
            return "(\(name) \(Self.symbol(comparison)) ? \(isLarge ? "AND" : "OR") \(name) < 0)"
        }
    }

    // MARK: Comparing two columns

    private func compareColumns(_ left: ColumnOperand, _ comparison: StorePredicate.Comparison, to right: ColumnOperand) throws
        -> String
    {
        let a = left.name
        let b = right.name
        let symbol = Self.symbol(comparison)
        if left.type.isFloating, right.type.isFloating {
            return switch comparison {
            case .equal: "(\(a) IS \(b) AND typeof(\(a)) <> 'text')"
            case .notEqual: "(\(a) IS NOT \(b) OR typeof(\(a)) = 'text')"
            default: "(\(a) \(symbol) \(b) AND typeof(\(a)) <> 'text' AND typeof(\(b)) <> 'text')"
            }
        }
        guard left.type == right.type || (left.type.isSigned && right.type.isSigned) else { throw NotExpressible() }
        switch comparison {
        case .equal: return "\(a) IS \(b)"
        case .notEqual: return "\(a) IS NOT \(b)"
        default:
            guard left.type == .uint64 else { return "\(a) \(symbol) \(b)" }
            let strict = comparison == .less || comparison == .lessOrEqual ? "<" : ">"
            return "((\(a) < 0) \(strict) (\(b) < 0) OR ((\(a) < 0) = (\(b) < 0) AND \(a) \(symbol) \(b)))"
        }
    }

    // MARK: Lists

    private mutating func isIn(_ place: ColumnOperand, _ values: Set<Value>) throws -> String {
        var text: String
        let usable = values.filter { place.type.holds($0) && $0 == $0 }
        switch place.type {
        case .float, .double, .date, .string, .data, .uuid:
            guard usable.count <= Self.listLimit else { throw NotExpressible() }
            arguments.append(contentsOf: usable)
            text = "\(place.name) IN (\(Array(repeating: "?", count: usable.count).joined(separator: ", ")))"
        default:
            text = keyList(
                place.name,
                usable.compactMap { value in
                    switch value {
                    case .bool(let flag): flag ? 1 : 0
                    case .int(let number): number
                    case .uint(let number): Int64(bitPattern: number)
                    case .reference(let key): key.stored
                    default: nil
                    }
                })
        }
        return values.contains(.null) ? "(\(text) OR \(place.name) IS NULL)" : text
    }

    /// Uses one parameter for any number of keys, so that the prepared statement is reused.
    private mutating func keyList(_ name: String, _ numbers: [Int64]) -> String {
        arguments.append(.string("[" + numbers.map(String.init).joined(separator: ",") + "]"))
        return "\(name) IN (SELECT value FROM json_each(?))"
    }

    // MARK: Strings

    private mutating func string(
        _ place: ColumnOperand, _ match: StorePredicate.StringMatch, pattern: String,
        sensitivity: StorePredicate.CaseSensitivity
    ) -> String {
        guard place.type == .string else { return "0" }
        let name = sensitivity == .insensitive ? "strata_lower(\(place.name))" : place.name
        let pattern = sensitivity == .insensitive ? pattern.lowercased() : pattern
        if pattern.isEmpty, match != .equals { return "\(place.name) IS NOT NULL" }
        switch match {
        case .equals:
            arguments.append(.string(pattern))
            return "\(name) = ?"
        case .contains:
            arguments.append(.string(pattern))
            return "instr(\(name), ?) > 0"
        case .hasSuffix:
            arguments.append(.data(.init(pattern.utf8)))
            return "substr(CAST(\(name) AS BLOB), -\(pattern.utf8.count)) = ?"
        case .hasPrefix:
            arguments.append(.string(pattern))
            guard let end = Self.successor(of: pattern) else { return "\(name) >= ?" }
            arguments.append(.string(end))
            return "(\(name) >= ? AND \(name) < ?)"
        }
    }

    /// Returns the smallest string that is greater than all strings with the prefix, in the order of code points. Returns nil
    /// if there is none.
    private static func successor(of prefix: String) -> String? {
        var scalars = Array(prefix.unicodeScalars)
        while let last = scalars.popLast() {
            // Skips the surrogates, which no string contains.
            let next = last.value == 0xd7ff ? 0xe000 : last.value + 1
            guard let scalar = Unicode.Scalar(next) else { continue }
            scalars.append(scalar)
            var result = String.UnicodeScalarView()
            result.append(contentsOf: scalars)
            return String(result)
        }
        return nil
    }

    // MARK: Relationships

    /// Returns `FROM … WHERE …` for the related objects that satisfy a condition.
    private mutating func related(
        _ relation: Relation, alias: String, where part: StorePredicate, suffix: String
    ) throws -> String {
        let other = nextAlias()
        let inner = try nested(suffix.isEmpty ? 10 : 12, part: part, entity: relation.entity, alias: other)
        let test = suffix.isEmpty ? inner : "((\(inner)) \(suffix))"
        switch relation {
        case .referrers(let entity, let column):
            let reference = place(entity, column: column, alias: other).name
            return "FROM \(layout.tables[entity]) \(other) WHERE \(reference) = \(alias).id AND \(test)"
        case .link(let link, let direction, let destination):
            let pairs = nextAlias()
            let (near, far) = direction == .forward ? ("source", "destination") : ("destination", "source")
            return """
                FROM \(layout.links[link]) \(pairs) CROSS JOIN \(layout.tables[destination]) \(other) \
                WHERE \(pairs).\(near) = \(alias).id AND \(other).id = \(pairs).\(far) AND \(test)
                """
        }
    }
}
