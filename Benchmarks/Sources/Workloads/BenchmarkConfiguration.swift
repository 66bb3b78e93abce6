import CoreDataRouting
import Foundation
import LMDBStore
import MemoryStore
import ObjectGraph
import SQLiteStore
import StoreInterface

/// The store of a run.
public enum StoreKind: String, Sendable, Hashable, CaseIterable {
    case lmdb, sqlite, memory
}

/// One combination of stack, store and routing.
public struct BenchmarkConfiguration: Sendable, Hashable {
    public var stack: ContextStack
    public var store: StoreKind
    public var routing: Routing

    public init(stack: ContextStack, store: StoreKind, routing: Routing) {
        self.stack = stack
        self.store = store
        self.routing = routing
    }

    public var name: String { "\(stack.rawValue), \(store.rawValue), \(routing.rawValue)" }

    /// Returns the configuration for benchmarks that do not compare stacks and routings.
    static func siblings(_ store: StoreKind) -> BenchmarkConfiguration {
        BenchmarkConfiguration(stack: .siblings, store: store, routing: .snapshot)
    }

    /// Returns the combinations that exist. The routing `ancestors` imitates Core Data on SQLite, and exists only there.
    public static func all(stacks: [ContextStack], stores: [StoreKind], routings: [Routing]) -> [BenchmarkConfiguration] {
        stores.flatMap { store in
            routings.filter { store == .sqlite || $0 == .snapshot }.flatMap { routing in
                stacks.map { BenchmarkConfiguration(stack: $0, store: store, routing: routing) }
            }
        }
    }
}

/// The data that a power cut may lose.
public enum DurabilityKind: String, Sendable, Hashable, CaseIterable {
    /// No data.
    case durable
    /// The newest saves. The file stays intact.
    case deferred

    package var durability: Durability { self == .durable ? .durable : .deferred }
}

/// A folder for the files of one run. It is removed with the value.
package final class RunFolder: Sendable {
    private let url: URL
    private let memoryName = UUID().uuidString

    package init() throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "strata-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    package func path(_ name: String) -> String { url.appending(path: name).path }

    func store(_ kind: StoreKind, _ routing: Routing) -> StoreDescription {
        switch kind {
        case .lmdb: .lmdb(url.appending(path: "store.strata"))
        case .sqlite: .sqlite(url.appending(path: "store.sqlite"), routing: routing)
        case .memory: .memory(name: memoryName)
        }
    }

    /// Returns the bytes on disk of all files except LMDB's lock table, which is not data.
    package func fileBytes() -> Int {
        let files = (try? FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)) ?? []
        return files.filter { !$0.path.hasSuffix("lock") }.reduce(0) { total, file in
            var status = stat()
            // Sparse files count with their allocated blocks. A block is 512 bytes here.
            guard stat(file.path, &status) == 0 else { return total }
            return total + min(Int(status.st_size), Int(status.st_blocks) * 512)
        }
    }
}
