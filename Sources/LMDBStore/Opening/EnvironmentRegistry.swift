import LMDB
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The files that this process has open. LMDB loses its locks if a file is opened twice.
///
/// The lock is acquired only to change the table. A caller that opens, copies or closes a file claims the file meanwhile.
/// Other callers wait for the claim.
enum EnvironmentRegistry {
    fileprivate struct Entry {
        weak var store: LMDBStore?
        var environment: Environment
        /// The resolved path.
        var path: String
        /// The lock file; nil if the file is read without one.
        var lock: FileIdentity?

        init(store: LMDBStore, environment: Environment, path: String) {
            (self.store, self.environment, self.path) = (store, environment, path)
            lock = try? FileIdentity.of(path: path + "-lock")
        }

        func isAt(_ other: String) -> Bool { StoreFile.areSamePaths(path, other) }
    }

    /// The subject of a claim: a file and the name that led to it, or a file that does not exist yet.
    fileprivate enum Claim: Hashable {
        case file(FileIdentity)
        /// The bytes of the resolved path.
        case name([UInt8])
        /// A file that is being created. Its identity is known only when it exists, so only one file is created at a time,
        /// and no other claim begins meanwhile.
        case newFile
    }

    fileprivate struct Table {
        var entries: [FileIdentity: Entry] = [:]
        var busy: Set<Claim> = []
        /// The process that made the claims.
        var process = CurrentProcess.identifier
    }

    private static let table = ConditionLock(Table())

    /// The number of attempts, and the microseconds between them, for a store that must not be open. The writer's queue may reference a
    /// released store for a moment.
    private static let patience = (tries: 100, wait: UInt32(5_000))

    /// Thrown while a store has the lock file of a path, and another file, or none, has the name.
    private struct Displaced: Error {
        let isGone: Bool
    }

    /// The state of a file at the moment when it is free to be used.
    private enum Found {
        case open(LMDBStore)
        /// The file is claimed for the caller, who closes the environment left by the last user.
        case claimed(Set<Claim>, left: Environment?, openFiles: Int)
    }

    /// Claims a file that is not open, or finds its store. Waits half a second for the closing of a store whose file has lost this name.
    /// - Throws: `StoreError` `.inUseElsewhere` if that store stays open.
    private static func find(_ path: String) throws -> Found {
        var isGone = false
        for _ in 0..<patience.tries {
            do { return try look(path) } catch let displaced as Displaced { isGone = displaced.isGone }
            CurrentThread.sleep(microseconds: patience.wait)
        }
        throw StoreError(
            .inUseElsewhere,
            isGone
                ? "cannot use \(path): the file was deleted or moved, and is still open in this process. Move it back, or close its store"
                : "cannot use \(path): another file has replaced a file that is still open in this process. Close that store first"
        )
    }

    private static func look(_ path: String) throws -> Found {
        // Closing a store takes the lock of the table, so its last reference must not go inside.
        var other: LMDBStore?
        defer { withExtendedLifetime(other) {} }
        return try table.wait { table in
            let file = try FileIdentity.of(path: path)
            guard let claims = table.claim(path, file) else { return nil }
            if let displaced = table.displaced(from: path, by: file) {
                table.busy.subtract(claims)
                other = displaced.store
                // The store's last reference was released, and another thread is about to close it.
                guard other != nil else { return nil }
                throw Displaced(isGone: file == nil)
            }
            if let file { table.forgetRemoved(file, path) }
            let openFiles = table.entries.count
            guard let file, let entry = table.entries[file], !entry.environment.isOfForkedParent else {
                return .claimed(claims, left: nil, openFiles: openFiles)
            }
            if let store = entry.store {
                other = store
                table.busy.subtract(claims)
                // The lock file and the signal file have the name under which the file was opened. A name that cannot be read leads
                // elsewhere.
                if !entry.isAt(path), (try? FileIdentity.of(path: entry.path)) != file {
                    throw StoreError(
                        .inUseElsewhere,
                        "\(path) cannot be opened: it was moved from \(entry.path), as which this process has it open. Close that store first"
                    )
                }
                return .open(store)
            }
            // The store's last reference was released on another thread, which has not closed the file yet.
            table.entries[file] = nil
            return .claimed(claims, left: entry.environment, openFiles: openFiles)
        }
    }

    private static func release(_ claims: Set<Claim>) { table.withLock { $0.busy.subtract(claims) } }

    /// Returns the store of an open file, or the store that `open` creates. Only one thread at a time works on a file, so
    /// that no two threads open it.
    /// - Parameter path: The resolved path, as in the other functions.
    static func store(
        path: String, schema: StoreSchema, open: (_ openFiles: Int) throws -> OpenedFile
    ) throws -> LMDBStore {
        switch try find(path) {
        case .open(let store):
            let schema = schema.keepingKeyedValues(of: store.schema, mayAdd: false)
            if let difference = SchemaDifference.first(of: schema, from: store.schema) {
                throw StoreError(.schemaMismatch, "\(path) is open with another schema: \(difference). Use one model for a file")
            }
            guard try mayShare(store.schema, with: schema, path: path), try mayShare(schema, with: store.schema, path: path)
            else {
                throw StoreError(.schemaMismatch, "\(path) is open with other inverses or destinations. Use one model for a file")
            }
            return store
        case .claimed(let claims, let left, let openFiles):
            defer { release(claims) }
            left?.close()
            let opened = try open(openFiles)
            let store = LMDBStore(opened)
            table.withLock { $0.entries[opened.file] = Entry(store: store, environment: opened.environment, path: path) }
            return store
        }
    }

