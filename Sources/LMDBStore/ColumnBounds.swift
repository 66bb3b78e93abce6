import StoreInterface

/// What the parts of an `and` say of each column, in the forms that an index understands.
struct ColumnBounds {
    struct Equality {
        var value: Value
        var part: Int
    }

    struct Limit {
        var comparison: StorePredicate.Comparison
        var value: Value
        var part: Int
    }

    struct Members {
        var values: Set<Value>
        var part: Int
    }

    struct Prefix {
        var text: String
        var part: Int
    }

    struct Range {
        var members: Members?
        var prefix: Prefix?
        var limits: [Limit] = []
    }

    /// By column; of several equalities the first.
    private(set) var equal: [Int: Equality] = [:]
    private(set) var ranges: [Int: Range] = [:]

    init(_ parts: [StorePredicate]) {
        for (position, part) in parts.enumerated() {
            switch part {
            case .compare(let column, .equal, let value):
                if equal[column] == nil { equal[column] = Equality(value: value, part: position) }
            case .string(let column, .equals, let text, .sensitive):
                if equal[column] == nil { equal[column] = Equality(value: .string(text), part: position) }
            case .compare(_, .notEqual, _): break
            case .compare(let column, let comparison, let value):
                ranges[column, default: Range()].limits.append(Limit(comparison: comparison, value: value, part: position))
            case .isIn(let column, let values):
                if ranges[column]?.members == nil {
                    ranges[column, default: Range()].members = Members(values: values, part: position)
                }
            case .string(let column, .hasPrefix, let text, .sensitive) where !text.isEmpty:
                if ranges[column]?.prefix == nil {
                    ranges[column, default: Range()].prefix = Prefix(text: text, part: position)
                }
            default: break
            }
        }
    }
}
