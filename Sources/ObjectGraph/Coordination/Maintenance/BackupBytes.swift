import Dispatch
internal import Platform
import StoreInterface

/// A backup as an asynchronous sequence of parts of at most 256 KiB. Iterating throws the error that ended the copy.
///
/// The copy runs on a background queue, at most one pipe buffer ahead of the reader. A slow reader keeps its snapshot of the store
/// alive until the copy ends.
public struct BackupBytes: AsyncSequence, Sendable {
    public typealias Element = [UInt8]

    private let pipe: BackupPipe

    init(_ store: any BackupableStore, _ pin: Snapshot) throws { pipe = try BackupPipe(store, pin) }

    public func makeAsyncIterator() -> Iterator { Iterator(pipe: pipe) }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pipe: BackupPipe

        public mutating func next() async throws -> [UInt8]? { try await pipe.read() }
    }
}

/// A pipe that one thread fills with the copy and another reads. Closing the reading end stops the copy.
private final class BackupPipe: Sendable {
    private let reading: Int32
    private let queue = DispatchQueue(label: "strata.backup")
    private let failure = Mutex<(any Error)?>(nil)
    private static let partSize = 1 << 18

    init(_ store: any BackupableStore, _ pin: Snapshot) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw StoreError(.inputOutput, "cannot create a pipe: \(String(cString: strerror(errno))). Close some files.")
        }
        reading = ends[0]
        let writing = ends[1]
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // A weak reference, so that the copy ends when the reader is released.
        DispatchQueue.global().async { [weak self] in
            do { try store.backup(to: writing) } catch { self?.note(error) }
            // Close after recording the error, so that a reader at the end of the pipe finds it.
            close(writing)
            withExtendedLifetime(pin) {}
        }
    }

    deinit { close(reading) }

    private func note(_ error: any Error) { failure.withLock { $0 = error } }

    func read() async throws -> [UInt8]? {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try self.readNow() }) }
        }
    }

    private func readNow() throws -> [UInt8]? {
        var got = 0
        let part = [UInt8](unsafeUninitializedCapacity: Self.partSize) { buffer, count in
            repeat { got = bytes(from: reading, into: buffer) } while got < 0 && errno == EINTR
            count = max(0, got)
        }
        if got > 0 { return part }
        if let error = failure.withLock({ $0 }) { throw error }
        guard got == 0 else {
            throw StoreError(.inputOutput, "cannot read a backup: \(String(cString: strerror(errno))). Start it again.")
        }
        return nil
    }
}

/// Reads from a descriptor. A method of `BackupPipe` would hide the C function `read`.
private func bytes(from descriptor: Int32, into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
    read(descriptor, buffer.baseAddress, buffer.count)
}
