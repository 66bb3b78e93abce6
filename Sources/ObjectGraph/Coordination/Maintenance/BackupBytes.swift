import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// A backup as an asynchronous sequence of parts of at most 256 KiB. Iterating throws the error that ended the copy.
///
/// The copy has its own thread and is at most one pipe buffer ahead of the reader. If the reader is slow, the thread and a snapshot of the
/// store are in use until the copy ends.
///
/// ```swift
/// for try await part in try await container.coordinator.backupBytes() { bytes += part }
/// ```
public struct BackupBytes: AsyncSequence, Sendable {
    /// A part of the backup, at most 256 KiB.
    public typealias Element = [UInt8]

    private let pipe: BackupPipe

    init(_ store: any ObjectStore, _ pin: Snapshot) throws { pipe = try BackupPipe(store, pin) }

    /// Returns an iterator over the one copy that is being made. Iterators share it: each part is returned to one of them.
    public func makeAsyncIterator() -> Iterator { Iterator(pipe: pipe) }

    /// An iterator over the parts of a backup.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pipe: BackupPipe

        /// Returns the next part, or nil when the backup is complete. Suspends until a part is written.
        /// - Throws: The `StoreError` that ended the copy, or `CancellationError` if the task is cancelled, which ends the copy too. The
        ///   parts returned before do not form a usable file.
        public mutating func next() async throws -> [UInt8]? {
            if Task.isCancelled {
                pipe.end()
                throw CancellationError()
            }
            return try await pipe.read()
        }
    }
}

/// A pipe that one thread fills with the copy and another reads. Closing the reading end stops the copy.
private final class BackupPipe: Sendable {
    private let reading: OpenFile
    private let queue = DispatchQueue(label: "strata.backup")
    private let failure = Mutex<(any Error)?>(nil)
    /// Whether the reading end is open.
    private let isOpen = Mutex(true)
    private static let partSize = 1 << 18

    init(_ store: any ObjectStore, _ pin: Snapshot) throws {
        let writing: OpenFile
        do throws(SystemError) { (reading, writing) = try OpenFile.pipe() } catch {
            throw StoreError(.inputOutput, "cannot create a pipe: \(error). Close some files.")
        }
        // The copy waits for its reader, and other work waits for the few threads of the global queue.
        // A weak reference, so that the copy ends when the reader is released.
        DispatchQueue(label: "strata.backup.copy").async { [weak self] in
            do { try store.backup(to: writing.descriptor) } catch { self?.note(error) }
            // Close after recording the error, so that a reader at the end of the pipe finds it.
            writing.close()
            withExtendedLifetime(pin) {}
        }
    }

    deinit { close() }

    /// Stops the copy, after a read that is running. Later reads throw.
    func end() { queue.async { self.close() } }

    private func close() {
        let wasOpen = isOpen.withLock { isOpen in
            defer { isOpen = false }
            return isOpen
        }
        if wasOpen { reading.close() }
    }

    private func note(_ error: any Error) { failure.withLock { $0 = error } }

    func read() async throws -> [UInt8]? {
        try await withCompletion { completion in queue.async { completion(Result { try self.readNow() }) } }
    }

    private func readNow() throws -> [UInt8]? {
        guard isOpen.withLock({ $0 }) else { throw CancellationError() }
        do {
            let part = try [UInt8](unsafeUninitializedCapacity: Self.partSize) { buffer, count in
                count = try reading.read(into: UnsafeMutableRawBufferPointer(buffer))
            }
            if !part.isEmpty { return part }
        } catch {
            if let failure = failure.withLock({ $0 }) { throw failure }
            throw StoreError(.inputOutput, "cannot read a backup: \(error). Start it again.")
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
        return nil
    }
}
