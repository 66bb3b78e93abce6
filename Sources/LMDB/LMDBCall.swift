internal import CLMDB
internal import Platform

/// The C functions that this module calls, for errors and for injected faults.
package enum LMDBCall: String, Sendable, Hashable, CaseIterable {
    case environmentCreate = "mdb_env_create"
    case environmentOpen = "mdb_env_open"
    case setMapSize = "mdb_env_set_mapsize"
    case setMaxDatabases = "mdb_env_set_maxdbs"
    case setMaxReaders = "mdb_env_set_maxreaders"
    case information = "mdb_env_info"
    case readerCheck = "mdb_reader_check"
    case readerList = "mdb_reader_list"
    case copyToDescriptor = "mdb_env_copyfd2"
    case copy = "mdb_env_copy2"
    case fileDescriptor = "mdb_env_get_fd"
    case version = "mdb_version"
    /// A call of the system: `fallocate`, `F_PREALLOCATE`.
    case reserve = "fallocate"
    case begin = "mdb_txn_begin"
    case renew = "mdb_txn_renew"
    case commit = "mdb_txn_commit"
    case openDatabase = "mdb_dbi_open"
    case databaseFlags = "mdb_dbi_flags"
    case statistics = "mdb_stat"
    case get = "mdb_get"
    case put = "mdb_put"
    case delete = "mdb_del"
    case drop = "mdb_drop"
    case openCursor = "mdb_cursor_open"
    case cursorGet = "mdb_cursor_get"
    case cursorPut = "mdb_cursor_put"
    case cursorDelete = "mdb_cursor_del"
    case cursorCount = "mdb_cursor_count"
}

/// The linked LMDB library.
package enum LMDBLibrary {
    /// The release line of the library. One line cannot read files of another line.
    package static let line: String = {
        var major: Int32 = 0
        var minor: Int32 = 0
        var patch: Int32 = 0
        _ = mdb_version(&major, &minor, &patch)
        return "\(major).\(minor)"
    }()

    /// The release line whose page layout this module knows.
    static let knownLine = "0.9"

    /// Refuses a library of a release line whose page layout is unknown, because this module also reads pages without the library.
    /// - Throws: ``LMDBError`` `.versionMismatch`
    package static func check(_ line: String = line) throws(LMDBError) {
        guard line == knownLine else { throw LMDBError(returnCode: MDB_VERSION_MISMATCH, call: .version) }
    }
}

/// Injects failures into the calls of LMDB, on all threads, in DEBUG builds.
package enum LMDBFaults {
    /// Returns the return code of a call, which is then skipped; nil to let the call run. Runs on the thread of the call.
    package typealias Injector = @Sendable (LMDBCall) -> Int32?

    /// An injector for the environments of some files, until ``end()``.
    package final class Hook: Sendable {
        fileprivate let paths: Set<String>
        fileprivate let injector: Injector
        private let isActive = Atomic(true)

        /// - Parameter path: A file, or a folder with files.
        fileprivate init(_ path: String, _ injector: @escaping Injector) {
            paths = [path, (try? FileSystem.realPath(path)) ?? path]
            self.injector = injector
        }

        /// Ends the injection. Calls that have asked the injector already still fail.
        package func end() {
            guard isActive.exchange(false, ordering: .acquiringAndReleasing) else { return }
            hooks.withLock { hooks in hooks.removeAll { $0 === self } }
            count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        }

        fileprivate func matches(_ path: String) -> Bool { paths.contains { path == $0 || path.hasPrefix("\($0)/") } }
    }

    private static let hooks = Mutex<[Hook]>([])
    /// The number of hooks, so that calls take no lock while there is none.
    private static let count = Atomic(0)

    /// Asks `injector` before each call in the environments of a file, or of the files in a folder, until the hook is ended.
    package static func inject(at path: String, _ injector: @escaping Injector) -> Hook {
        let hook = Hook(path, injector)
        hooks.withLock { $0.append(hook) }
        count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        return hook
    }

    /// Asks `injector` before each call in the environments of a file, or of the files in a folder, until `body` returns.
    @discardableResult
    package static func withInjector<R>(
        at path: String, _ injector: @escaping Injector, _ body: () throws -> R
    ) rethrows -> R {
        let hook = inject(at: path, injector)
        defer { hook.end() }
        return try body()
    }

    static func fault(_ call: LMDBCall, _ target: CallTarget) -> Int32? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        let path = target.path
        // A lazy sequence would ask each injector twice.
        for hook in hooks.withLock({ $0 }) where hook.matches(path) {
            if let fault = hook.injector(call) { return fault }
        }
        return nil
    }
}

/// The object of LMDB that a call uses. An injected fault finds the file by it.
enum CallTarget {
    /// The file at a path, before its environment is open.
    case file(String)
    case environment(OpaquePointer)
    case transaction(OpaquePointer)
    case cursor(OpaquePointer)

    /// The path with which the environment was opened.
    fileprivate var path: String {
        let environment: OpaquePointer?
        switch self {
        case .file(let path): return path
        case .environment(let pointer): environment = pointer
        case .transaction(let pointer): environment = mdb_txn_env(pointer)
        case .cursor(let pointer): environment = mdb_txn_env(mdb_cursor_txn(pointer))
        }
        var path: UnsafePointer<CChar>?
        // Fails for no environment only.
        if let environment { mdb_env_get_path(environment, &path) }
        return path.map { String(cString: $0) } ?? ""
    }
}

/// Runs one C call and throws if its return code is an error.
@inline(__always)
func check(_ call: LMDBCall, of target: CallTarget, _ body: () -> Int32) throws(LMDBError) {
    let code = answer(call, of: target, body)
    guard code == MDB_SUCCESS else { throw LMDBError(returnCode: code, call: call) }
}

/// Runs one C call like ``check(_:of:_:)``. Returns false for "no such key" and for "already exists".
@inline(__always)
func found(_ call: LMDBCall, of target: CallTarget, _ body: () -> Int32) throws(LMDBError) -> Bool {
    let code = answer(call, of: target, body)
    if code == MDB_SUCCESS { return true }
    if code == MDB_NOTFOUND || code == MDB_KEYEXIST { return false }
    throw LMDBError(returnCode: code, call: call)
}

@inline(__always)
private func answer(_ call: LMDBCall, of target: CallTarget, _ body: () -> Int32) -> Int32 {
    #if DEBUG
        if let fault = LMDBFaults.fault(call, target) { return fault }
    #endif
    return body()
}
