import LMDB
import Locking
import StoreInterface

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The files that this process has open: LMDB loses its locks when one is opened twice.
enum EnvironmentRegistry {
    private struct Entry {
        weak var store: LMDBStore?
        var environment: Environment
    }

    private static let entries = Mutex<[FileIdentity: Entry]>([:])

    /// The store of a file that is open, else one that `open` makes. One at a time, so that no two can open one file.
    static func store(
        path: String, schema: StoreSchema, open: (_ openFiles: Int) throws -> OpenedFile
    ) throws -> LMDBStore {
        let (store, difference) = try entries.withLock { entries -> (LMDBStore, String?) in
            if let file = try FileIdentity.of(path: path), let entry = entries[file], !entry.environment.isOfForkedParent {
                if let store = entry.store { return (store, SchemaDifference.first(of: schema, from: store.schema)) }
                // Its last reference went on another thread, which has not come to closing yet.
                entry.environment.close()
                entries[file] = nil
            }
            let opened = try open(entries.count)
            let store = LMDBStore(opened)
            entries[opened.file] = Entry(store: store, environment: opened.environment)
            return (store, nil)
        }
        // Outside of the lock, because dropping the store here may close it, which takes the lock.
        if let difference {
            throw StoreError(.schemaMismatch, "\(path) is open with another schema: \(difference). Use one model for a file")
        }
        return store
    }

    /// Whether this process has the file open.
    static func isOpen(_ file: FileIdentity) -> Bool { entries.withLock { $0[file] != nil } }

    /// The store of a file that this process has open.
    static func openStore(path: String) -> LMDBStore? {
        entries.withLock { entries in
            guard let file = try? FileIdentity.of(path: path), let entry = entries[file], !entry.environment.isOfForkedParent
            else { return nil }
            return entry.store
        }
    }

    /// Runs `body` while nobody of this process has the file open, nor opens one. Waits for half a second when somebody has: what
    /// is let go of here may be held for a moment by the writer's queue. Blocking.
    static func exclusively<R>(path: String, _ body: () throws -> R) throws -> R {
        for _ in 0..<100 {
            if let result = try exclusivelyNow(path: path, body) { return result }
            usleep(5_000)
        }
        throw StoreError(.inUseElsewhere, "\(path) is open in this process. Close it before it is migrated in stages")
    }

    /// nil: somebody has the file open.
    private static func exclusivelyNow<R>(path: String, _ body: () throws -> R) throws -> R? {
        // Let go of outside of the lock, because dropping the last reference takes it.
        var inUse: LMDBStore?
        defer { withExtendedLifetime(inUse) {} }
        return try entries.withLock { entries in
            if let file = try FileIdentity.of(path: path), let entry = entries[file], !entry.environment.isOfForkedParent {
                inUse = entry.store
                guard inUse == nil else { return nil }
                entry.environment.close()
                entries[file] = nil
            }
            return try body()
        }
    }

    /// Called when the last reference to a store goes.
    static func close(_ environment: Environment, _ file: FileIdentity) {
        entries.withLock { entries in
            if entries[file]?.environment === environment { entries[file] = nil }
            environment.close()
        }
    }
}
