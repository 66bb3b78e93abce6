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
/// `@unchecked Sendable` is right because Dispatch's sources may be used from any thread, and this one is only set up and
/// cancelled.
package final class FileWatcher: @unchecked Sendable {
    package enum Event: Sendable { case writes, attributes }

    private let source: any DispatchSourceProtocol

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
        let queue = DispatchQueue(label: "strata.signals")
        #if canImport(Darwin)
            let descriptor = try check(.watch, at: path) { open(path, O_EVTONLY | O_CLOEXEC) }
            source = DispatchSource.makeFileSystemObjectSource(
                fileDescriptor: descriptor, eventMask: event == .writes ? .write : .attrib, queue: queue)
            source.setEventHandler { body() }
        #else
            let descriptor = try check(.watch, at: path) { inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC)) }
            let watched = Watched(descriptor, path)
            do throws(SystemError) { try watched.add() } catch {
                close(descriptor)
                throw error
            }
            source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler {
                let events = watched.drain()
                let wanted = UInt32(event == .writes ? IN_MODIFY : IN_ATTRIB)
                let isLost = events & UInt32(IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF) != 0 && !watched.isCurrent
                if isLost {
                    try? restore()
                    try? watched.add()
                }
                if isLost || events & wanted != 0 { body() }
            }
        #endif
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit { source.cancel() }
}

#if !canImport(Darwin)
    /// The watched file. Used only on the watch's queue after setup.
    private final class Watched: @unchecked Sendable {
        private let descriptor: Int32
        private let path: String
        private var watch: Int32 = -1
        private var identity: FileIdentity?

        init(_ descriptor: Int32, _ path: String) {
            self.descriptor = descriptor
            self.path = path
        }

        private var named: FileIdentity? { try? FileStatus(path).identity }

        var isCurrent: Bool { identity != nil && named == identity }

        /// Watches the file that currently has the name.
        func add() throws(SystemError) {
            if watch >= 0 { inotify_rm_watch(descriptor, watch) }
            let events = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW
            (watch, identity) = (-1, nil)
            watch = try check(.watch, at: path) { inotify_add_watch(descriptor, path, UInt32(events)) }
            identity = named
        }

        /// Returns the kinds of all pending events. Repeated events are combined.
        func drain() -> UInt32 {
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
    }
#endif
