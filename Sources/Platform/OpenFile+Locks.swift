#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension OpenFile {
    // MARK: Locks of the open file

    package enum LockKind: Sendable { case shared, exclusive }

    /// `flock`: waits for a lock on the file. It belongs to the open file and ends with its last descriptor.
    package func lock(_ kind: LockKind) throws(SystemError) {
        _ = try check(.lock, at: path) { flock(descriptor, kind == .shared ? LOCK_SH : LOCK_EX) }
    }

    /// `flock`, without waiting. Fails with `EWOULDBLOCK` if another process has the lock.
    package func tryLock(_ kind: LockKind) throws(SystemError) {
        _ = try check(.lock, at: path) { flock(descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) }
    }

    /// Releases a lock of `flock`. Closing alone is not enough: a process that is being spawned also has the descriptor until it
    /// runs its program.
    package func unlock() { flock(descriptor, LOCK_UN) }

    // MARK: Locks on a byte

    /// The owner of a lock on a byte.
    package enum LockOwner: Sendable {
        /// The process (`F_SETLK`): closing any descriptor of the file releases the lock, and the process does not see its own.
        case process
        /// The open file (`F_OFD_SETLK`) if the system has such locks; else the process.
        case openFile

        fileprivate var setCommand: Int32 {
            #if canImport(Darwin)
                F_SETLK
            #else
                // Linux's F_OFD_SETLK, which its C library hides behind a macro.
                self == .process ? F_SETLK : 37
            #endif
        }

        fileprivate var getCommand: Int32 {
            #if canImport(Darwin)
                F_GETLK
            #else
                // Linux's F_OFD_GETLK.
                self == .process ? F_GETLK : 36
            #endif
        }
    }

    /// `fcntl`: locks a byte, which may be beyond the end of the file. Does not wait.
    /// - Returns: false if the lock of another owner prevents it.
    package func tryLock(byte: Int, _ kind: LockKind, owner: LockOwner) throws(SystemError) -> Bool {
        var request = Self.request(kind == .exclusive ? F_WRLCK : F_RDLCK, byte)
        do {
            _ = try check(.lock, at: path) { fcntl(descriptor, owner.setCommand, &request) }
            return true
        } catch {
            guard error == .tryAgain || error == .accessDenied else { throw error }
            return false
        }
    }

    /// `fcntl`: releases a lock on a byte.
    package func unlock(byte: Int, owner: LockOwner) {
        var request = Self.request(F_UNLCK, byte)
        _ = fcntl(descriptor, owner.setCommand, &request)
    }

    /// Returns whether another owner has a lock on a byte. Needs only read permission.
    package func isLockedElsewhere(byte: Int, owner: LockOwner) throws(SystemError) -> Bool {
        var request = Self.request(F_WRLCK, byte)
        _ = try check(.lock, at: path) { fcntl(descriptor, owner.getCommand, &request) }
        return request.l_type != Int16(truncatingIfNeeded: F_UNLCK)
    }

    private static func request(_ kind: some BinaryInteger, _ byte: Int) -> flock {
        var request = flock()
        request.l_type = Int16(truncatingIfNeeded: kind)
        request.l_whence = Int16(truncatingIfNeeded: SEEK_SET)
        request.l_start = off_t(byte)
        request.l_len = 1
        return request
    }
}
