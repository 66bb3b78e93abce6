import Dispatch
import Locking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Tells other processes that a file has a new save: a small file beside it, written after each commit and watched by who
/// wants to know (S161).
///
/// What it holds, the number of the save, is for people who look; readers ask the store itself. One store object has one.
public final class SaveSignal: Sendable {
    private let file: String
    package var path: String { file + "-signal" }
    /// Opened at the first use.
    private let descriptor = Mutex<Int32?>(nil)

    /// - Parameter path: of the store's file.
    public init(besideFile path: String) { file = path }

    deinit { if let descriptor = descriptor.withLock({ $0 }) { close(descriptor) } }

    /// Called after a commit. One write of 8 bytes, about 0.5 µs. A signal that cannot be written makes no save fail: others learn
    /// of it when they look.
    public func send(_ generation: Generation) {
        guard let descriptor = try? opened() else { return }
        withUnsafeBytes(of: generation.littleEndian) { bytes in
            _ = pwrite(descriptor, bytes.baseAddress, bytes.count, 0)
        }
    }

    /// Calls `body` on a background queue after each signal, this process's own included, until the watch is dropped.
    ///
    /// - Parameters:
    ///   - isReadOnly: whether to make no file, and to watch the store's own file where there is no signal that may be read.
    ///   - body: what is called.
    /// - Throws: `StoreError` `.inputOutput` when the file cannot be made or watched.
    public func watch(isReadOnly: Bool = false, _ body: @escaping @Sendable () -> Void) throws -> any StoreWatch {
        guard isReadOnly else {
            _ = try opened()
            return try FileWatch(path: path, body)
        }
        return try FileWatch(path: access(path, R_OK) == 0 ? path : file, body)
    }

    private func opened() throws -> Int32 {
        let outcome: Result<Int32, any Error> = descriptor.withLock { descriptor in
            if let descriptor { return .success(descriptor) }
            let made = Result { try StoreFile.openBeside(path, of: file) }
            descriptor = try? made.get()
            return made
        }
        return try outcome.get()
    }
}

/// Calls a closure after each write to a file, or after each change of its attributes: inotify on Linux, kqueue elsewhere. No thread waits; the kernel wakes a queue.
///
/// `@unchecked Sendable` is right because Dispatch's sources may be used from any thread, and this one is only set up and cancelled.
package final class FileWatch: StoreWatch, @unchecked Sendable {
    package enum Event { case writes, attributes }

    private let source: any DispatchSourceProtocol

    /// - Throws: `StoreError` `.inputOutput` when the system has no watch left.
    package init(path: String, for event: Event = .writes, _ body: @escaping @Sendable () -> Void) throws {
        let queue = DispatchQueue(label: "strata.signals")
        #if canImport(Darwin)
            let descriptor = open(path, O_EVTONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Self.failure(path) }
            source = DispatchSource.makeFileSystemObjectSource(
                fileDescriptor: descriptor, eventMask: event == .writes ? .write : .attrib, queue: queue)
            source.setEventHandler { body() }
        #else
            let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
            guard descriptor >= 0 else { throw Self.failure(path) }
            guard
                inotify_add_watch(
                    descriptor, path, UInt32(event == .writes ? IN_MODIFY : IN_ATTRIB) | UInt32(IN_DONT_FOLLOW)) >= 0
            else {
                let failure = Self.failure(path)
                close(descriptor)
                throw failure
            }
            source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler {
                Self.drain(descriptor)
                body()
            }
        #endif
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit { source.cancel() }

    /// What has happened is one fact, however often: there is something new.
    private static func drain(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }

    private static func failure(_ path: String) -> StoreError {
        StoreError(
            .inputOutput,
            "\(path) cannot be watched: \(String(cString: strerror(errno))). Raise the system's limit of watches, or call refresh()"
        )
    }
}
