import StoreModel
package import Platform

/// A signal to other processes that a file has a new save (S161). It is a small file beside the store's file, which is
/// written after each commit and watched by interested processes.
///
/// The file contains the number of the save, for inspection by people. Readers ask the store itself. Each store object has
/// one signal.
public final class SaveSignal: Sendable {
    package let storePath: String
    package let path: String
    /// The signal's file, opened at first use.
    private let open = Mutex<StoreFile.Opened?>(nil)

    /// Creates a signal.
    /// - Parameter path: The path of the store's file.
    public init(besideFile path: String) {
        storePath = path
        self.path = path + "-signal"
    }

    /// Closes the file until the next use.
    package func end() { open.withLock { $0 = nil } }

    /// Signals a save after its commit. Costs one `stat` and one write of 8 bytes. A failed write does not fail the save:
    /// other processes find the save at their next check.
    public func send(_ generation: Generation) {
        guard let file = try? opened() else { return }
        withUnsafeBytes(of: generation.rawValue.littleEndian) { bytes in
            try? file.file.write(bytes, at: 0)
        }
    }

    /// Calls `body` on a background queue after each signal, including those of this process, until the watch is released.
    /// - Parameters:
    ///   - isReadOnly: Whether to create no file. Then a missing file is watched as soon as another process creates it. If this user may
    ///     read neither it nor its folder, the store's own file is watched.
    ///   - body: The closure to call.
    /// - Throws: `StoreError` `.inputOutput` if the file cannot be created or watched.
    public func watch(isReadOnly: Bool = false, _ body: @escaping @Sendable () -> Void) throws -> any StoreWatch {
        guard isReadOnly else {
            _ = try opened()
            return try FileWatch(path: path, restore: { [weak self] in _ = try self?.opened() }, body)
        }
        // A read-only watch does not create the file. The next signal of a writer does.
        if let watch = try? FileWatch(path: path, restore: {}, body) { return watch }
        return try FileWatch(path: storePath, restore: {}, body)
    }

    /// Returns the file that currently has the signal's name. Writes to a removed or replaced file wake no process.
    private func opened() throws -> StoreFile.Opened {
        let outcome: Result<StoreFile.Opened, any Error> = open.withLock { open in
            if let known = open, known.isAt(path) { return .success(known) }
            let made = Result { StoreFile.Opened(try StoreFile.openBeside(path, of: storePath)) }
            open = try? made.get()
            return made
        }
        return try outcome.get()
    }
}

/// A watch on a file, which ends with its last reference; see ``FileWatcher``.
package final class FileWatch: StoreWatch {
    private let watcher: FileWatcher

    /// Creates a watch.
    /// - Parameters:
    ///   - path: The path of the file, which need not exist.
    ///   - event: The kind of change to report.
    ///   - restore: A closure that recreates the file after it was removed.
    ///   - body: The closure to call, on a background queue.
    /// - Throws: `StoreError` `.inputOutput` if the system has no watch left.
    package init(
        path: String, for event: FileWatcher.Event = .writes, restore: @escaping @Sendable () throws -> Void,
        _ body: @escaping @Sendable () -> Void
    ) throws {
        do throws(SystemError) {
            watcher = try FileWatcher(path: path, for: event, restore: restore, body)
        } catch {
            throw StoreError(
                .inputOutput,
                "\(path) cannot be watched: \(error). Raise the system's limit of watches, or call refresh()")
        }
    }
}
