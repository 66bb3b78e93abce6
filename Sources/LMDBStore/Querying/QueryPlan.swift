import StoreInterface
import StoreModel

/// The source of a query's candidates.
indirect enum QueryPlan {
    case scan
    /// The objects whose keys the condition lists.
    case keys(Set<ObjectKey>)
    case index(IndexAccess)
    /// Objects that refer to objects satisfying a condition of their own entity, found by the index of a reference column.
    case referrers(Tables.Index, entity: EntityIndex, StorePredicate)
    /// Objects with a related object that satisfies a condition of its own entity.
    case related(Relation, StorePredicate)
    case all([QueryPlan])
    case any([QueryPlan])
}

/// The part of an index to read.
struct IndexAccess {
    var index: Tables.Index
    /// The ranges, ascending and without overlap; empty for an index of references.
    var ranges: [IndexRange] = []
    /// For an index of references: the objects whose referrers are selected.
    var destinations: Set<ObjectKey> = []
    var accessKind: AccessKind
    /// The objects, if estimating their number has read all of them.
    var found: [ObjectKey]?

    /// The way an index is used, for explanations.
    enum AccessKind {
        case whole, equality, membership(Int), range, prefix

        var words: String {
            switch self {
            case .whole: "all of it"
            case .equality: "equality"
            case .membership(let count): "\(count) values"
            case .range: "range"
            case .prefix: "prefix"
            }
        }
    }
}

/// A plan with its estimate.
struct QuerySource {
    var plan: QueryPlan
    /// The approximate number of candidates.
    var estimate: Int
    /// Whether the candidates are exactly the objects that satisfy the parts of the condition in ``parts``.
    var isExact: Bool
    var parts = ConjunctSet()
}

/// A set of parts of a condition, by their positions. Parts from 64 on are not stored. No plan is assumed to answer them, so
/// they are checked.
struct ConjunctSet {
    private var bits: UInt64 = 0

    init() {}
    init(_ part: Int) { insert(part) }

    var isEmpty: Bool { bits == 0 }
    var count: Int { bits.nonzeroBitCount }
    mutating func insert(_ part: Int) { if part < 64 { bits |= 1 << UInt64(part) } }
    mutating func formUnion(_ other: ConjunctSet) { bits |= other.bits }
    func union(_ other: ConjunctSet) -> ConjunctSet {
        var all = self
        all.formUnion(other)
        return all
    }
    func isSubset(of other: ConjunctSet) -> Bool { bits & ~other.bits == 0 }
}

extension QueryPlan {
    func words(_ entity: EntityIndex, _ schema: StoreSchema) -> String {
        switch self {
        case .scan: return "scan"
        case .keys(let keys): return "\(keys.count) keys"
        case .index(let access): return "index on \(access.index.words(entity, schema)), \(access.accessKind.words)"
        case .referrers(let index, let destination, _):
            return "index on \(index.words(entity, schema)), by \(schema.entities[destination].name) found first"
        case .related(let relation, _): return "those related to \(schema.entities[relation.entity].name) found first"
        case .all(let plans): return plans.map { $0.words(entity, schema) }.joined(separator: "; and ")
        case .any(let plans): return plans.map { $0.words(entity, schema) }.joined(separator: "; or ")
        }
    }
}

extension Tables.Index {
    /// Returns the names of the index's columns.
    func words(_ entity: EntityIndex, _ schema: StoreSchema) -> String {
        columns.map { schema.entities[entity].columns[$0].name }.joined(separator: " + ")
    }
}
