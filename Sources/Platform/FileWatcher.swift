import Dispatch

/// A watch that calls a closure after each write to a file, or after each change of its attributes. It uses inotify on Linux
/// and kqueue elsewhere. No thread waits; the kernel wakes a queue.
///
/// A file that is removed or replaced is recreated if necessary and watched from then on. While there is no file, its folder is
/// watched, and the file as soon as it is created. Each of these changes is reported once, because writes may have been missed.
package final class FileWatcher: Sendable {
    package enum Event: Sendable { case writes, attributes }

    private let file: WatchedFile

    /// Creates a watch, which ends with its last reference.
    /// - Parameters:
    ///   - path: The path of the file, which need not exist.
    ///   - event: The kind of change to report.
    ///   - restore: A closure that recreates the file after it was removed. It is not called after the watch has ended.
    ///   - body: The closure to call, on a background queue.
    /// - Throws: An error of the system, also if it has no watch left, or if neither the file nor its folder may be read.
    package init(
        path: String, for event: Event, restore: @escaping @Sendable () throws -> Void, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        file = WatchedFile(path, for: event, with: try FileEvents.shared(for: path), restore: restore, body)
        _ = try file.begin()
    }

    deinit { file.end() }
}

/// The changes of a watched file or folder that the kernel reports.
struct FileChanges: OptionSet, Sendable {
    let rawValue: UInt8

    static let content = FileChanges(rawValue: 1 << 0)
    /// The attributes, to which the number of names belongs.
    static let attributes = FileChanges(rawValue: 1 << 1)
    static let moved = FileChanges(rawValue: 1 << 2)
    /// The file is gone, and the kernel has ended the watch.
    static let gone = FileChanges(rawValue: 1 << 3)
    /// A folder has a new entry.
    static let entries = FileChanges(rawValue: 1 << 4)

    static let all: FileChanges = [.content, .attributes, .moved, .gone, .entries]
}

/// Whether a watch reports the changes of a file or the new entries of a folder.
enum WatchedKind: Sendable { case file, folder }

/// The receiver of the changes of a file.
protocol FileListener: AnyObject, Sendable {
    /// Receives pending changes, on a queue on which it must not wait.
    func receive(_ changes: FileChanges)
}

/// The file of one watch. It handles its events on a queue, one after another.
private final class WatchedFile: FileListener {
    private struct State {
        /// The watch of the file, or of its folder while there is no file; nil if neither can be watched.
        var watch: FileEvents.Watch?
        /// Whether the watch is that of the file.
        var isFound = false
        var identity: FileIdentity?
        /// The changes that the queue has not handled yet.
        var pending: FileChanges = []
        var hasEnded = false
    }

    private let path: String
    private let wanted: FileChanges
    private let events: FileEvents
    private let restore: @Sendable () throws -> Void
    private let body: @Sendable () -> Void
    private let queue = DispatchQueue(label: "strata.signal")
    private let state = Mutex(State())
    /// Held while the file is recreated, so that it is not recreated after the end of the watch.
    private let restoring = Mutex(())

    /// The seconds until the next attempt while neither the file nor its folder can be watched.
    private static let pause = 1

    init(
        _ path: String, for event: FileWatcher.Event, with events: FileEvents, restore: @escaping @Sendable () throws -> Void,
        _ body: @escaping @Sendable () -> Void
    ) {
        self.path = path
        wanted = event == .writes ? .content : .attributes
        self.events = events
        self.restore = restore
        self.body = body
    }

    /// Watches the file that currently has the name, or its folder while there is no file.
    /// - Returns: Whether the file is watched.
    func begin() throws(SystemError) -> Bool {
        try state.withLock { state throws(SystemError) in
            guard !state.hasEnded else { return false }
            endWatch(&state)
            do throws(SystemError) {
                try watchFile(&state)
            } catch {
                guard error == .notFound else { throw error }
                let waiting = try events.watch(folder, as: .folder, for: self)
                state.watch = waiting
                // The file may have been created before the watch of its folder began.
                do throws(SystemError) { try watchFile(&state) } catch {
                    if error == .notFound { return false }
                    endWatch(&state)
                    throw error
                }
                events.end(waiting, self)
            }
            return true
        }
    }

    private func watchFile(_ state: inout State) throws(SystemError) {
        // Before the watch. If the file is replaced in between, the next event shows that the identity differs.
        let identity = named
        state.watch = try events.watch(path, as: .file, for: self)
        (state.isFound, state.identity) = (true, identity)
    }

    private func endWatch(_ state: inout State) {
        if let watch = state.watch { events.end(watch, self) }
        (state.watch, state.isFound, state.identity) = (nil, false, nil)
    }

    func end() {
        restoring.withLock { _ in
            state.withLock { state in
                state.hasEnded = true
                endWatch(&state)
            }
        }
    }

    func receive(_ changes: FileChanges) {
        let isFirst = state.withLock { state in
            defer { state.pending.formUnion(changes) }
            return state.pending.isEmpty
        }
        if isFirst { queue.async { self.handle() } }
    }

    private var named: FileIdentity? { try? FileStatus(path).identity }

    private var folder: String { FileSystem.folder(of: path) }

    private func handle() {
        let (changes, wasFound, identity, hasEnded) = state.withLock { state in
            defer { state.pending = [] }
            return (state.pending, state.isFound, state.identity, state.hasEnded)
        }
        guard !hasEnded else { return }
        var isDue = changes.contains(wanted)
        if !wasFound || isLost(changes, identity) {
            // If there was no file and still is none, only its folder has changed.
            if findAgain() || wasFound { isDue = true }
        }
        if isDue { body() }
    }

    /// Returns whether a watched file no longer has the name. Another file may have its identity by now, so the event of the kernel
    /// is checked first.
    private func isLost(_ changes: FileChanges, _ identity: FileIdentity?) -> Bool {
        if changes.contains(.gone) { return true }
        return !changes.isDisjoint(with: [.attributes, .moved]) && (identity == nil || named != identity)
    }

    /// Recreates the file if necessary, and watches it or its folder. Returns whether the file is watched.
    private func findAgain() -> Bool {
        restoring.withLock { _ in
            guard state.withLock({ !$0.hasEnded }) else { return false }
            try? restore()
            do throws(SystemError) { return try begin() } catch {
                queue.asyncAfter(deadline: .now() + .seconds(Self.pause)) { [weak self] in self?.handle() }
                return false
            }
        }
    }
}
