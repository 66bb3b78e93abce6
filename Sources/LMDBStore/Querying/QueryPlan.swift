import StoreInterface

/// Where the candidates of a query come from.
indirect enum QueryPlan {
    case scan
    /// Objects that the condition names.
    case keys(Set<ObjectKey>)
    case index(IndexAccess)
    /// Referrers, by the index of a reference column, of the objects that satisfy a condition of their own entity.
    case referrers(Tables.Index, entity: Int, StorePredicate)
    /// Objects that have a related object which satisfies a condition of its own entity.
    case related(Relation, StorePredicate)
    case all([QueryPlan])
    case any([QueryPlan])
}

/// A part of an index that is read.
struct IndexAccess {
    var index: Tables.Index
    /// Ascending, without overlap. Of an index of references: none.
    var stretches: [IndexRange] = []
    /// Of an index of references: whose referrers are wanted.
    var destinations: Set<ObjectKey> = []
    var accessKind: AccessKind
    /// Its objects, where estimating their number has read them all.
    var found: [ObjectKey]?

    /// How an index is used, in words.
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

/// A plan with what is known of it.
struct QuerySource {
    var plan: QueryPlan
    /// About how many candidates it gives.
    var estimate: Int
    /// Whether its candidates are just the objects that satisfy the parts of the condition which it stands for.
    var isExact: Bool
    var parts = ConjunctSet()
}

/// Parts of a condition by their positions among them. Those from 64 on are left out: no plan is thought to answer them, so they
/// are checked.
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
    func words(_ entity: Int, _ schema: StoreSchema) -> String {
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
    /// The names of its columns.
    func words(_ entity: Int, _ schema: StoreSchema) -> String {
        columns.map { schema.entities[entity].columns[$0].name }.joined(separator: " + ")
    }
}
