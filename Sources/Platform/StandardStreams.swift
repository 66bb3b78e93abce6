#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The descriptors of standard input, output and error, 0 to 2. The system gives the number of a closed one to the next file.
package enum StandardStreams {
    /// Opens `/dev/null` for reading under the number of each closed standard stream.
    ///
    /// Otherwise the next file that is opened gets the number, and the program's output is written into that file. Writing to such a
    /// stream fails, and reading from it returns the end of the file. If `/dev/null` cannot be opened, the stream stays closed.
    ///
    /// Call this method before opening a descriptor. Costs three system calls if no stream is closed.
    package static func occupyClosed() {
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 {
            // Programs that the process starts inherit it, as they inherit a standard stream.
            let descriptor = open("/dev/null", O_RDONLY)
            // Another thread has occupied the stream meanwhile.
            if descriptor > STDERR_FILENO { close(descriptor) }
        }
    }
}
