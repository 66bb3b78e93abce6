import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// A durable group whose transaction is being committed. Its saves are decided, and the disk works.
///
/// Meanwhile a thread that waits for its own deferred save may accept it over the group. From then on the group counts as a flush of
/// deferred saves, and ends like one.
struct CommittingGroup: Sendable {
    /// A save of the group, with its source.
    struct Save: Sendable {
        var source: SaveSource
        var changes: ChangeSet
    }

    /// The state before the group.
    let start: StoreState
    /// The state with the group's saves in memory.
    let state: StoreState
    /// The earlier pending saves, and the group's own after them.
    let pending: [PendingSave]
    /// The group's accepted saves.
    let own: [Save]
    /// The flush as which the group ends; nil until a save is accepted over it.
    var flush: DeferredSaves.Flush?
    /// The number of saves accepted over the group.
    var acceptedCount = 0

    init(_ group: StoreWriter.CommitGroup) {
        (start, state, pending) = (group.start, group.state, group.pending)
        own = zip(group.jobs, group.results).compactMap { job, result in
            guard case .success(let changes) = result, !changes.isEmpty else { return nil }
            return Save(source: job.source, changes: changes)
        }
    }

    /// The layers of the group's own saves, newest first.
    var layers: [Layer] { pending.suffix(own.count).map(\.layer).reversed() }

    /// The contexts of the group, which wait for their own saves and learn of later ones afterwards.
    var contexts: Set<UInt64> { Set(own.compactMap { if case .context(let number) = $0.source { number } else { nil } }) }

    /// Returns the layers that were accepted over the group in a state with it.
    func later(in state: StoreState) -> ArraySlice<Layer> { state.deferred.dropLast(self.state.deferred.count) }

    /// Returns the state without the group's saves.
    func without(in state: StoreState, sequence: SaveSequence) -> StoreState {
        StoreState(
            base: start.base, committed: start.committed, deferred: later(in: state) + start.deferred,
            pendingSaves: start.pendingSaves + acceptedCount, sequence: sequence)
    }
}

/// The promise that deferred saves will be accepted over a group that is being checked and written.
///
/// It opens when its transaction only has to be committed, or when its writing has ended without that. Threads wait for it instead of the
/// writer's queue, which is free only after the commit.
final class GroupOffer: Sendable {
    private let group = DispatchGroup()
    private let isOpen = Atomic(false)
    /// The number of threads that wait.
    let waiting = Atomic(0)

    init() { group.enter() }

    func open() {
        if !isOpen.exchange(true, ordering: .acquiringAndReleasing) { group.leave() }
    }

    func wait() {
        waiting.add(1, ordering: .relaxed)
        group.wait()
        waiting.subtract(1, ordering: .relaxed)
    }

    // A dispatch group must not be released while it is entered.
    deinit { open() }
}

/// Accepting deferred saves while a durable group is being committed.
extension StoreWriter {
    /// The number of saves that are accepted over one group. Others wait, so that reads do not go through many layers.
    private static let acceptedLimit = 64
    /// The number of times that a save is checked again because another one was accepted first.
    private static let acceptanceTries = 8
    /// The time after such a save, or its announcement, for which the writer expects one. An offered group keeps other processes from
    /// saving meanwhile, so it is not offered without need.
    private static let expectation = DispatchTimeInterval.seconds(60)

    /// Accepts a deferred save without waiting for the group that is being committed.
    ///
    /// The group may still fail, so only a save that is valid without it is accepted: one that has nothing to do with the objects of the
    /// group, and that is checked with the same result over the state with the group and over the state without it.
    ///
    /// Waits while the group is being checked and written, which needs no sync.
    ///
    /// - Returns: nil if no group is being committed, or if the save must wait for it.
    func acceptWhileCommitting(_ request: SaveRequest, from source: SaveSource) -> SaveOutcome? {
        guard case .deferred(let bound) = request.durability, request.make == nil else { return nil }
        guard capabilities.contains(.layeredDeferral) else {
            // The writer's queue is then free soon: groups are synced outside of it.
            expectSavers()
            return nil
        }
        // The closure of a custom policy might save too, and would wait here for itself.
        if case .custom = request.policy { return nil }
        expectSavers()
        guard let offer = shared.withLock({ $0.offer }) else { return nil }
        offer.wait()
        for _ in 0..<Self.acceptanceTries {
            let (known, newest) = shared.withLock { ($0.committing, $0.state) }
            guard let group = known, group.acceptedCount < Self.acceptedLimit, !claim.isWanted else { return nil }
            let before = group.flush == nil ? group.state : newest
            // A save that cannot be accepted now is checked again after the group, which tells why.
            guard !isFull(group.later(in: before)), let save = try? check(request, over: before, of: group) else { return nil }
            if let accepted = publish(save, state: before.adding(save.layer), over: group, from: source, within: bound) {
                request.trace?.accepted(save.layer)
                if let wake = accepted.wake { clock.run(at: wake, on: queue) { [weak self] in self?.flushOverdue() } }
                for listener in accepted.listeners { listener(accepted.outcome.state, accepted.source) }
                return accepted.outcome
            }
        }
        return nil
    }

