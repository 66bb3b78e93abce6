import Testing
import Foundation
import LMDBStore
import MemoryStore
import SQLiteStore
import StoreInterface

/// The stores that the contract suite tests.
enum StoreKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory, lmdb, sqlite, sqliteAncestors

    /// The stores whose snapshots do not change.
    static let isolated: [StoreKind] = [.memory, .lmdb, .sqlite]
    /// The stores whose data outlives the store object.
    static let persistent: [StoreKind] = [.lmdb, .sqlite, .sqliteAncestors]

    var testDescription: String { rawValue }

    func description(in folder: TemporaryFolder) -> StoreDescription {
        switch self {
        case .memory: .memory(name: folder.url.path)
        case .lmdb: .lmdb(folder.url.appendingPathComponent("store.strata"))
        case .sqlite: .sqlite(folder.url.appendingPathComponent("store.sqlite"))
        case .sqliteAncestors: .sqlite(folder.url.appendingPathComponent("store.sqlite"), routing: .ancestors)
        }
    }
}

/// A temporary folder. It is removed with the value.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}
