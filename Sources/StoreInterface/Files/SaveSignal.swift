import Dispatch
internal import Platform

/// Tells other processes that a file has a new save: a small file beside it, written after each commit and watched by who
/// wants to know (S161).
///
/// What it holds, the number of the save, is for people who look; readers ask the store itself. One store object has one.
public final class SaveSignal: Sendable {
    private let file: String
    package var path: String { file + "-signal" }
    /// Opened at the first use.
    private let open = Mutex<StoreFile.Opened?>(nil)

    /// - Parameter path: of the store's file.
    public init(besideFile path: String) { file = path }

    /// Closes the file until it is needed again.
    package func end() { open.withLock { $0 = nil } }

    /// Called after a commit. One `stat` and one write of 8 bytes. A signal that cannot be written makes no save fail: other processes
    /// find the save at their next check.
    public func send(_ generation: Generation) {
        guard let file = try? opened() else { return }
        withUnsafeBytes(of: generation.littleEndian) { bytes in
            _ = pwrite(file.descriptor, bytes.baseAddress, bytes.count, 0)
        }
    }

    /// Calls `body` on a background queue after each signal, this process's own included, until the watch is dropped.
    ///
    /// - Parameters:
    ///   - isReadOnly: whether to make no file, and to watch the store's own file where there is no signal that may be read.
    ///   - body: the closure to call.
    /// - Throws: `StoreError` `.inputOutput` when the file cannot be made or watched.
    public func watch(isReadOnly: Bool = false, _ body: @escaping @Sendable () -> Void) throws -> any StoreWatch {
        guard isReadOnly else {
            _ = try opened()
            return try FileWatch(path: path, restore: { [weak self] in _ = try self?.opened() }, body)
        }
        // Nothing is made again: the next signal of a writer does that.
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

/// Calls a closure after each write to a file, or after each change of its attributes: inotify on Linux, kqueue elsewhere. No thread
/// waits; the kernel wakes a queue.
///
/// On Linux a file that is removed or replaced is made again if need be, watched from then on, and reported once, because writes may have
/// been missed.
///
/// `@unchecked Sendable` is right because Dispatch's sources may be used from any thread, and this one is only set up and cancelled.
package final class FileWatch: StoreWatch, @unchecked Sendable {
    package enum Event { case writes, attributes }

    private let source: any DispatchSourceProtocol

    /// - Parameter restore: makes the file again when it has been removed.
    /// - Throws: `StoreError` `.inputOutput` when the system has no watch left.
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
        /// Which file a watch is on. Used on the watch's queue only, after it was set up.
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

            /// Watches the file that has the name now. Returns whether there is one.
            func add() -> Bool {
                if watch >= 0 { inotify_rm_watch(descriptor, watch) }
                let events = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW
                watch = inotify_add_watch(descriptor, path, UInt32(events))
                identity = watch >= 0 ? StoreFile.identity(path) : nil
                return watch >= 0
            }
        }
    #endif

    /// Returns all kinds of events that have happened: however often, there is something new.
    private static func drain(_ descriptor: Int32) -> UInt32 {
        var events: UInt32 = 0
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                // Each event: the watch, its kind, a cookie, and the length of the name that follows.
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
