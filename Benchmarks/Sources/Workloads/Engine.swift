import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// What does the same work as others do, for `storage`.
public enum Engine: String, Sendable, CaseIterable {
    case strata
    case strataSQLite = "strata-sqlite"
    case strataMemory = "strata-memory"
    case sqliteRaw = "sqlite-raw"
    case lmdbRaw = "lmdb-raw"

    /// The store behind an engine of ours; nil for the floors.
    public var store: StoreKind? {
        switch self {
        case .strata: .lmdb
        case .strataSQLite: .sqlite
        case .strataMemory: .memory
        case .sqliteRaw, .lmdbRaw: nil
        }
    }
}

/// Nanoseconds an object of the operations that one engine did in one run.
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
    /// The data set of the shootout: objects, relationships, links; saves of 500.
    case importing = "import"
    /// Objects of one entity with seven columns.
    case insert
    /// One property of a fault under a random id, all inside one read transaction.
    case pointRead = "point read"
    /// A count under two conditions on columns without an index.
    case scan = "full scan"
    /// One property of a random object, saves of 500.
    case update = "random update"
    /// The ids of the hundred objects in a random range of an indexed attribute.
    case range = "indexed range"
    /// One property of each object at the far end of a to-many relationship, a hundred an owner.
    case walk = "to-many walk"
    /// Every fifth object of an entity with two indexes, saves of 500.
    case delete
}
