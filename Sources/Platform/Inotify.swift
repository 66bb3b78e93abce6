#if !canImport(Darwin)
    import Dispatch

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// The process's one instance of inotify, which all watches share: a user may have 128 instances by default, in all processes together.
    ///
    /// It exists while a watch needs it. `@unchecked Sendable` is right because the source is only set up and cancelled, and the rest is
    /// constant or under a lock.
    final class Inotify: @unchecked Sendable {
        private struct Current {
            weak var instance: Inotify?
        }

        /// The number of a watch. Two names of one file have the same watch.
        typealias Watch = Int32

        private static let current = Mutex(Current())

        private let descriptor: Int32
        private let source: any DispatchSourceRead
        /// The listeners of each watch.
        private let listeners = Mutex<[Watch: [any FileListener]]>([:])

        /// Returns the instance of the process.
        /// - Parameter path: The file to be watched, for an error.
        static func shared(for path: String) throws(SystemError) -> Inotify {
            try current.withLock { current throws(SystemError) in
                if let running = current.instance { return running }
                let made = try Inotify(path)
                current.instance = made
                return made
            }
        }

        private init(_ path: String) throws(SystemError) {
            StandardStreams.occupyClosed()
            let descriptor = try check(.watch, at: path) { inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC)) }
            self.descriptor = descriptor
            source = DispatchSource.makeReadSource(
                fileDescriptor: descriptor, queue: DispatchQueue(label: "strata.signals"))
            source.setCancelHandler { close(descriptor) }
            source.setEventHandler { [weak self] in self?.deliver() }
            source.activate()
        }

        deinit { source.cancel() }

        /// The events of files, and of folders. All watches have the same events, because another watch of the same file replaces them.
        private static let fileEvents = UInt32(IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW)
        private static let folderEvents = UInt32(IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR)

        /// Begins to watch the file or folder that currently has the path. Does not follow a symbolic link to a file.
        func watch(_ path: String, as kind: WatchedKind, for listener: any FileListener) throws(SystemError) -> Watch {
            let events = kind == .folder ? Self.folderEvents : Self.fileEvents
            return try listeners.withLock { listeners throws(SystemError) in
                let watch = try check(.watch, at: path) { inotify_add_watch(descriptor, path, events) }
                listeners[watch, default: []].append(listener)
                return watch
            }
        }

        /// Ends a listener's watch.
        func end(_ watch: Watch, _ listener: any FileListener) {
            listeners.withLock { listeners in
                guard var rest = listeners[watch] else { return }
                rest.removeAll { $0 === listener }
                listeners[watch] = rest.isEmpty ? nil : rest
                // Fails if the file is gone, whose watch has ended by itself.
                if rest.isEmpty { _ = inotify_rm_watch(descriptor, watch) }
            }
        }

        private func deliver() {
            let (events, isOverflowing) = drain()
            let found = listeners.withLock { listeners in
                // If events were lost, each file may have changed.
                let changed = isOverflowing ? listeners.mapValues { _ in FileChanges.all } : events.mapValues(FileChanges.init)
                return changed.flatMap { watch, changes in (listeners[watch] ?? []).map { ($0, changes) } }
            }
            for (listener, changes) in found { listener.receive(changes) }
        }

        /// Returns the kinds of all pending events per watch, and whether some were lost. Repeated events are combined.
        private func drain() -> (events: [Int32: UInt32], isOverflowing: Bool) {
            var events: [Int32: UInt32] = [:]
            var isOverflowing = false
            withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
                while true {
                    let count = read(descriptor, buffer.baseAddress, buffer.count)
                    guard count > 0 else { return }
                    // Each event consists of the watch, its kind, a cookie, and the length of the name that follows.
                    var start = 0
                    while start + 16 <= count {
                        let kind = buffer.load(fromByteOffset: start + 4, as: UInt32.self)
                        if kind & UInt32(IN_Q_OVERFLOW) != 0 { isOverflowing = true }
                        events[buffer.load(fromByteOffset: start, as: Int32.self), default: 0] |= kind
                        start += 16 + Int(buffer.load(fromByteOffset: start + 12, as: UInt32.self))
                    }
                }
            }
            return (events, isOverflowing)
        }
    }

    typealias FileEvents = Inotify

    extension FileChanges {
        /// Converts the kinds of events of inotify.
        fileprivate init(_ events: UInt32) {
            let meanings: [(kinds: Int32, change: FileChanges)] = [
                (IN_MODIFY, .content), (IN_ATTRIB, .attributes), (IN_MOVE_SELF, .moved),
                (IN_DELETE_SELF | IN_UNMOUNT | IN_IGNORED, .gone), (IN_CREATE | IN_MOVED_TO, .entries),
            ]
            self.init(meanings.filter { events & UInt32($0.kinds) != 0 }.map(\.change))
        }
    }
#endif
