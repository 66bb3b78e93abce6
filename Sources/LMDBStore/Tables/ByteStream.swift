import Dispatch
internal import Platform
import StoreInterface

/// A pipe through which LMDB's copy to a descriptor passes, so that the copy can be changed and cancelled.
enum ByteStream {
    private static let partSize = 1 << 18

    /// Runs `write` with one end of a pipe, and on another thread calls `each` with the parts that arrive at the other end.
    /// - Parameter each: Processes a part at an offset in the stream. If it throws, the next write fails.
    /// - Throws: The error of `each`, else the error of `write`.
    static func run(
        _ write: (_ end: Int32) throws -> Void,
        each: @escaping @Sendable (_ part: UnsafeMutableRawBufferPointer, _ offset: Int) throws -> Void
    ) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw StoreError(errorNumber: errno, "a copy needs a pipe, which cannot be made") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (reading, writing) = (ends[0], ends[1])
        let taken = Mutex<Result<Void, any Error>>(.success(()))
        let done = DispatchSemaphore(value: 0)
        DispatchQueue(label: "strata.copy").async {
            let result = Result { try readAll(reading, each) }
            taken.withLock { $0 = result }
            close(reading)
            done.signal()
        }
        let written = Result { try withoutBrokenPipeSignal { try write(writing) } }
        close(writing)
        done.wait()
        try taken.withLock { $0 }.get()
        try written.get()
    }

    private static func readAll(_ end: Int32, _ each: (UnsafeMutableRawBufferPointer, Int) throws -> Void) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: partSize, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = bytesRead(end, buffer)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw StoreError(errorNumber: errno, "the pipe of a copy cannot be read") }
            if count == 0 { return }
            try each(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), offset)
            offset += count
        }
    }
}

/// Reads bytes, under a name that no method hides.
private func bytesRead(_ end: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    read(end, buffer.baseAddress, buffer.count)
}
