import StoreInterface
import StoreModel

extension PersistentContainer {
    /// Writes deferred saves, ends all reads and releases every lock, so that the system may freeze the process (S167).
    ///
    /// When this returns, the file is closed. Other processes can save, reuse pages, migrate and replace the file as if this process had
    /// ended. Call it when a program goes to the background, and ``resume()`` when it comes back. It waits for running saves and for
    /// running closures of `perform`. All containers of this process on the same store object are suspended with it.
    ///
    /// Until ``resume()``, saves, batches and deletions of history wait, and synchronous ones throw `StoreError` `.suspended`. Contexts keep
    /// their objects, unsaved changes and observers. Reading is possible: it opens the file again, and moves the context to the newest state. After
    /// such a read, call this method once more. Kept snapshots and iterations of a request have ended. Reading them throws `.suspended`.
    ///
    /// ```swift
    /// try await container.suspend()
    /// // The process is frozen here, and goes on later.
    /// await container.resume()
    /// ```
    /// - Throws: The error of a deferred save that cannot be written, such as a full disk, or `StoreError` `.fileReplaced`, each time until
    ///   the file is moved back. To release the locks without these saves, call ``close()``, which lists them.
    ///   `SaveError.deferredSavesFailed` for deferred saves that can never be written, also at an earlier time; once, so the next call
    ///   suspends. `StoreError` `.inUseElsewhere` if a stream of a large value or a backup still reads the file after five seconds, or if
    ///   a context without an executor is still in a request or save on another thread. `.closed` after ``close()``.
    ///   Then the container is not suspended.
    public func suspend() async throws { try await suspend(within: .seconds(5)) }

    /// - Parameter patience: The time to wait for requests and saves of contexts without an executor.
    package func suspend(within patience: Duration) async throws {
        await beginTurn()
        defer { endTurn() }
        try coordinator.checkOpen()
        for writer in writers { await writer.suspension.close() }
        do {
            // With two writers on one file, the last saves of each are read by the other.
            for writer in writers { try await writer.finishSaves() }
            let failures = writers.flatMap { $0.takeFailures() }
            if !failures.isEmpty { throw SaveError.deferredSavesFailed(failures) }
            for writer in writers { try await writer.suspendReads(within: patience) }
            for writer in writers { try await writer.closeFile() }
        } catch {
            for writer in writers { await writer.resume() }
            throw error
        }
    }

    /// Goes on after ``suspend()``: moves the contexts to the newest state, then lets saves pass that have waited.
    ///
    /// Contexts report what other processes have saved meanwhile as a merge: notices, observers and live results. Unsaved changes stay. In
    /// a context that does not merge automatically, an object that has unsaved changes and was saved by another process is a conflict of
    /// the next save, as it would have been without the suspension. A context that read an older state reads the newest afterwards.
    ///
    /// Waits for a suspension that has begun. Does nothing if the container is not suspended, or closed. If the file was replaced or cannot be read,
    /// the next request throws the error.
    public func resume() async {
        await beginTurn()
        defer { endTurn() }
        // Another container on the store may be suspended still.
        if coordinator.isClosed { return }
        for writer in writers { await writer.resume() }
    }

    /// Waits until the store is not being suspended or resumed, by this container or another one on the same store.
    private func beginTurn() async {
        for writer in writers { await writer.suspension.beginTurn() }
    }

    private func endTurn() {
        for writer in writers { writer.suspension.endTurn() }
    }

    /// The writers of the container's coordinators, each once.
    private var writers: [StoreWriter] {
        let (first, second) = (coordinator.writer, backgroundCoordinator.writer)
        return first === second ? [first] : [first, second]
    }
}
