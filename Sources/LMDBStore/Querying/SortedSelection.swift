import PageCodec
import StoreInterface
import StoreModel

/// The first objects in a sort's order, up to a limit. Keeps at most about twice as many objects as the limit.
struct SortedSelection {
    private struct Entry {
        var first: Value
        /// The values of the other columns; empty if the sort has one column.
        var rest: [Value]
        var key: ObjectKey
    }

    /// The sort, always case-sensitive: values are converted to lower case once, when they are read.
    private let sort: [StoreSort]
    private let lowercased: [Bool]
    private let wanted: Int?
    private var entries: [Entry] = []
    /// The last of the selected objects, once enough are kept. Objects that do not precede it are ignored.
    private var worst: Entry?

    /// Creates a selection. Precondition: the sort is not empty. Objects must be added in the order of their keys, which
    /// decides between equal values.
    init(_ sort: [StoreSort], wanted: Int?) {
        lowercased = sort.map { $0.caseSensitivity == .insensitive }
        self.sort = sort.map { StoreSort(column: $0.column, direction: $0.direction, nulls: $0.nulls) }
        self.wanted = wanted
    }

    mutating func add(_ key: ObjectKey, _ value: (ColumnIndex) throws(PageError) -> Value) throws(PageError) {
        var entry = Entry(first: folded(try value(sort[0].column), 0), rest: [], key: key)
        if let worst, sort[0].order(entry.first, worst.first) > 0 { return }
        for position in sort.indices.dropFirst() { entry.rest.append(folded(try value(sort[position].column), position)) }
        if let worst, !Self.isBefore(entry, worst, by: sort) { return }
        entries.append(entry)
        if let wanted, wanted < Int.max / 4, entries.count >= 2 * wanted + 64 { prune(wanted) }
    }

    private func folded(_ value: Value, _ position: Int) -> Value {
        guard lowercased[position], case .string(let text) = value else { return value }
        return .string(text.lowercased())
    }

    private mutating func prune(_ wanted: Int) {
        entries.sort(by: order)
        entries.removeLast(entries.count - wanted)
        worst = entries.last
    }

    /// The order of entries, as a closure without `self`, because sorting has exclusive access to the entries.
    private var order: (Entry, Entry) -> Bool {
        let sort = sort
        return { Self.isBefore($0, $1, by: sort) }
    }

    private static func isBefore(_ a: Entry, _ b: Entry, by sort: [StoreSort]) -> Bool {
        var order = sort[0].order(a.first, b.first)
        var position = 0
        while order == 0, position < a.rest.count {
            order = sort[position + 1].order(a.rest[position], b.rest[position])
            position += 1
        }
        return order != 0 ? order < 0 : a.key < b.key
    }

    /// Returns the selected keys in order.
    mutating func finish() -> [ObjectKey] {
        entries.sort(by: order)
        return entries.prefix(wanted ?? entries.count).map(\.key)
    }
}
