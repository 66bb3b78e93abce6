#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The descriptors of standard input, output and error, 0 to 2. The system gives the number of a closed one to the next file.
package enum StandardStreams {
    /// Opens `/dev/null` for reading in the place of each closed standard stream, so that no other file gets its number: what the program
    /// prints would be written into that file. Writing to such a stream fails, and reading it ends.
    ///
    /// Call it before opening a descriptor. Three calls of the system if no stream is closed. If `/dev/null` cannot be opened, the stream
    /// stays closed.
    package static func occupyClosed() {
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 {
            // Programs that the process starts inherit it, as they inherit a standard stream.
            let descriptor = open("/dev/null", O_RDONLY)
            // Another thread has occupied the stream meanwhile.
            if descriptor > STDERR_FILENO { close(descriptor) }
        }
    }
}
