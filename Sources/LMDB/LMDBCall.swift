internal import CLMDB

/// The C functions that this module calls, for errors and for injected faults.
public enum LMDBCall: String, Sendable, Hashable, CaseIterable {
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
public enum LMDBLibrary {
    /// The release line of the library. One line cannot read files of another line.
    public static let line: String = {
        var major: Int32 = 0
        var minor: Int32 = 0
        var patch: Int32 = 0
        _ = mdb_version(&major, &minor, &patch)
        return "\(major).\(minor)"
    }()
}

/// A way to make calls fail on purpose, in DEBUG builds.
public enum LMDBFaults {
    /// A closure that runs before each call, in the task that has set it. If it returns a number, the call is skipped and
    /// returns that number.
    @TaskLocal public static var injector: (@Sendable (LMDBCall) -> Int32?)?
}

/// Runs one C call and throws if its return code is an error.
@inline(__always)
func check(_ call: LMDBCall, _ body: () -> Int32) throws(LMDBError) {
    let code = answer(call, body)
    guard code == MDB_SUCCESS else { throw LMDBError(returnCode: code, call: call) }
}

/// Runs one C call like ``check(_:_:)``. Returns false for "no such key" and for "already exists".
@inline(__always)
func found(_ call: LMDBCall, _ body: () -> Int32) throws(LMDBError) -> Bool {
    let code = answer(call, body)
    if code == MDB_SUCCESS { return true }
    if code == MDB_NOTFOUND || code == MDB_KEYEXIST { return false }
    throw LMDBError(returnCode: code, call: call)
}

@inline(__always)
private func answer(_ call: LMDBCall, _ body: () -> Int32) -> Int32 {
    #if DEBUG
        if let fault = LMDBFaults.injector?(call) { return fault }
    #endif
    return body()
}
