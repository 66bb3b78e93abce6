internal import Platform
import StoreInterface
import StoreModel

/// Lets saves of children pass a parent on the main actor that has nothing to add, so that the main thread runs one job per save instead
/// of two. That saves a third of main's processor time in `strata-bench shootout --store lmdb --stack nested,masterMainWorker`.
///
/// After a child's save through it, an idle parent without unsaved changes opens the gate with all that forwarding needs. The next save of
/// a child that has seen this state takes it, and goes from the child's executor to the writer, or to the parent's parent. The parent
/// counts as saving from then on, and gets the result by a job.
///
/// The parent must close the gate before anything changes that forwarding reads: its settings, its state, its unsaved changes or its
/// checks. Then it forwards the next save itself.
final class DirectSaveGate: Sendable {
    /// The parent's part of a save that it would forward.
    struct Passage: Sendable {
        /// The level above the parent.
        enum Next: Sendable {
            /// The request of a root, without layers.
            case writer(SaveRequest)
            /// The parent's parent, the state that the parent reads, and whether its merge policy is also that of its parent.
            case parent(ContextLink, SealedBase, decidesForParent: Bool)
        }

        var revision: UInt64
        var resetGeneration: UInt64
        /// The state of the store that the parent reads.
        var state: StoreState
        var author: String?
        /// The number of the parent, for the writer.
        var number: UInt64
        var next: Next
    }

    private enum State {
        case closed
        case open(Passage)
        case taken
    }

    private let state = Mutex(State.closed)

    func open(_ passage: Passage) { state.withLock { $0 = .open(passage) } }

    /// Closes the gate, unless a save has taken it. Returns whether one has.
    @discardableResult func close() -> Bool {
        let old = state.withLock { state in
            defer { if case .open = state { state = .closed } }
            return state
        }
        if case .taken = old { return true }
        return false
    }

    /// Takes the passage for the save of a child; nil if the gate is closed, or if the child has not seen the parent's present state.
    func take(for push: ChildChanges, _ newest: @autoclosure () -> StoreState) -> Passage? {
        state.withLock { state in
            guard case .open(let passage) = state, passage.accepts(push), newest().sequence == passage.state.sequence else {
                return nil
            }
            state = .taken
            return passage
        }
    }

    /// Whether the next save of a child may pass.
    var isOpen: Bool { state.withLock { if case .open = $0 { true } else { false } } }

    /// Whether a save has taken the gate and runs.
    var isTaken: Bool { state.withLock { if case .taken = $0 { true } else { false } } }

    /// Ends the save that has taken the gate.
    func end() { state.withLock { $0 = .closed } }
}

extension DirectSaveGate.Passage {
    /// Whether the parent would forward a child's changes unchanged, and would not have to compare its own state with them.
    fileprivate func accepts(_ push: ChildChanges) -> Bool {
        guard push.parentViewRevision == revision, push.parentResetGeneration == resetGeneration,
            push.updatesOfDeleted.isEmpty, push.positions.isEmpty, push.state.sequence == state.sequence
        else { return false }
        // With two snapshots of one state, the parent has to look for saves that only one of them contains.
        return state.pendingSaves > 0 || push.state.storeBase === state.storeBase
    }
}

extension ManagedObjectContext {
    /// Opens the gate for the next save of a child, if this context has nothing to add to it.
    func openDirectGate() {
        guard let gate = phase.saveGate.direct, !phase.saveGate.isSaving, phase.closure == nil, !phase.isSuspended,
            phase.arrivals.isEmpty,
            !hasUnsavedLayers, tracker.hasNothingToSave
        else { return }
        let base = layerStack.baseState
        guard base.route == nil, !base.isPinned else { return }
        let next: DirectSaveGate.Passage.Next =
            if let parent = configuration.parent {
                .parent(parent, SealedBase(baseState: base), decidesForParent: configuration.decidesForParent)
            } else {
                .writer(emptySaveRequest())
            }
        let passage = DirectSaveGate.Passage(
            revision: layerStack.revision, resetGeneration: layerStack.resetGeneration, state: base.state,
            author: transactionAuthor, number: number, next: next)
        tracker.log.willClose(gate)
        layerStack.gate = gate
        gate.open(passage)
    }

    /// Saves a child's changes past its parent. Called on the child's executor.
    ///
    /// - Returns: Whether the parent lets them pass. Otherwise it must forward them.
    func passesDirectly(
        _ push: ChildChanges, past parent: any ContextExecutor, durability: Durability,
        _ completion: @escaping @Sendable (Result<ParentState, any Error>) -> Void
    ) -> Bool {
        let writer = configuration.writer
        guard let place = configuration.parent?.place, !push.layer.isEmpty, !configuration.coordinator.isClosed,
            capabilities.keyedValues.map({ push.layer.entity($0) == nil }) ?? true,
            let passage = place.direct.take(for: push, writer.state)
        else { return false }
        // The state of the passage is not kept until the result comes, because the main thread would release it then.
        let revision = passage.revision
        switch passage.next {
        case .writer(var request):
            let mayDrop = request.policy.mayDrop
            request.layers = [push.layer]
            request.durability = durability
            request.checks = push.checks
            request.metadata = push.metadata.orAuthor(passage.author)
            request.readsNextState = push.readsNextState || place.readsNextState.load(ordering: .relaxed)
            request.trace = trace(of: request)
            writer.submit(request, from: .context(passage.number)) { result in
                parent.enqueue { parent in
                    parent.phase.policyMayDrop = mayDrop
                    parent.finishDirect(push, revision: revision, result: result.map { .written($0) }, completion)
                }
            }
        case .parent(let link, let base, decidesForParent: let decides):
            var forwarded = push.forwarded(over: base, author: passage.author)
            forwarded.decidesForParent = decides
            if place.readsNextState.load(ordering: .relaxed) { forwarded.readsNextState = true }
            let finish = { @Sendable [forwarded] (result: Result<ParentState, any Error>) in
                _ = parent.enqueue {
                    $0.finishDirect(push, revision: revision, result: result.map { .pushed(forwarded, $0) }, completion)
                }
            }
            let isEnqueued =
                link.contextExecutor?.enqueue { [forwarded] above in
                    above.mergeThrough(child: forwarded, durability: durability, finish)
                } ?? false
            if !isEnqueued { finish(.failure(SaveError.parentGone(context: configuration.parent?.name ?? name))) }
        }
        return true
    }

    /// Applies the result of a child's save that has passed this context.
    ///
    /// - Parameter revision: The revision of this context that the child has seen.
    private func finishDirect(
        _ push: ChildChanges, revision: UInt64, result: Result<Answer, any Error>,
        _ completion: @escaping @Sendable (Result<ParentState, any Error>) -> Void
    ) {
        phase.saveGate.enterDirect()
        let joined = JoinedPushes(pushes: [push], layers: [push.layer], changes: push.changes)
        let isSame = revision == layerStack.revision
        let state = Result { try didForwardToParent(joined, same: isSame, result: result) }
        finish([WaitingPush(push: push, durability: .durable, completion: completion)], state)
    }
}
