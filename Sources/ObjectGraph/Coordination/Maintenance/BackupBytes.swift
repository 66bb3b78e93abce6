import Dispatch
internal import Platform
import StoreInterface

/// A backup as a sequence of bytes, in parts of at most 256 KiB. Iterating throws the error that ended the copy.
///
/// The copy runs on a background queue, at most one pipe's buffer ahead of who reads: a slow reader keeps its state of the
/// store alive for as long as it takes.
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

/// One thread writes the copy into a pipe, another takes it out. Closing the reading end ends the writing.
private final class BackupPipe: Sendable {
    private let reading: Int32
    private let queue = DispatchQueue(label: "strata.backup")
    private let failure = Mutex<(any Error)?>(nil)
    private static let partSize = 1 << 18

    init(_ store: any BackupableStore, _ pin: Snapshot) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw StoreError(.inputOutput, "a backup needs a pipe: \(String(cString: strerror(errno))). Close some files")
        }
        reading = ends[0]
        let writing = ends[1]
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // Weak: when nobody reads any more, the copy must end.
        DispatchQueue.global().async { [weak self] in
            do { try store.backup(to: writing) } catch { self?.note(error) }
            // After the error is noted, so that who meets the end finds it.
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
            throw StoreError(.inputOutput, "a backup's pipe cannot be read: \(String(cString: strerror(errno))). Begin again")
        }
        return nil
    }
}

/// Under a name that a method of the same purpose does not hide.
private func bytes(from descriptor: Int32, into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
    read(descriptor, buffer.baseAddress, buffer.count)
}
