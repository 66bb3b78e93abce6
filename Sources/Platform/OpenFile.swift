internal import CPlatform

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// An open file, pipe or socket, until ``close()``. Each method is a call of the system, repeated if a signal interrupts it.
package struct OpenFile: Sendable {
    package let descriptor: Int32
    /// The path that the file was opened with; empty for a descriptor that came from outside.
    package let path: String

    package enum Access: Sendable { case read, write, readAndWrite }

    package struct Options: OptionSet, Sendable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        /// `O_CREAT`: creates the file if there is none.
        package static let create = Options(rawValue: O_CREAT)
        /// `O_EXCL`: fails if there is a file, or a link.
        package static let exclusive = Options(rawValue: O_EXCL)
        /// `O_NOFOLLOW`: fails for a symbolic link.
        package static let noFollow = Options(rawValue: O_NOFOLLOW)
        /// `O_NONBLOCK`: does not wait for the other end of a pipe.
        package static let nonBlocking = Options(rawValue: O_NONBLOCK)
    }

    /// Wraps a descriptor that came from outside.
    package init(descriptor: Int32) {
        self.descriptor = descriptor
        path = ""
    }

    /// `open`. Programs that the process starts do not inherit the descriptor, and it is never that of a standard stream.
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - access: Whether to read, to write, or both.
    ///   - options: Further flags.
    ///   - permissions: The mode of a new file, before the process's mask.
    package init(
        _ path: String, access: Access, options: Options = [], permissions: UInt32 = 0o600
    ) throws(SystemError) {
        let mode =
            switch access {
            case .read: O_RDONLY
            case .write: O_WRONLY
            case .readAndWrite: O_RDWR
            }
        let mask = mode_t(truncatingIfNeeded: permissions)
        StandardStreams.occupyClosed()
        descriptor = try check(.open, at: path) { open(path, mode | options.rawValue | O_CLOEXEC, mask) }
        self.path = path
    }

    /// `pipe`. Programs that the process starts inherit neither end, and no end is a standard stream.
    package static func pipe() throws(SystemError) -> (reading: OpenFile, writing: OpenFile) {
        StandardStreams.occupyClosed()
        var ends: [Int32] = [0, 0]
        _ = try check(.pipe, at: "") { makePipe(&ends) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (OpenFile(descriptor: ends[0]), OpenFile(descriptor: ends[1]))
    }

    /// `close`. Also releases every lock on a byte of the file that belongs to the process.
    package func close() { closeDescriptor(descriptor) }

    /// `fstat`
    package func status() throws(SystemError) -> FileStatus { try FileStatus(self) }

    // MARK: Bytes

    /// `read`
    /// - Returns: The number of bytes read; 0 at the end.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        try check(.read, at: path) { readBytes(descriptor, into: buffer.baseAddress, count: buffer.count) }
    }

    /// `pread`
    /// - Returns: The number of bytes read, which is smaller at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        try check(.read, at: path) { pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset)) }
    }

    /// `write`, in as many calls as necessary.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try writeAll(bytes) { part, _ in writeBytes(descriptor, from: part.baseAddress, count: part.count) }
    }

    /// `pwrite`, in as many calls as necessary.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
        try writeAll(bytes) { part, done in pwrite(descriptor, part.baseAddress, part.count, off_t(offset + done)) }
    }

    private func writeAll(
        _ bytes: UnsafeRawBufferPointer, _ write: (_ part: UnsafeRawBufferPointer, _ done: Int) -> Int
    ) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let part = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = try check(.write, at: path) { write(part, done) }
            // Not expected of a file. Repeating the call could go on forever.
            guard count > 0 else { throw SystemError.diskFull }
            done += count
        }
    }

    // MARK: The disk

    /// `fsync`: returns when the file, or the names in a folder, are on disk.
    package func sync() throws(SystemError) { _ = try check(.sync, at: path) { fsync(descriptor) } }

    /// `fdatasync`, or `F_FULLFSYNC` on macOS: returns when the content and the size of the file are on disk.
    package func syncContent() throws(SystemError) {
        #if canImport(Darwin)
            // A plain sync leaves the data in the drive's cache, and not every file system has the other one.
            _ = try check(.sync, at: path) { fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : fsync(descriptor) }
        #else
            _ = try check(.sync, at: path) { fdatasync(descriptor) }
        #endif
    }

    /// `fallocate`, or `F_PREALLOCATE`: reserves room on the disk between two offsets, so that a later write there cannot fail for
    /// lack of room. The size of the file does not change. Does nothing on a file system without that service.
    /// - Throws: An error with ``SystemError/isDiskFull``, also if the process may not create a file of that size.
    package func allocate(from start: Int, to end: Int) throws(SystemError) {
        let code = try check(.allocate, at: path) { strata_allocate(descriptor, Int64(start), Int64(end)) }
        if code != 0 { throw SystemError(number: code) }
    }

    /// `mmap`: maps the first bytes of the file, private and writable. Changes of the mapping do not reach the file.
    /// The caller removes the mapping with ``AddressSpace/unmap(_:byteCount:)``.
    package func mapPrivately(byteCount: Int) throws(SystemError) -> UnsafeMutableRawPointer {
        #if DEBUG
            if let fault = SystemFaults.fault(.map, path) { throw SystemError(number: fault) }
        #endif
        let map = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0)
        guard let map, map != AddressSpace.failed else { throw SystemError.last }
        return map
    }

    // MARK: Owner, mode, times

    /// `fchmod`
    package func setPermissions(_ permissions: UInt32) throws(SystemError) {
        _ = try check(.setMode, at: path) { fchmod(descriptor, mode_t(truncatingIfNeeded: permissions)) }
    }

    /// `fchown`; nil leaves the owner.
    package func setOwner(_ owner: UInt32?, group: UInt32) throws(SystemError) {
        _ = try check(.setOwner, at: path) { fchown(descriptor, owner ?? uid_t.max, group) }
    }

    /// `futimens`: sets the file's times to now.
    package func touch() throws(SystemError) { _ = try check(.setTimes, at: path) { futimens(descriptor, nil) } }
}

// C functions under names that no method hides.

private func makePipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }

private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

private func readBytes(_ descriptor: Int32, into start: UnsafeMutableRawPointer?, count: Int) -> Int {
    read(descriptor, start, count)
}

private func writeBytes(_ descriptor: Int32, from start: UnsafeRawPointer?, count: Int) -> Int {
    write(descriptor, start, count)
}