    /// Makes the writer keep syncs away from threads that save within the next minute: it offers its groups to them, or syncs them
    /// separately.
    func expectSavers() { shared.withLock { $0.expectsSaversUntil = clock.now + Self.expectation } }

    /// Whether threads that save are expected.
    var expectsSavers: Bool { shared.withLock { $0.expectsSaversUntil.map { $0 > clock.now } ?? false } }

    /// Returns a layer to stamp. Its rows may be those of a group that was offered to other threads, which read them, and not committed.
    func unpublished(_ layer: Layer) -> Layer {
        shared.withLock { $0.hasOffered } && layer.isStamped ? layer.copied(schema: store.schema) : layer
    }

    /// Promises to offer a group to threads that save, if such threads are expected.
    ///
    /// - Returns: nil if a context of the group merges the saves of others by itself. It cannot merge saves over its own one before that
    ///   one ends. A program that has awaited such a save would not see it there (S068).
    func makeOffer(of jobs: [SaveJob]) -> GroupOffer? {
        guard capabilities.contains(.layeredDeferral), jobs.allSatisfy({ $0.request?.mergesByItself != true }) else { return nil }
        let isExpected = expectsSavers
        return shared.withLock { shared in
            shared.offer = isExpected ? GroupOffer() : nil
            return shared.offer
        }
    }

    /// Ends an offer with the writing of its group.
    func endOffer(_ offer: GroupOffer?) {
        guard let offer else { return }
        shared.withLock { $0.offer = nil }
        offer.open()
    }

    private struct Accepted: Sendable {
        var outcome: SaveOutcome
        var source: SaveSource
        var listeners: [SaveListeners.Call]
        /// The time of the next flush, if it is new.
        var wake: DispatchTime?
    }

    /// Returns the accepted save; nil if it changes nothing, or depends on the group.
    private func check(_ request: SaveRequest, over state: StoreState, of group: CommittingGroup) throws -> PendingSave? {
        // Another sequence than that of the base, so that everything is checked.
        let apart = group.without(in: state, sequence: state.sequence.next)
        func isIndependent(_ layer: Layer) -> Bool { group.layers.allSatisfy { layer.isIndependent(of: $0, store.schema) } }
        func isUnchanged(_ layer: Layer, over state: StoreState) throws -> Bool {
            var alone = request
            alone.layers = [layer]
            var check = SaveCheck(request: alone, state: state, writer: self)
            return try check.resolvedLayer() === layer
        }
        func checked() throws -> PendingSave? {
            var check = SaveCheck(request: request, state: state, writer: self)
            guard isIndependent(check.folded) else { return nil }
            var layer = try check.resolvedLayer()
            guard !layer.isEmpty, isIndependent(layer), try isUnchanged(layer, over: apart) else { return nil }
            if check.isChanged {
                // A policy that merges a new object into another one, or drops a change, must do the same without the group. Otherwise a
                // change that was dropped because of the group would be lost if the group failed.
                var other = SaveCheck(request: request, state: apart, writer: self)
                let decided = try other.resolvedLayer()
                guard isIndependent(decided), try isUnchanged(decided, over: state) else { return nil }
            }
            layer = unpublished(layer)
            let changes = try stamp(layer, request, after: state)
            layer.seal()
            return PendingSave(sequence: state.sequence.next, changes: changes, terms: check.terms, layer: layer)
        }
        guard let trace = request.trace else { return try checked() }
        return try trace.checking(checked)
    }

    /// Publishes the group, if it is not yet visible, and a save over it.
    ///
    /// - Returns: nil if another save was accepted first, the group has ended, or saves are not accepted any more.
    private func publish(
        _ save: PendingSave, state: StoreState, over known: CommittingGroup, from source: SaveSource, within bound: Duration
    ) -> Accepted? {
        shared.withLock { shared in
            guard var group = shared.committing, group.state === known.state, group.acceptedCount == known.acceptedCount,
                !isRetired, !(shared.deferred.flushError.map(Self.refusesAll) ?? false)
            else { return nil }
            shared.committing = nil
            defer { shared.committing = group }
            if group.flush == nil { show(&group, &shared) }
            guard group.flush != nil else { return nil }
            group.acceptedCount += 1
            shared.recent.append(.save(save.changes), save.sequence, source: source)
            shared.deferred.pending.append(save)
            shared.state = state
            let deadline = clock.now + .nanoseconds(bound.nanoseconds)
            var contexts = group.contexts
            if case .context(let number) = source { contexts.insert(number) }
            return Accepted(
                outcome: SaveOutcome(state: state, changes: save.changes),
                source: .contexts(contexts, areBatch: group.own.contains { $0.source == .batch }),
                listeners: shared.listeners.all, wake: shared.deferred.require(by: deadline) ? deadline : nil)
        }
    }

