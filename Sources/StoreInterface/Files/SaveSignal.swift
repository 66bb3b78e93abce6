import Dispatch
internal import Platform

/// A signal to other processes that a file has a new save (S161). It is a small file beside the store's file, which is
/// written after each commit and watched by interested processes.
///
/// The file contains the number of the save, for inspection by people. Readers ask the store itself. Each store object has
/// one signal.
public final class SaveSignal: Sendable {
    private let file: String
    package var path: String { file + "-signal" }
    /// The signal's file, opened at first use.
    private let open = Mutex<StoreFile.Opened?>(nil)

    /// Creates a signal.
    /// - Parameter path: The path of the store's file.
    public init(besideFile path: String) { file = path }

    /// Closes the file until the next use.
    package func end() { open.withLock { $0 = nil } }

    /// Signals a save after its commit. Costs one `stat` and one write of 8 bytes. A failed write does not fail the save:
    /// other processes find the save at their next check.
    public func send(_ generation: Generation) {
        guard let file = try? opened() else { return }
        withUnsafeBytes(of: generation.littleEndian) { bytes in
            _ = pwrite(file.descriptor, bytes.baseAddress, bytes.count, 0)
        }
    }

    /// Calls `body` on a background queue after each signal, including those of this process, until the watch is released.
    /// - Parameters:
    ///   - isReadOnly: Whether to create no file, and to watch the store's own file if no signal file can be read.
    ///   - body: The closure to call.
    /// - Throws: `StoreError` `.inputOutput` if the file cannot be created or watched.
    public func watch(isReadOnly: Bool = false, _ body: @escaping @Sendable () -> Void) throws -> any StoreWatch {
        guard isReadOnly else {
            _ = try opened()
            return try FileWatch(path: path, restore: { [weak self] in _ = try self?.opened() }, body)
        }
        // A read-only watch does not recreate the file. The next signal of a writer does.
        return try FileWatch(path: access(path, R_OK) == 0 ? path : file, restore: {}, body)
    }

    /// Returns the file that currently has the signal's name. Writes to a removed or replaced file wake no process.
    private func opened() throws -> StoreFile.Opened {
        let outcome: Result<StoreFile.Opened, any Error> = open.withLock { open in
            if let known = open, StoreFile.isAt(path, known.descriptor) { return .success(known) }
            let made = Result { StoreFile.Opened(try StoreFile.openBeside(path, of: file)) }
            open = try? made.get()
            return made
        }
        return try outcome.get()
    }
}

/// A watch that calls a closure after each write to a file, or after each change of its attributes. It uses inotify on Linux
/// and kqueue elsewhere. No thread waits; the kernel wakes a queue.
///
/// On Linux, a file that is removed or replaced is recreated if necessary and watched from then on. The change is reported
/// once, because writes may have been missed.
///
/// `@unchecked Sendable` is right because Dispatch's sources may be used from any thread, and this one is only set up and
/// cancelled.
package final class FileWatch: StoreWatch, @unchecked Sendable {
    package enum Event { case writes, attributes }

    private let source: any DispatchSourceProtocol

    /// Creates a watch.
    /// - Parameter restore: A closure that recreates the file after it was removed.
    /// - Throws: `StoreError` `.inputOutput` if the system has no watch left.
    package init(
        path: String, for event: Event = .writes, restore: @escaping @Sendable () throws -> Void,
        _ body: @escaping @Sendable () -> Void
    ) throws {
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
            let watched = Watched(descriptor, path)
            guard watched.add() else {
                let failure = Self.failure(path)
                close(descriptor)
                throw failure
            }
            source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler {
                let events = Self.drain(descriptor)
                let wanted = UInt32(event == .writes ? IN_MODIFY : IN_ATTRIB)
                let isLost = events & UInt32(IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF) != 0 && !watched.isCurrent
                if isLost {
                    try? restore()
                    _ = watched.add()
                }
                if isLost || events & wanted != 0 { body() }
            }
        #endif
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit { source.cancel() }

    #if !canImport(Darwin)
        /// The watched file. Used only on the watch's queue after setup.
        private final class Watched: @unchecked Sendable {
            private let descriptor: Int32
            private let path: String
            private var watch: Int32 = -1
            private var identity: StoreFile.Identity?

            init(_ descriptor: Int32, _ path: String) {
                self.descriptor = descriptor
                self.path = path
            }

            var isCurrent: Bool { identity != nil && StoreFile.identity(path) == identity }

            /// Watches the file that currently has the name. Returns whether there is one.
            func add() -> Bool {
                if watch >= 0 { inotify_rm_watch(descriptor, watch) }
                let events = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW
                watch = inotify_add_watch(descriptor, path, UInt32(events))
                identity = watch >= 0 ? StoreFile.identity(path) : nil
                return watch >= 0
            }
        }
    #endif

    /// Returns the kinds of all pending events. Repeated events are combined.
    private static func drain(_ descriptor: Int32) -> UInt32 {
        var events: UInt32 = 0
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                // Each event consists of the watch, its kind, a cookie, and the length of the name that follows.
                var start = 0
                while start + 16 <= count {
                    events |= buffer.load(fromByteOffset: start + 4, as: UInt32.self)
                    start += 16 + Int(buffer.load(fromByteOffset: start + 12, as: UInt32.self))
                }
            }
        }
        return events
    }

    private static func failure(_ path: String) -> StoreError {
        StoreError(
            .inputOutput,
            "\(path) cannot be watched: \(String(cString: strerror(errno))). Raise the system's limit of watches, or call refresh()"
        )
    }
}
