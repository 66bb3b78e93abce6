import Foundation
import LMDB
import StoreContract

/// An environment in a folder that is removed with it. Releasing the last of its transactions closes the file.
final class TemporaryEnvironment {
    private let temporary: TemporaryFolder
    var folder: URL { temporary.url }
    let environment: Environment

    init(mapSize: Int = 1 << 24, maximumReaders: Int = 126, maximumDatabases: Int = 8) throws {
        temporary = try TemporaryFolder()
        let folder = temporary.url
        environment = try Environment(
            path: folder.appendingPathComponent("data").path,
            options: .init(
                mapSize: mapSize, smallestMapSize: 1 << 20, maximumReaders: maximumReaders, maximumDatabases: maximumDatabases))
    }

    func open(_ name: String, _ kind: Database.Kind) throws -> Database {
        try environment.write { try $0.open(name, kind) }
    }
}

func bytes<R>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try Array(text.utf8).withUnsafeBytes(body)
}

func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

/// Returns the LMDB error that `body` throws.
func failure(_ body: () throws -> Void) -> LMDBError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? LMDBError)?.code
    }
}
