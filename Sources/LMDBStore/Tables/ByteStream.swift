import Dispatch
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

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
        let (reading, writing) = try pipe()
        let taken = Mutex<Result<Void, any Error>>(.success(()))
        let done = DispatchSemaphore(value: 0)
        DispatchQueue(label: "strata.copy").async {
            let result = Result { try readAll(reading, each) }
            taken.withLock { $0 = result }
            reading.close()
            done.signal()
        }
        let written = Result { try withoutBrokenPipeSignal { try write(writing.descriptor) } }
        writing.close()
        done.wait()
        try taken.withLock { $0 }.get()
        try written.get()
    }

    private static func pipe() throws -> (reading: OpenFile, writing: OpenFile) {
        do throws(SystemError) { return try OpenFile.pipe() } catch {
            throw StoreError(error, "a copy needs a pipe, which cannot be created")
        }
    }

    private static func readAll(_ end: OpenFile, _ each: (UnsafeMutableRawBufferPointer, Int) throws -> Void) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: partSize, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = try bytesRead(end, into: buffer)
            if count == 0 { return }
            try each(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), offset)
            offset += count
        }
    }

    private static func bytesRead(_ end: OpenFile, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        do throws(SystemError) { return try end.read(into: buffer) } catch {
            throw StoreError(error, "the pipe of a copy cannot be read")
        }
    }
}
