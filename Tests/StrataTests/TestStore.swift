import Foundation
import SQLiteStore
import Strata

/// A store for one test, which can be opened again.
enum TestStore: CaseIterable {
    case memory, lmdb, sqlite

    /// Runs a test with the store's description and removes the files afterwards.
    @MainActor func use(_ body: @MainActor (StoreDescription) async throws -> Void) async throws {
        let name = "strata-\(UUID().uuidString)"
        switch self {
        case .memory:
            try await body(.memory(name: name))
        case .lmdb, .sqlite:
            let folder = FileManager.default.temporaryDirectory.appending(path: name)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let file = folder.appending(path: "music.strata")
            try await body(self == .lmdb ? .lmdb(file) : .sqlite(file))
        }
    }
}
