import Foundation
import LMDBStore
import MemoryStore
import SQLiteStore
import StoreContract
import StoreInterface
import StoreModel
import Testing

/// The stores that the contract is checked on.
enum StoreKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory, lmdb, sqlite, sqliteSharedConnection

    /// The stores whose data outlives the store object.
    static let persistent: [StoreKind] = [.lmdb, .sqlite, .sqliteSharedConnection]

    var testDescription: String { rawValue }

    func description(in folder: TemporaryFolder) -> StoreDescription { description(in: folder.url) }

    func description(in folder: URL) -> StoreDescription {
        switch self {
        case .memory: .memory(name: folder.path)
        case .lmdb: .lmdb(folder.appendingPathComponent("store.strata"))
        case .sqlite: .sqlite(folder.appendingPathComponent("store.sqlite"))
        case .sqliteSharedConnection: .sqlite(folder.appendingPathComponent("store.sqlite"), connections: .sharedWithWriter)
        }
    }

    var subject: StoreContract.Subject {
        switch self {
        case .memory: .volatile { schema in MemoryStore(schema: schema) }
        default:
            .persistent { schema, location in
                try description(in: location.deletingLastPathComponent()).open(schema)
            }
        }
    }
}

/// An open store of the contract's sample model.
typealias ContractStore = StoreUnderTest

extension StoreUnderTest {
    init(_ kind: StoreKind) throws { try self.init(kind.subject) }
}
