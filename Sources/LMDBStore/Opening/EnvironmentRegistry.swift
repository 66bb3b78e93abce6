import LMDB
internal import Platform
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The files that this process has open: LMDB loses its locks when one is opened twice.
///
/// The lock is held to change the table only. Who opens, copies or closes a file claims it meanwhile, and who wants the same one waits.
enum EnvironmentRegistry {
    fileprivate struct Entry {
        weak var store: LMDBStore?
        var environment: Environment
        /// Resolved.
        var path: String
    }

    /// What somebody works on: a file and the name that led to it, or a file that is not there yet.
    fileprivate enum Claim: Hashable {
        case file(FileIdentity)
        case name(String)
        /// Which file it will be is known when it is there, so only one is made at a time, and nobody else begins meanwhile.
        case newFile
    }

    fileprivate struct Table {
        var entries: [FileIdentity: Entry] = [:]
        var busy: Set<Claim> = []
        /// Who made the claims.
        var process = getpid()
    }

    private static let table = ConditionLock(Table())

    /// What is known of a file at the moment when it is free to be used.
    private enum Found {
        case open(LMDBStore)
        /// It is claimed for the caller, who closes what the last user has left.
        case claimed(Set<Claim>, left: Environment?, openFiles: Int)
    }

    private static func find(_ path: String) throws -> Found {
        try table.wait { table in
            let file = try FileIdentity.of(path: path)
            guard let claims = table.claim(path, file) else { return nil }
            if let file, let other = table.entries.first(where: { $0.value.path == path && $0.key != file }),
                !other.value.environment.isOfForkedParent
            {
                table.busy.subtract(claims)
                // Its last reference went, and another thread is about to close it.
                guard other.value.store != nil else { return nil }
                // The two would share one lock file, and with it their locks.
                throw StoreError(
                    .inUseElsewhere,
                    "\(path) cannot be opened: another file has taken the place of one that is still open here. Close that first")
            }
            let openFiles = table.entries.count
            guard let file, let entry = table.entries[file], !entry.environment.isOfForkedParent else {
                return .claimed(claims, left: nil, openFiles: openFiles)
            }
            if let store = entry.store {
                table.busy.subtract(claims)
                return .open(store)
            }
            // Its last reference went on another thread, which has not come to closing yet.
            table.entries[file] = nil
            return .claimed(claims, left: entry.environment, openFiles: openFiles)
        }
    }

    private static func release(_ claims: Set<Claim>) { table.withLock { $0.busy.subtract(claims) } }

    /// The store of a file that is open, else one that `open` makes. One at a time for a file, so that no two can open it.
    /// - Parameter path: resolved, here as in the other functions.
    static func store(
        path: String, schema: StoreSchema, open: (_ openFiles: Int) throws -> OpenedFile
    ) throws -> LMDBStore {
        switch try find(path) {
        case .open(let store):
            guard let difference = SchemaDifference.first(of: schema, from: store.schema) else { return store }
            throw StoreError(.schemaMismatch, "\(path) is open with another schema: \(difference). Use one model for a file")
        case .claimed(let claims, let left, let openFiles):
            defer { release(claims) }
            left?.close()
            let opened = try open(openFiles)
            let store = LMDBStore(opened)
            table.withLock { $0.entries[opened.file] = Entry(store: store, environment: opened.environment, path: path) }
            return store
        }
    }

    /// Whether this process has the file open, or is about to.
    static func isOpen(_ file: FileIdentity) -> Bool {
        table.withLock { $0.entries[file] != nil || $0.busy.contains(.file(file)) }
    }

    /// The store of a file that this process has open.
    static func openStore(path: String) throws -> LMDBStore? {
        switch try find(path) {
        case .open(let store): return store
        case .claimed(let claims, let left, _):
            defer { release(claims) }
            left?.close()
            return nil
        }
    }

    /// Runs `body` while nobody of this process has the file open, nor opens one. Waits for half a second when somebody has: what
    /// is let go of here may be held for a moment by the writer's queue. Blocking.
    static func exclusively<R>(path: String, _ body: () throws -> R) throws -> R {
        for _ in 0..<100 {
            if case .claimed(let claims, let left, _) = try find(path) {
                defer { release(claims) }
                left?.close()
                return try body()
            }
            usleep(5_000)
        }
        throw StoreError(
            .inUseElsewhere, "\(path) is open in this process. Close it first, so that another file can take its place")
    }

    /// Called when the last reference to a store goes.
    static func close(_ environment: Environment, _ file: FileIdentity) {
        let isOurs = table.wait { table -> Bool? in
            // Who has opened the file meanwhile has closed what we left.
            guard table.entries[file]?.environment === environment else { return false }
            table.forgetClaimsOfParent()
            guard !table.busy.contains(.file(file)) else { return nil }
            table.entries[file] = nil
            table.busy.insert(.file(file))
            return true
        }
        guard isOurs else { return }
        environment.close()
        release([.file(file)])
    }
}

extension EnvironmentRegistry.Table {
    /// nil while another works on the file.
    fileprivate mutating func claim(
        _ path: String, _ file: FileIdentity?
    ) -> Set<EnvironmentRegistry.Claim>? {
        // Other names of the file have the same identity, but a migration puts another file under a name.
        let claims: Set<EnvironmentRegistry.Claim> = file.map { [.file($0), .name(path)] } ?? [.newFile, .name(path)]
        forgetClaimsOfParent()
        guard !busy.contains(.newFile), busy.isDisjoint(with: claims) else { return nil }
        busy.formUnion(claims)
        return claims
    }

    /// A fork has the claims of threads that it has not taken along.
    fileprivate mutating func forgetClaimsOfParent() {
        let current = getpid()
        if process != current { (process, busy) = (current, []) }
    }
}
