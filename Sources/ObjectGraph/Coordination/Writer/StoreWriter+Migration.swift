import Dispatch
internal import Platform
import StoreInterface

extension StoreWriter {
    /// How far the work has come that opening left for later.
    struct Migration {
        /// nil: nothing is left.
        var progress: MigrationProgress?
        var isRunning = false
        /// Why it stopped; the next open goes on, or the next who waits for the end.
        var failure: (any Error)?
        var waiting: [CheckedContinuation<Void, any Error>] = []
    }

    /// Does what opening with a changed schema left for later, a small transaction at a time, between those of saves.
    /// The writer may go meanwhile: the file knows how far the work has come.
    func startMigration() {
        let isNew = migration.withLock { migration in
            defer { migration.isRunning = true }
            return !migration.isRunning
        }
        guard isNew else { return }
        disk.async { [weak self] in self?.migrateSome() }
    }

    private func migrateSome() {
        do {
            if isRetired { throw StoreError.closed(store.name) }
            guard let progress = try store.continueMigration() else {
                endMigration(nil)
                return
            }
            migration.withLock { $0.progress = progress }
            // Saves that wait for the disk come first.
            disk.asyncAfter(deadline: .now() + .milliseconds(1)) { [weak self] in self?.migrateSome() }
        } catch let error as StoreError where error.code == .closed {
            endMigration(error)
        } catch {
            Self.log.warning("building indexes stopped until the store is opened again or finishMigration() is called: \(error)")
            endMigration(error)
        }
    }

    private func endMigration(_ failure: (any Error)?) {
        let (waiting, worked) = migration.withLock { migration in
            defer { migration = Migration(failure: failure) }
            return (migration.waiting, migration.progress != nil)
        }
        // Contexts that begin after it read through the new indexes; the queue has renewed the state before it answers.
        if worked { renewSnapshot() }
        queue.async {
            for continuation in waiting {
                if let failure { continuation.resume(throwing: failure) } else { continuation.resume() }
            }
        }
    }

    func finishMigration() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let (isDone, mustStart) = migration.withLock { migration in
                guard migration.isRunning || migration.failure != nil else { return (true, false) }
                migration.waiting.append(continuation)
                return (false, !migration.isRunning)
            }
            if isDone { continuation.resume() }
            // What made it stop may be over.
            if mustStart { startMigration() }
        }
    }
}

extension PersistentStoreCoordinator {
    /// How far the work has come that an open with a changed model left for later: building indexes on objects that were there, and
    /// giving back the room of what was removed. nil: nothing is left. Until then queries scan where they could use such an index.
    public var migrationProgress: MigrationProgress? { writer.migration.withLock { $0.progress } }

    /// Returns when that work is done. It goes on by itself, in small transactions between saves, and after a crash with the next open.
    /// - Throws: `StoreError` of the transaction that failed; the work then waits for the next call, or the next open.
    public func finishMigration() async throws {
        try checkOpen()
        try await writer.finishMigration()
    }
}