    /// Makes the group's saves pending ones, which a flush is writing.
    private func show(_ group: inout CommittingGroup, _ shared: inout Shared) {
        var sequence = shared.state.sequence
        for own in group.own {
            sequence = sequence.next
            shared.recent.append(.save(own.changes), sequence, source: own.source)
        }
        shared.deferred.pending = group.pending
        group.flush = shared.deferred.beginFlush(of: group.state)
    }

    /// Returns the group if saves were accepted over it. No more are accepted then.
    func endCommitting() -> CommittingGroup? {
        shared.withLock { shared in
            defer { shared.committing = nil }
            return shared.committing?.flush == nil ? nil : shared.committing
        }
    }

    /// Ends a group that is in the file, and over which saves were accepted. Runs on the queue.
    func finish(_ group: CommitGroup, _ shown: CommittingGroup, generation: Generation) {
        guard let flush = shown.flush else { return }
        shared.withLock { shared in
            shared.isCommitting = false
            shared.numbers.note(group.committed)
        }
        let base = lazySnapshot(after: generation)
        flush.result.withLock { $0 = .success(DeferredSaves.Written(base: base, committed: generation)) }
        group.didWrite(base)
        // All contexts but those of the group, which merge the saves over it after their own.
        adopt(flush, from: .contexts(shown.contexts, areBatch: true))
        let newest = state
        complete(group, newest)
        for listener in shared.withLock({ $0.listeners.all }) { listener(newest, .flush) }
        compactDeferred()
        flushOverdue()
    }

    /// Takes back a group that could not be committed, below the saves that were accepted over it. Runs on the queue.
    func withdraw(_ shown: CommittingGroup) {
        let (moved, listeners) = shared.withLock { shared -> (StoreState, [SaveListeners.Call]) in
            shared.isCommitting = false
            // These saves are valid without the group, but were accepted over it. The flush checks them again.
            let accepted = StoreState(base: shown.start.base, deferred: shown.layers, sequence: .zero)
            var later = Array(shared.deferred.pending.dropFirst(shown.pending.count))
            for position in later.indices { later[position].accepted = accepted }
            shared.deferred.withdrawFlush(leaving: shown.pending.dropLast(shown.own.count) + later)
            // The saves before the group may have been due meanwhile.
            _ = shared.deferred.require(by: clock.now)
            shared.state = shown.without(in: shared.state, sequence: shared.state.sequence.next)
            shared.recent.append(.unknown, shared.state.sequence)
            shared.numbers.noteWithdrawn(shown.pending.suffix(shown.own.count).map(\.sequence))
            return (shared.state, shared.listeners.all)
        }
        for listener in listeners { listener(moved, .externalProcess) }
        queue.async { [weak self] in self?.flushOverdue() }
    }
}

extension Layer {
    /// Returns whether this layer changes no object and no pair of another one, and refers to no object that the other one inserts or deletes.
    fileprivate func isIndependent(of other: Layer, _ schema: StoreSchema) -> Bool {
        for entity in entityIndices {
            guard let changes = self.entity(entity) else { continue }
            let columns = schema.entities[entity].columns
            for (number, page) in changes.pages {
                if let theirs = other.entity(entity)?.page(number), theirs.touched & page.touched != 0 { return false }
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    for column in row.columnIndices where row.isSet(column) {
                        guard let destination = columns[column].destination, let key = row[column].referenceKey else { continue }
                        if other.mayRemove(destination, key) { return false }
                    }
                }
            }
        }
        for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
            for (source, pairs) in links[number].forward {
                if other.mayRemove(link.source, source) { return false }
                for destination in pairs.keys {
                    if other.mayRemove(link.destination, destination) { return false }
                    if other.links[number].forward[source]?[destination] != nil { return false }
                }
            }
        }
        return true
    }

    /// Whether an object exists only with or only without this layer.
    private func mayRemove(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        switch row(entity, key)?.kind {
        case .insert, .delete: true
        case .update, nil: false
        }
    }
}
