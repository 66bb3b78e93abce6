import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The engines that `storage` compares with the same work.
public enum Engine: String, Sendable, CaseIterable {
    case strata
    case strataSQLite = "strata-sqlite"
    case strataMemory = "strata-memory"
    case sqliteRaw = "sqlite-raw"
    case lmdbRaw = "lmdb-raw"

    /// The store of an engine of Strata, or nil for a floor.
    public var store: StoreKind? {
        switch self {
        case .strata: .lmdb
        case .strataSQLite: .sqlite
        case .strataMemory: .memory
        case .sqliteRaw, .lmdbRaw: nil
        }
    }
}

/// The nanoseconds per object of each operation of one engine in one run.
struct EngineFigures: Sendable {
    var costs: [StorageOperation: Double] = [:]
    var fileBytes = 0

    func adding(_ more: [StorageOperation: Double]) -> EngineFigures {
        var sum = self
        sum.costs.merge(more) { _, new in new }
        return sum
    }
}

public enum StorageOperation: String, Sendable, CaseIterable {
    /// The data set of the shootout: objects, relationships and links, in saves of 500.
    case importing = "import"
    /// Objects of one entity with seven columns.
    case insert
    /// One property of a fault under a random id, all within one read transaction.
    case pointRead = "point read"
    /// A count under two conditions on columns without an index.
    case scan = "full scan"
    /// One property of a random object, in saves of 500.
    case update = "random update"
    /// The ids of the hundred objects in a random range of an indexed attribute.
    case range = "indexed range"
    /// One property of each object at the far end of a to-many relationship, a hundred per owner.
    case walk = "to-many walk"
    /// Every fifth object of an entity with two indexes, in saves of 500.
    case delete
    /// Bytes under text keys of ten characters, put in random order, in saves of 500.
    case putSmall = "keyed put, 65 B"
    case putLarge = "keyed put, 400 B"
    /// The bytes under a random key, all within one read transaction.
    case getSmall = "keyed get, 65 B"
    case getLarge = "keyed get, 400 B"
    /// The bytes of the hundred keys from a random key on.
    case keyRangeSmall = "keyed range, 65 B"
    case keyRangeLarge = "keyed range, 400 B"
    /// The keys with one prefix, a hundred per prefix.
    case prefixSmall = "keyed prefix, 65 B"
    case prefixLarge = "keyed prefix, 400 B"
    /// Every fifth key, in saves of 500.
    case removeSmall = "keyed delete, 65 B"
    case removeLarge = "keyed delete, 400 B"
}