    /// Returns whether a file may be used with the inverses and destinations of another model too.
    private static func mayShare(_ schema: StoreSchema, with other: StoreSchema, path: String) throws -> Bool {
        let inverses = InversePairs(of: schema)
        // A schema that was read from a file does not tell, and then agrees with every model.
        let recorded = RecordedSchemas(
            schema.withoutHints, exchanged: ExchangedNames(of: other), inverses: inverses,
            destinations: NarrowedDestinations(of: inverses == nil ? other : schema))
        return try SchemaPath(from: recorded, to: other, path: path).losses.isEmpty
    }

    /// Returns whether this process has the file open, or is about to open it.
    static func isOpen(_ file: FileIdentity) -> Bool {
        table.withLock { $0.entries[file] != nil || $0.busy.contains(.file(file)) }
    }

    /// Returns the result of `known` if this process has the file open, and otherwise that of `other`, while no other thread opens the file.
    static func looking<R>(path: String, open known: (LMDBStore) -> R, other: () throws -> R) throws -> R {
        switch try find(path) {
        case .open(let store): return known(store)
        case .claimed(let claims, let left, _):
            defer { release(claims) }
            left?.close()
            return try other()
        }
    }

    /// Runs `body` while this process does not have the file open and does not open it. Waits half a second if the file is
    /// open, because the writer's queue may reference a released store for a moment. Blocks.
    static func exclusively<R>(path: String, _ body: () throws -> R) throws -> R {
        for _ in 0..<patience.tries {
            if case .claimed(let claims, let left, _) = try find(path) {
                defer { release(claims) }
                left?.close()
                return try body()
            }
            CurrentThread.sleep(microseconds: patience.wait)
        }
        throw StoreError(
            .inUseElsewhere, "\(path) is open in this process. Close it first, so that another file can replace it")
    }

    /// Closes an environment after the last reference to its store was released.
    static func close(_ environment: Environment, _ file: FileIdentity) {
        let isOurs = table.wait { table -> Bool? in
            // A caller that has reopened the file has already closed this environment.
            guard table.entries[file]?.environment === environment else { return false }
            table.forgetClaimsOfParent()
            guard !table.busy.contains(.file(file)) else { return nil }
            // Keeps the entry: closing the lock file would end the locks of another file that is opened under this name meanwhile.
            table.busy.insert(.file(file))
            return true
        }
        guard isOurs else { return }
        environment.close()
        table.withLock { table in
            // The system may have given the identity of a deleted file to a new one.
            if table.entries[file]?.environment === environment { table.entries[file] = nil }
            table.busy.subtract([.file(file)])
        }
    }

    /// Runs `body`, which opens the file of a suspended store again, while no other thread opens a file at its path.
    /// - Throws: `StoreError` `.fileReplaced` if another file of that path is open. The two would share one lock file.
    static func reopening<R>(_ store: LMDBStore, _ body: () throws -> R) throws -> R {
        let (file, path, environment) = (store.file, store.url.path, store.environment)
        let claims: Set<Claim> = [.file(file), .name(Array(path.utf8))]
        let isFree = table.wait { table -> Bool? in
            table.forgetClaimsOfParent()
            guard table.busy.isDisjoint(with: claims) else { return nil }
            guard table.displaced(from: path, by: file) == nil else { return false }
            // The file may have been deleted, and a new one may have its identity.
            if let entry = table.entries[file], entry.environment !== environment { return false }
            table.busy.formUnion(claims)
            return true
        }
        guard isFree else { throw StoreError.fileReplaced(path, isGone: false) }
        defer { release(claims) }
        let result = try body()
        // A file that was moved for a while may have lost its entry.
        table.withLock { $0.entries[file] = Entry(store: store, environment: environment, path: path) }
        return result
    }
}

extension EnvironmentRegistry.Table {
    /// Claims a file. Returns nil while another thread works on the file.
    fileprivate mutating func claim(
        _ path: String, _ file: FileIdentity?
    ) -> Set<EnvironmentRegistry.Claim>? {
        let name = EnvironmentRegistry.Claim.name(Array(path.utf8))
        // Other names of the file have the same identity. A migration, however, replaces the file that a name leads to.
        let claims: Set<EnvironmentRegistry.Claim> = file.map { [.file($0), name] } ?? [.newFile, name]
        forgetClaimsOfParent()
        guard !busy.contains(.newFile), busy.isDisjoint(with: claims) else { return nil }
        busy.formUnion(claims)
        return claims
    }

    /// Returns an entry whose store has the lock file of a path, if its file was deleted, moved or replaced. A second file at that path
    /// would have the same lock file, and closing it for one of the two ends the locks of both.
    ///
    /// A suspended store has closed the lock file. If the lock file was deleted too, for example with its folder, a new file gets another one.
    fileprivate func displaced(from path: String, by file: FileIdentity?) -> EnvironmentRegistry.Entry? {
        entries.first { known, entry in
            guard known != file, entry.isAt(path), let lock = entry.lock, entry.environment.hasLocks,
                !entry.environment.isOfForkedParent
            else { return false }
            return (try? FileIdentity.of(path: path + "-lock")) == lock
        }?.value
    }

    /// Removes the entry of a suspended store whose file was removed. A closed file does not keep its identity, and the system may have given
    /// it to the file at this path. The store refuses to open its file again.
    fileprivate mutating func forgetRemoved(_ file: FileIdentity, _ path: String) {
        guard let entry = entries[file], !entry.isAt(path), !entry.environment.hasLocks else { return }
        // If the system does not say where the path leads, the store cannot open its file either.
        let present = try? FileIdentity.of(path: entry.path)
        if present != file { entries[file] = nil }
    }

    /// Removes claims that a fork has inherited from threads of its parent.
    fileprivate mutating func forgetClaimsOfParent() {
        let current = CurrentProcess.identifier
        if process != current { (process, busy) = (current, []) }
    }
}
