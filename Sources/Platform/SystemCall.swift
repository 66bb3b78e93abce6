/// The calls of the operating system that a test can make fail.
package enum SystemCall: String, Sendable, Hashable, CaseIterable {
    case open
    case read
    case write
    case sync = "fsync"
    case status = "stat"
    case lock
    case allocate = "fallocate"
    case setTimes = "futimens"
    case rename
    case link
    case remove = "unlink"
    case setMode = "chmod"
    case setOwner = "chown"
    case access
    case realPath = "realpath"
    case map = "mmap"
    case pipe
    case watch = "inotify"
}

/// Injects failures into calls of the operating system, on all threads, in DEBUG builds.
package enum SystemFaults {
    /// Returns the error number for a call, or nil to let it run. `path` is empty for a descriptor that came from outside.
    package typealias Injector = @Sendable (_ call: SystemCall, _ path: String) -> Int32?

    private static let injectors = Mutex<[Int: Injector]>([:])
    /// The number of injectors, so that calls take no lock while there is none.
    private static let count = Atomic(0)
    private static let next = Atomic(0)

    /// Asks `injector` before each call of the process until `body` returns. It sees the calls of all threads, so it must
    /// compare the path.
    package static func withInjector<R>(_ injector: @escaping Injector, _ body: () throws -> R) rethrows -> R {
        let key = next.wrappingAdd(1, ordering: .relaxed).newValue
        injectors.withLock { $0[key] = injector }
        count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        defer {
            count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
            injectors.withLock { _ = $0.removeValue(forKey: key) }
        }
        return try body()
    }

    static func fault(_ call: SystemCall, _ path: String) -> Int32? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        let asked = injectors.withLock { Array($0.values) }
        // A lazy sequence would ask each injector twice.
        for injector in asked {
            if let fault = injector(call, path) { return fault }
        }
        return nil
    }
}

/// Runs a C function that returns a negative number if it fails. Repeats it if a signal interrupted it.
@inline(__always)
func check<T: SignedInteger>(_ call: SystemCall, at path: String, _ body: () -> T) throws(SystemError) -> T {
    #if DEBUG
        if let fault = SystemFaults.fault(call, path) { throw SystemError(number: fault) }
    #endif
    while true {
        let result = body()
        if result >= 0 { return result }
        let error = SystemError.last
        guard error == .interrupted else { throw error }
    }
}
