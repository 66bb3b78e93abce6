import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The limits of a length or a count, both included.
struct CountBounds: Sendable, Hashable, CustomStringConvertible {
    var minimum: Int
    /// The largest number; nil for no limit.
    var maximum: Int?
    /// Whether zero is accepted below the minimum, as by an optional relationship of Core Data.
    var allowsNone = false

    init(minimum: Int, maximum: Int?, allowsNone: Bool = false) {
        self.minimum = minimum
        self.maximum = maximum
        self.allowsNone = allowsNone
    }

    init(_ range: some RangeExpression<Int>) {
        switch range {
        case let range as ClosedRange<Int>: self.init(minimum: range.lowerBound, maximum: range.upperBound)
        case let range as PartialRangeFrom<Int>: self.init(minimum: range.lowerBound, maximum: nil)
        case let range as PartialRangeThrough<Int>: self.init(minimum: 0, maximum: range.upperBound)
        // An upper bound of Int.min leaves no number, as any negative maximum does.
        case let range as Range<Int>: self.init(minimum: range.lowerBound, maximum: max(range.upperBound, .min + 1) - 1)
        case let range as PartialRangeUpTo<Int>: self.init(minimum: 0, maximum: max(range.upperBound, .min + 1) - 1)
        default: preconditionFailure("cannot use \(range) as a rule: use a range of the standard library")
        }
    }

    /// Whether no number is accepted, or a bound is negative.
    var isEmpty: Bool { minimum < 0 || (maximum.map { $0 < minimum } ?? false) }

    func contains(_ number: Int) -> Bool {
        if number == 0, allowsNone { return true }
        return number >= minimum && maximum.map { number <= $0 } ?? true
    }

    /// The limits as a phrase: `1 to 80 characters`.
    ///
    /// - Parameters:
    ///   - one: The noun for one: `character`.
    ///   - many: The noun for other numbers: `characters`.
    func phrase(_ one: String, _ many: String) -> String {
        let none = allowsNone ? "no \(many) or " : ""
        guard let maximum else { return "\(none)at least \(minimum) \(minimum == 1 ? one : many)" }
        if minimum == maximum { return "\(none)\(minimum) \(minimum == 1 ? one : many)" }
        if minimum == 0 { return "at most \(maximum) \(maximum == 1 ? one : many)" }
        return "\(none)\(minimum) to \(maximum) \(many)"
    }

    var description: String {
        guard let maximum else { return "\(minimum)..." }
        return minimum == 0 ? "...\(maximum)" : "\(minimum)...\(maximum)"
    }
}

/// The limits of a number or a date.
struct ValueBounds: Sendable, Hashable, CustomStringConvertible {
    /// The types of bounds, which decide the types of attributes that can have them.
    enum BoundType: Sendable, Hashable { case number, decimal, date, other }

    /// The smallest value; nil for no limit.
    var lower: Value?
    /// The largest value; nil for no limit.
    var upper: Value?
    var includesUpper = true
    private(set) var type: BoundType

    init<R: RangeExpression>(_ range: R) where R.Bound: AttributeValue {
        type =
            switch R.Bound.columnType {
            case .date: .date
            case _ where R.Bound.self == Decimal.self: .decimal
            case let column where column.isNumeric: .number
            default: .other
            }
        switch range {
        case let range as ClosedRange<R.Bound>: (lower, upper) = (range.lowerBound.storeValue, range.upperBound.storeValue)
        case let range as PartialRangeFrom<R.Bound>: lower = range.lowerBound.storeValue
        case let range as PartialRangeThrough<R.Bound>: upper = range.upperBound.storeValue
        case let range as Range<R.Bound>:
            (lower, upper) = (range.lowerBound.storeValue, range.upperBound.storeValue)
            includesUpper = false
        case let range as PartialRangeUpTo<R.Bound>:
            upper = range.upperBound.storeValue
            includesUpper = false
        default: preconditionFailure("cannot use \(range) as a rule: use a range of the standard library")
        }
    }

    /// Whether no value is accepted.
    var isEmpty: Bool {
        guard let lower, let upper else { return false }
        let order = lower.order(upper)
        return order > 0 || order == 0 && !includesUpper
    }

    /// Returns the bounds in the form in which an attribute stores its values; nil if its values cannot be compared with them.
    func stored(as column: ColumnType, _ content: AttributeContent) -> ValueBounds? {
        switch (type, column) {
        case (.date, .date): return self
        case (.decimal, .data) where content == .decimal || content == .plain: return self
        case (.number, .data) where content == .decimal: return asDecimal
        case (.number, _) where column.isNumeric: break
        default: return nil
        }
        guard column == .float else { return self }
        // The attribute keeps `Float` precision, so a bound between two such numbers would refuse itself.
        var rounded = self
        rounded.lower = lower.map { column.stored($0) }
        rounded.upper = upper.map { column.stored($0) }
        return rounded
    }

    private var asDecimal: ValueBounds? {
        var bounds = self
        bounds.type = .decimal
        for side in [\ValueBounds.lower, \.upper] {
            guard let bound = self[keyPath: side] else { continue }
            guard let decimal = bound.asDecimal else { return nil }
            bounds[keyPath: side] = decimal
        }
        return bounds
    }

    func contains(_ value: Value) -> Bool {
        var value = value
        switch value {
        case .double(let number) where number.isNaN: return false
        case .data(let bytes) where type == .decimal:
            guard let number = Decimal(value), !number.isNaN else { return false }
            // No bytes are zero too.
            if bytes.isEmpty { value = Decimal.missingValue }
        default: break
        }
        if let lower, value.order(lower) < 0 { return false }
        guard let upper else { return true }
        let order = value.order(upper)
        return order < 0 || order == 0 && includesUpper
    }

    /// The limits as a phrase: `from 0 to 5`.
    var phrase: String {
        let limit = includesUpper ? "at most" : "less than"
        return switch (lower, upper) {
        case (let lower?, let upper?):
            includesUpper ? "from \(text(lower)) to \(text(upper))" : "at least \(text(lower)) and less than \(text(upper))"
        case (let lower?, nil): "at least \(text(lower))"
        case (nil, let upper?): "\(limit) \(text(upper))"
        case (nil, nil): "any value"
        }
    }

    /// Returns a value of the attribute, or a bound, as text.
    func text(_ value: Value) -> String {
        switch type {
        case .decimal: Decimal(value).map { "\($0)" } ?? "\(value)"
        case .date: value.text(as: .date)
        case .number, .other: "\(value)"
        }
    }

    var description: String {
        "\(lower.map(text) ?? "")\(upper == nil || includesUpper ? "..." : "..<")\(upper.map(text) ?? "")"
    }
}
