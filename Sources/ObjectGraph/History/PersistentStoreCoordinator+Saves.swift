import StoreInterface
import StoreModel

extension PersistentStoreCoordinator {
    /// Calls a closure after each save that contexts can see: of each context, batch, and process that the coordinator follows.
    ///
    /// The closure runs on the writer's queue and must not wait. The observation ends with its token, or when the store is closed.
    package func observeSaves(_ body: @escaping @Sendable () -> Void) -> ObservationToken {
        let end = ObservationEnd()
        let number = writer.addListener { _, _ in if !end.isReached { body() } }
        return ObservationToken(end) { [weak writer] in writer?.removeListener(number) }
    }
}

extension ManagedObjectContext {
    /// Shows newer saves before a read, if the context merges automatically or is confined.
    ///
    /// Other reads show a save once the executor has run the job that announces it. This also shows saves that other contexts made
    /// synchronously in the running job, and those of other processes.
    package func catchUpWithSaves() {
        checkIsolation()
        prepareRequest()
        guard place.confinement == nil, !phase.isMoving else { return }
        // Nothing has announced saves of other processes, unless the program follows them.
        if followsStore { configuration.writer.lookForExternalSaves() }
        storeDidChange()
    }

    /// Calls a closure when a confined context has work that waits for its next request. Does nothing in other contexts, which do such work
    /// on their executors.
    ///
    /// The closure runs on any thread and must not wait.
    package func observeWaitingWork(_ body: @escaping @Sendable () -> Void) -> ObservationToken? {
        place.confinement?.observeJobs(body)
    }
}
