import Dispatch
import StoreInterface
import StoreModel

extension PersistentContainer {
    /// Writes deferred saves and closes the store. When this returns, the file can be deleted, replaced, or opened again.
    ///
    /// Waits for running saves and requests. Then every context of the container, including children, releases the store. From then on
    /// saves, requests, batches and the history throw `StoreError` `.closed`. Unsaved changes are neither saved nor discarded: they can
    /// still be read in their contexts. Properties of other objects read as if the objects were deleted. Live results report the error
    /// through `onFailure`. Sequences of notices and of updates of live results end.
    ///
    /// If another container or coordinator of this process uses the same store, it stays usable, and the file stays open until it
    /// is closed or deallocated too. After a deallocation, the file is closed in the background. Closing this container again waits for
    /// that, and otherwise does nothing.
    ///
    /// If an earlier write has failed so that saves throw `StoreError` `.mustReopen`, the deferred saves are written when the last
    /// container on the store is closed: with its contexts closed, the file can be opened again.
    ///
    /// - Throws: The error of a deferred save that cannot be written, such as a full disk. Then nothing is closed, unless the save was
    ///   accepted while the container closed, or the file had to be opened again for it. Make room, and close the container again.
    ///   `SaveError.deferredSavesFailed` after closing, for deferred saves that can never be written, also at an earlier time. `StoreError`
    ///   `.inUseElsewhere` if a stream of a large value or a backup still reads the file after five seconds, or if a context without an
    ///   executor is still in a request or save on another thread. End it, and close the container again.
    public func close() async throws { try await close(within: .seconds(5)) }

    /// Closes the container as ``close()`` does.
    ///
    /// - Parameter patience: The time to wait for requests and saves of contexts without an executor.
    package func close(within patience: Duration) async throws {
        let task = closing.withLock { task in
            if let task { return task }
            let made = Task { try await self.closeNow(patience) }
            task = made
            return made
        }
        do { try await task.value } catch {
            closing.withLock { if $0 == task { $0 = nil } }
            throw error
        }
        // Other containers of the store may have been deallocated since.
        try await StoreWriterRegistry.closeIfUnused(coordinator.writer)?.value
        try await StoreWriterRegistry.closeIfUnused(backgroundCoordinator.writer)?.value
    }

    private func closeNow(_ patience: Duration) async throws {
        let all = backgroundCoordinator === coordinator ? [coordinator] : [coordinator, backgroundCoordinator]
        let open = all.filter { !$0.hasLeft.load(ordering: .acquiring) }
        for coordinator in open { coordinator.closed.store(true, ordering: .releasing) }
        // Saves that cannot be written now are tried once more below, when no context reads the file. That call reports them.
        do { _ = try await Self.finishSaves(of: open) } catch {
            for coordinator in open { coordinator.closed.store(false, ordering: .releasing) }
            throw error
        }
        // Saves that wait because the store is suspended throw now. Not before, because the container could have stayed open.
        for coordinator in open { coordinator.writer.suspension.endWaiting(of: coordinator) }
        for coordinator in open { await coordinator.closeContexts() }
        for coordinator in open { try await coordinator.endConfinedReads(within: patience) }
        for coordinator in open { coordinator.leaveWriter(closing: true) }
        // A save may have passed the check before the coordinators were closed, and been accepted after the others were written. From
        // here on none is accepted. Also retry what failed the last time: a write, or closing a store that was still being read.
        let retired = all.map(\.writer).filter(\.isRetired)
        for writer in retired { try await writer.endReads() }
        let lost = try await Self.finishSaves(of: all)
        for writer in retired { try await writer.close() }
        // Not before, because an error above would hide them. They say which saves are lost.
        let failures = all.flatMap { $0.writer.takeFailures() }
        if !failures.isEmpty { throw SaveError.deferredSavesFailed(failures) }
        if let lost { throw lost }
    }

    /// Writes the deferred saves. Returns the error of saves that these containers can never write.
    ///
    /// - Throws: The error of saves that may be written later.
    private static func finishSaves(of coordinators: [PersistentStoreCoordinator]) async throws -> (any Error)? {
        var lost: (any Error)?
        for coordinator in coordinators {
            let error = try await coordinator.writer.finishSavesThatCanBeWritten()
            lost = lost ?? error
        }
        return lost
    }
}
