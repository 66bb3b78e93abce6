import StoreInterface
import StoreModel

/// The bounds that the parts of an `and` set for each column, in the forms that an index can use.
struct ColumnBounds {
    struct Equality {
        var column: ColumnIndex
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
        var column: ColumnIndex
        var members: Members?
        var prefix: Prefix?
        var limits: [Limit] = []
    }

    // Few columns are compared at once, so a linear search is faster than a dictionary.
    private var equalities: [Equality] = []
    private var ranges: [Range] = []

    /// Returns the first equality of a column.
    func equality(of column: ColumnIndex) -> Equality? { equalities.first { $0.column == column } }
    func range(of column: ColumnIndex) -> Range? { ranges.first { $0.column == column } }

    init(_ parts: [StorePredicate]) {
        for (position, part) in parts.enumerated() {
            switch part.form {
            case .compare(let column, .equal, let value):
                equalities.append(Equality(column: column, value: value, part: position))
            case .string(let column, .equals, let text, .sensitive):
                equalities.append(Equality(column: column, value: .string(text), part: position))
            case .compare(_, .notEqual, _): break
            case .compare(let column, let comparison, let value):
                ranges[place(of: column)].limits.append(Limit(comparison: comparison, value: value, part: position))
            case .isIn(let column, let values):
                let place = place(of: column)
                if ranges[place].members == nil { ranges[place].members = Members(values: values, part: position) }
            case .string(let column, .hasPrefix, let text, .sensitive) where !text.isEmpty:
                let place = place(of: column)
                if ranges[place].prefix == nil { ranges[place].prefix = Prefix(text: text, part: position) }
            default: break
            }
        }
    }

    private mutating func place(of column: ColumnIndex) -> Int {
        if let known = ranges.firstIndex(where: { $0.column == column }) { return known }
        ranges.append(Range(column: column))
        return ranges.count - 1
    }
}
