import Dispatch
internal import Platform
import StoreInterface
import StoreModel

extension StoreWriter {
    /// The time between two steps of the work that opening left for later.
    static let migrationPause = DispatchTimeInterval.milliseconds(1)

    /// The progress of the work that opening left for later.
    struct Migration {
        /// The progress; nil if no work is left.
        var progress: MigrationProgress?
        var isRunning = false
        /// Whether the work waits until the store is resumed.
        var isSuspended = false
        /// The error that stopped the work. It continues at the next open, or at the next call that waits for its end.
        var failure: (any Error)?
        var waiting: [@Sendable (Result<Void, any Error>) -> Void] = []
    }

    /// Does the work that opening with a changed schema left for later, in small transactions between saves.
    ///
    /// The writer may be released before the end, because the file records the progress.
    func startMigration() {
        let isNew = migration.withLock { migration in
            defer { migration.isRunning = true }
            return !migration.isRunning
        }
        guard isNew else { return }
        disk.async { [weak self] in self?.migrateSome() }
    }

    /// Goes on with the work after the store was suspended.
    func resumeMigration() {
        let waits = migration.withLock { migration in
            defer { migration.isSuspended = false }
            return migration.isSuspended
        }
        if waits { disk.async { [weak self] in self?.migrateSome() } }
    }

    private func migrateSome() {
        do {
            if try waitsForResumption() { return }
            guard let progress = try store.continueMigration() else {
                endMigration(nil)
                return
            }
            migration.withLock { $0.progress = progress }
            // Let saves that wait for the disk run first.
            clock.run(at: clock.now + Self.migrationPause, on: disk) { [weak self] in self?.migrateSome() }
        } catch let error as StoreError where error.code == .closed {
            endMigration(error)
        } catch {
            Self.log.warning("building indexes stopped until the store is opened again or finishMigration() is called: \(error)")
            endMigration(error)
        }
    }

    /// Leaves the work to ``resumeMigration()`` if the store is suspended. Returns whether it is.
    ///
    /// - Throws: `StoreError` `.closed` if the store is being closed.
    private func waitsForResumption() throws -> Bool {
        try migration.withLock { migration in
            // Within the lock, because a store is woken, or the writer retired, before `resumeMigration()` takes it.
            if isRetired { throw StoreError.closed(store.name) }
            migration.isSuspended = suspension.isSuspended
            return migration.isSuspended
        }
    }

    private func endMigration(_ failure: (any Error)?) {
        let (waiting, worked) = migration.withLock { migration in
            defer { migration = Migration(failure: failure) }
            return (migration.waiting, migration.progress != nil)
        }
        // Contexts created later read through the new indexes: the queue renews the state before it resumes the callers.
        if worked { renewSnapshot() }
        queue.async {
            for done in waiting { done(failure.map(Result.failure) ?? .success(())) }
        }
    }

    func finishMigration() async throws {
        try await withCompletion { whenMigrated($0) }
    }

    /// Waits until the work is complete. Blocks; do not call it on the writer's queues.
    func finishMigrationAndWait() throws {
        let end = DispatchSemaphore(value: 0)
        // The variable is set before the semaphore is signalled.
        nonisolated(unsafe) var result: Result<Void, any Error> = .success(())
        whenMigrated {
            result = $0
            end.signal()
        }
        end.wait()
        try result.get()
    }

    /// Calls `done` when the work is complete, or has failed: at once, or on the queue.
    private func whenMigrated(_ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let (isDone, mustStart) = migration.withLock { migration in
            guard migration.isRunning || migration.failure != nil else { return (true, false) }
            migration.waiting.append(done)
            return (false, !migration.isRunning)
        }
        if isDone { done(.success(())) }
        // Try again, because the cause of the failure may be gone.
        if mustStart { startMigration() }
    }
}

extension PersistentStoreCoordinator {
    /// The progress of the work that opening with a changed model left for later; nil if no work is left.
    ///
    /// The work builds indexes on existing objects and frees the space of removed data. Queries that could use such an index scan
    /// until it is complete.
    public var migrationProgress: MigrationProgress? { writer.migration.withLock { $0.progress } }

    /// Waits until the work in ``migrationProgress`` is complete.
    ///
    /// The work runs without this call, in small transactions between saves. After a crash it continues at the next open.
    ///
    /// - Throws: `StoreError` of the transaction that failed. The work then stops until the next call, or the next open.
    public func finishMigration() async throws {
        try checkOpen()
        try await writer.finishMigration()
    }
}
