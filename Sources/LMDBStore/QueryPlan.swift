import PageCodec
import StoreInterface

/// Where the candidates of a query come from. All are checked with the whole condition afterwards, because an index key may
/// be cut and bounds are taken as inclusive.
enum QueryPlan {
    /// A stretch of an index's keys, both ends inclusive; `prefix` ends it where keys no longer begin so.
    struct Stretch {
        var lower: [UInt8]
        var upper: [UInt8]?
        var isPrefix = false
    }

    case scan
    /// Objects that the condition names.
    case keys(Set<ObjectKey>)
    /// Referrers of some objects.
    case references(Tables.Index, Set<ObjectKey>)
    case index(Tables.Index, [Stretch], Manner)

    /// How an index is used, in words.
    enum Manner {
        case equality, membership(Int), range, prefix

        var words: String {
            switch self {
            case .equality: "equality"
            case .membership(let count): "\(count) values"
            case .range: "range"
            case .prefix: "prefix"
            }
        }
    }

    /// Takes the part of the top-level `and` that narrows most: keys, then equality, then membership, then a range.
    init(_ predicate: StorePredicate, entity: Int, snapshot: LMDBSnapshot) {
        let maker = PlanMaker(parts: Self.parts(predicate), entity: entity, snapshot: snapshot)
        self = maker.keys ?? maker.equality ?? maker.membership ?? maker.range ?? .scan
    }

    private static func parts(_ predicate: StorePredicate) -> [StorePredicate] {
        guard case .and(let parts) = predicate else { return [predicate] }
        return parts.flatMap(Self.parts)
    }

    func explanation(entity: Int, store: LMDBStore, pages: Int) -> String {
        func name(_ index: Tables.Index) -> String { store.schema.entities[entity].columns[index.column].name }
        switch self {
        case .scan: return "scan of \(pages) pages"
        case .keys(let keys): return "\(keys.count) keys"
        case .references(let index, let keys):
            return "index on \(name(index)), " + (keys.count == 1 ? Manner.equality : .membership(keys.count)).words
        case .index(let index, _, let manner): return "index on \(name(index)), \(manner.words)"
        }
    }
}

/// Looks for an index among the parts of a condition.
private struct PlanMaker {
    var parts: [StorePredicate]
    var entity: Int
    var snapshot: LMDBSnapshot

    private var store: LMDBStore { snapshot.store }

    var keys: QueryPlan? {
        for case .keys(let keys) in parts { return .keys(keys) }
        return nil
    }

    private func index(_ column: Int) -> Tables.Index? { snapshot.index(entity, column) }

    private func key(_ value: Value, _ column: Int) -> [UInt8]? {
        try? KeyCodec.encode(value, column: store.schema.entities[entity].columns[column]).bytes
    }

    var equality: QueryPlan? {
        for part in parts {
            switch part {
            case .compare(let column, .equal, let value):
                guard let index = index(column) else { continue }
                if let plan = plan(index, [value], .equality) { return plan }
            case .string(let column, .equals, let text, .sensitive):
                guard let index = index(column) else { continue }
                if let plan = plan(index, [.string(text)], .equality) { return plan }
            default: continue
            }
        }
        return nil
    }

    var membership: QueryPlan? {
        for case .isIn(let column, let values) in parts {
            guard let index = index(column), values.count <= 4096 else { continue }
            if let plan = plan(index, Array(values), .membership(values.count)) { return plan }
        }
        return nil
    }

    /// nil when a value has no key in the index.
    private func plan(_ index: Tables.Index, _ values: [Value], _ manner: QueryPlan.Manner) -> QueryPlan? {
        if index.isReference {
            var keys: Set<ObjectKey> = []
            for value in values {
                guard let key = value.referenceKey else { return nil }
                keys.insert(key)
            }
            return .references(index, keys)
        }
        var stretches: [QueryPlan.Stretch] = []
        for value in values {
            guard let key = key(value, index.column) else { return nil }
            stretches.append(.init(lower: key, upper: key))
        }
        stretches.sort { IndexBytes.order($0.lower, $1.lower) < 0 }
        return .index(index, stretches, manner)
    }

    var range: QueryPlan? {
        for part in parts {
            switch part {
            case .compare(let column, let comparison, _) where comparison != .notEqual:
                guard let index = index(column), !index.isReference, let stretch = stretch(column) else { continue }
                return .index(index, [stretch], .range)
            case .string(let column, .hasPrefix, let text, .sensitive):
                guard let index = index(column), !text.isEmpty, let key = key(.string(text), column) else { continue }
                return .index(index, [.init(lower: key, upper: key, isPrefix: true)], .prefix)
            default: continue
            }
        }
        return nil
    }

    /// All bounds of a column together; nil when one has no key.
    private func stretch(_ column: Int) -> QueryPlan.Stretch? {
        // The first key after null: comparisons with null are false.
        var result = QueryPlan.Stretch(lower: [1], upper: nil)
        var isBounded = false
        for case .compare(column, let comparison, let value) in parts where comparison != .notEqual && comparison != .equal {
            guard !value.isNull, let key = key(value, column) else { continue }
            isBounded = true
            switch comparison {
            case .less, .lessOrEqual:
                if let upper = result.upper, IndexBytes.order(upper, key) <= 0 { break }
                result.upper = key
            default:
                if IndexBytes.order(result.lower, key) < 0 { result.lower = key }
            }
        }
        return isBounded ? result : nil
    }
}
