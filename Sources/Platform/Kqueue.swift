#if canImport(Darwin)
    import Darwin
    import Dispatch

    typealias FileEvents = Kqueue

    /// Watches files and folders on Apple's systems. Each watch has its own Dispatch source and file descriptor.
    struct Kqueue: Sendable {
        typealias Watch = any DispatchSourceFileSystemObject

        private let queue = DispatchQueue(label: "strata.signals")

        /// - Parameter path: The file to be watched, for an error.
        static func shared(for path: String) throws(SystemError) -> Kqueue { Kqueue() }

        /// Begins to watch the file or folder that currently has the path. Does not follow a symbolic link to a file.
        func watch(_ path: String, as kind: WatchedKind, for listener: any FileListener) throws(SystemError) -> Watch {
            let flags = O_EVTONLY | O_CLOEXEC | (kind == .folder ? O_DIRECTORY : O_NOFOLLOW)
            StandardStreams.occupyClosed()
            let descriptor = try check(.watch, at: path) { open(path, flags) }
            let source = DispatchSource.makeFileSystemObjectSource(
                fileDescriptor: descriptor, eventMask: [.write, .attrib, .link, .rename, .delete, .revoke], queue: queue)
            source.setEventHandler { [weak source] in
                if let source { listener.receive(FileChanges(source.data, of: kind)) }
            }
            source.setCancelHandler { close(descriptor) }
            source.activate()
            return source
        }

        /// Ends a listener's watch.
        func end(_ watch: Watch, _ listener: any FileListener) { watch.cancel() }
    }

    extension FileChanges {
        /// Converts the events of a source. Those of a folder all count as new entries.
        fileprivate init(_ events: DispatchSource.FileSystemEvent, of kind: WatchedKind) {
            if kind == .folder {
                self = .entries
                return
            }
            let meanings: [(kinds: DispatchSource.FileSystemEvent, change: FileChanges)] = [
                (.write, .content), ([.attrib, .link], .attributes), (.rename, .moved), ([.delete, .revoke], .gone),
            ]
            self.init(meanings.filter { !events.isDisjoint(with: $0.kinds) }.map(\.change))
        }
    }
#endif
