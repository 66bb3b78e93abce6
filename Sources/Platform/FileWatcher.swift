import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A watch that calls a closure after each write to a file, or after each change of its attributes. It uses inotify on Linux
/// and kqueue elsewhere. No thread waits; the kernel wakes a queue.
///
/// On Linux, a file that is removed or replaced is recreated if necessary and watched from then on. The change is reported
/// once, because writes may have been missed.
///
/// `@unchecked Sendable` is right because Dispatch's sources may be used from any thread, and the one on Apple's systems is only set up and
/// cancelled; the file on Linux is under a lock.
package final class FileWatcher: @unchecked Sendable {
    package enum Event: Sendable { case writes, attributes }

    #if canImport(Darwin)
        private let source: any DispatchSourceProtocol
    #else
        private let file: WatchedFile
    #endif

    /// Creates a watch, which ends with its last reference.
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - event: The kind of change to report.
    ///   - restore: A closure that recreates the file after it was removed.
    ///   - body: The closure to call, on a background queue.
    /// - Throws: An error of the system, also if it has no watch left.
    package init(
        path: String, for event: Event, restore: @escaping @Sendable () throws -> Void, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        #if canImport(Darwin)
            let descriptor = try check(.watch, at: path) { open(path, O_EVTONLY | O_CLOEXEC) }
            source = DispatchSource.makeFileSystemObjectSource(
                fileDescriptor: descriptor, eventMask: event == .writes ? .write : .attrib,
                queue: DispatchQueue(label: "strata.signals"))
            source.setEventHandler { body() }
            source.setCancelHandler { close(descriptor) }
            source.activate()
        #else
            file = WatchedFile(path, for: event, with: try Inotify.shared(for: path), restore: restore, body)
            try file.begin()
        #endif
    }

    deinit {
        #if canImport(Darwin)
            source.cancel()
        #else
            file.end()
        #endif
    }
}

#if !canImport(Darwin)
    /// The file of one watch. It handles its events on a queue, one after another.
    private final class WatchedFile: Inotify.Listener {
        private struct State {
            /// The number of the watch; -1 if there is none.
            var watch: Int32 = -1
            var identity: FileIdentity?
            /// The kinds of events that the queue has not handled yet.
            var pending: UInt32 = 0
            var hasEnded = false
        }

        private let path: String
        private let wanted: UInt32
        private let inotify: Inotify
        private let restore: @Sendable () throws -> Void
        private let body: @Sendable () -> Void
        private let queue = DispatchQueue(label: "strata.signal")
        private let state = Mutex(State())

        init(
            _ path: String, for event: FileWatcher.Event, with inotify: Inotify, restore: @escaping @Sendable () throws -> Void,
            _ body: @escaping @Sendable () -> Void
        ) {
            self.path = path
            wanted = UInt32(event == .writes ? IN_MODIFY : IN_ATTRIB)
            self.inotify = inotify
            self.restore = restore
            self.body = body
        }

        /// Watches the file that currently has the name.
        func begin() throws(SystemError) {
            try state.withLock { state throws(SystemError) in
                guard !state.hasEnded else { return }
                if state.watch >= 0 { inotify.end(state.watch, self) }
                (state.watch, state.identity) = (-1, nil)
                state.watch = try inotify.watch(path, self)
                state.identity = named
            }
        }

        func end() {
            state.withLock { state in
                state.hasEnded = true
                if state.watch >= 0 { inotify.end(state.watch, self) }
                state.watch = -1
            }
        }

        func receive(_ events: UInt32) {
            let isFirst = state.withLock { state in
                defer { state.pending |= events }
                return state.pending == 0
            }
            if isFirst { queue.async { self.handle() } }
        }

        private var named: FileIdentity? { try? FileStatus(path).identity }

        private func handle() {
            let (events, identity) = state.withLock { state in
                defer { state.pending = 0 }
                return (state.hasEnded ? 0 : state.pending, state.identity)
            }
            let isChanged = events & UInt32(IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF) != 0
            let isLost = isChanged && (identity == nil || named != identity)
            if isLost {
                try? restore()
                try? begin()
            }
            if isLost || events & wanted != 0 { body() }
        }
    }
#endif
