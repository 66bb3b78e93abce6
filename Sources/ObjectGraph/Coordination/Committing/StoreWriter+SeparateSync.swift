import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// The jobs that wait for the disk although their saves are in the file and visible. A sync beside the writer's queue ends them.
///
/// Part of the writer's state. Changed on the writer's queue only.
struct SeparateSyncs: Sendable {
    /// A job of a group that was committed without a sync.
    struct Job: Sendable {
        var job: StoreWriter.SaveJob
        var result: Result<ChangeSet, any Error>
        /// A state that contains the save.
        var state: StoreState
    }

    /// The jobs that one sync ends, in the order of their commits.
    struct Batch: Sendable {
        let sync: any CommitSync
        var jobs: [Job] = []
        /// The newest save that the sync takes to disk; nil if there is none.
        var newest: Generation?
    }

    private var running: Batch?
    /// The jobs of groups that were committed while a sync was running. One sync ends all of them.
    private var waiting: Batch?
    /// Whether the last sync has failed. Until a durable commit succeeds, commits are not synced separately.
    private(set) var hasFailed = false

    /// The sync that the next group may share; nil if there is none. It was made before the commits of all groups that share it.
    var shareable: (any CommitSync)? { waiting?.sync }

    /// Whether a call that waits for the disk must wait for a sync.
    var isOwed: Bool { running != nil || waiting != nil || hasFailed }

    mutating func add(_ jobs: [Job], through newest: Generation?, _ sync: any CommitSync) {
        var batch = waiting ?? Batch(sync: sync)
        batch.jobs += jobs
        batch.newest = newest
        waiting = batch
    }

    /// Begins the next sync. Returns nil if one is running, or if no jobs wait for it.
    mutating func begin() -> Batch? {
        guard running == nil, let next = waiting else { return nil }
        (running, waiting) = (next, nil)
        return next
    }

    /// Ends a sync. Returns false if a durable commit has ended its jobs meanwhile.
    mutating func end(_ batch: Batch) -> Bool {
        guard running?.sync === batch.sync else { return false }
        running = nil
        return true
    }

    /// Notes that a sync has failed. Returns the jobs that wait for the next one, which may not repair the failure.
    mutating func fail() -> [Job] {
        defer { (waiting, hasFailed) = (nil, true) }
        return waiting?.jobs ?? []
    }

    /// Notes a durable commit, which has taken all earlier ones to disk. Returns their jobs.
    mutating func endAll() -> [Job] {
        defer { self = SeparateSyncs() }
        return (running?.jobs ?? []) + (waiting?.jobs ?? [])
    }
}

/// Groups whose commits are synced beside the writer's queue, so that threads that save in the meantime do not wait for the disk.
///
/// Only for stores that commit deferred saves at once. With layered deferral, saves are accepted over the running commit instead: see
/// ``acceptWhileCommitting(_:from:)``.
extension StoreWriter {
    /// The queue of the syncs. Concurrent, because all writers of the process share it.
    private static let syncQueue = DispatchQueue(label: "strata.sync", attributes: .concurrent)

    /// Returns the sync that will end the jobs of a group that wait for the disk; nil if the commit syncs them.
    ///
    /// The commit does so if no thread that saves is expected, if a thread waits for one of the jobs, which ends with its block of the queue,
    /// or if the last sync has failed. It also does if a context that merges by itself makes one of the saves: until that save ends, the
    /// context cannot merge later ones, which a program that has awaited them would not see there (S068).
    func separateSync(of jobs: [SaveJob]) -> (any CommitSync)? {
        guard !capabilities.contains(.layeredDeferral), jobs.contains(where: \.waitsForDisk), expectsSavers,
            jobs.allSatisfy({ !$0.waitsForDisk || !$0.isSynchronous && $0.request?.mergesByItself != true })
        else { return nil }
        let (hasFailed, shareable) = shared.withLock { ($0.syncs.hasFailed, $0.syncs.shareable) }
        return hasFailed ? nil : shareable ?? store.separateSync()
    }

    /// Completes the jobs of a group that is committed without a sync, except for those that wait for the disk. The sync ends these.
    func complete(_ group: CommitGroup, after sync: any CommitSync) {
        var held: [SeparateSyncs.Job] = []
        for (job, result) in zip(group.jobs, group.results) {
            if case .success = result, job.waitsForDisk {
                held.append(SeparateSyncs.Job(job: job, result: result, state: group.state))
            } else {
                job.completion(outcome(of: job, result, group.state))
            }
        }
        if held.isEmpty { return }
        let jobs = held
        shared.withLock { shared in
            // The writer commits on this queue, so no save counts here whose commit is still running.
            shared.syncs.add(jobs, through: shared.unsynced.newest(by: self), sync)
        }
        beginSync()
    }

    /// Completes jobs whose saves are on disk, or whose callers find out themselves that they are not.
    func complete(_ jobs: [SeparateSyncs.Job]) {
        for held in jobs { held.job.completion(outcome(of: held.job, held.result, held.state)) }
    }

    private func beginSync() {
        guard let batch = shared.withLock({ $0.syncs.begin() }) else { return }
        // Retains the writer until the jobs are completed.
        Self.syncQueue.async {
            let result = Result { try batch.sync.sync() }
            self.queue.async { self.endSync(batch, result) }
        }
    }

    private func endSync(_ batch: SeparateSyncs.Batch, _ result: Result<Void, any Error>) {
        guard shared.withLock({ $0.syncs.end(batch) }) else { return }
        if case .failure(let error) = result { return leaveToCommit(batch.jobs, error) }
        shared.withLock { shared in
            if let newest = batch.newest { shared.unsynced.didSync(through: newest) }
            // Later saves are not on disk, and keep the time at which they must be.
            if !shared.unsynced.isOwed(by: self) { shared.deferred.clearDeadline() }
        }
        beginSync()
        complete(batch.jobs)
    }

    /// Leaves jobs whose sync has failed to the next durable commit.
    ///
    /// Their saves are in the file, and others may have read them, so they cannot be taken back. Their contexts learn that they are
    /// accepted, so that they do not save the changes twice, and then call ``repeatFailedSync()``.
    private func leaveToCommit(_ jobs: [SeparateSyncs.Job], _ error: any Error) {
        let left = jobs + shared.withLock { $0.syncs.fail() }
        tryAgain(after: error)
        complete(left.filter { $0.job.request != nil })
        for flush in left where flush.job.request == nil { enqueue(flush.job) }
    }

    /// Takes saves to disk whose separate sync has failed, by a durable commit. Does nothing if none has failed. Each durable save ends
    /// with this call.
    ///
    /// - Throws: `StoreError` `.notOnDisk` if that commit fails. The saves stay visible, and are tried again like deferred ones.
    nonisolated(nonsending) func repeatFailedSync() async throws {
        guard shared.withLock({ $0.syncs.hasFailed }) else { return }
        do {
            _ = try await withCompletion { enqueue(SaveJob(request: nil, source: .flush, completion: $0)) }
        } catch {
            throw StoreError(
                .notOnDisk,
                "\(store.name): the save is visible, but cannot be written to disk: \(error). Call flush() to try it again, "
                    + "and do not repeat the save")
        }
    }
}
