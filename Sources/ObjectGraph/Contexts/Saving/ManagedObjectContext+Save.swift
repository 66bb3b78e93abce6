import StoreInterface

/// Saving: prepare, hand over sealed layers, and become clean. The context's executor is free while others do the work.
extension ManagedObjectContext {
    /// Saves one level: a root context to the store, a child to its parent.
    ///
    /// Order (S060): pending changes; will-save notice; `willSave` until stable; validation; then the writer, or the parent, takes
    /// the layers; then `didSave` and the did-save notice before this returns. With nothing to save it does nothing (S063).
    /// Throws ``SaveError`` or the store's error; then everything is as it was (S062). Changes made while a save runs belong to the
    /// next one. Cost here: O(layers + changed objects that are registered); a child's folding is O(changed objects).
    nonisolated(nonsending) public func save(_ durability: Durability = .durable) async throws {
        checkIsolation()
        await beginSave()
        defer { endSave() }
        try checkOpen()
        guard try moving(prepareSave) else { return }
        if isRoot {
            let outcome = try await write(sealed, durability)
            moving { didWrite(outcome) }
        } else {
            let push = makePush()
            let place = try await pushOneLevel(push)
            moving { didPush(push, place) }
        }
    }

    /// Saves the context, its parents and the root as one atomic step (S064). Throws as ``save(_:)``; then every level is as it
    /// was. In a root context the same as `save`.
    nonisolated(nonsending) public func save(through target: SaveTarget, _ durability: Durability = .durable) async throws {
        guard !isRoot else { return try await save(durability) }
        checkIsolation()
        await beginSave()
        defer { endSave() }
        try checkOpen()
        // The parents may have changes to save even when this context has none.
        _ = try moving(prepareSave)
        let push = makePush()
        let place = try await pushThrough(push, durability)
        moving { didPush(push, place) }
    }

    /// Also checks these objects' versions at the next save, though they are unchanged here (S100).
    public func detectConflicts(for object: ManagedObject) { watched.insert(object.objectID) }

    // MARK: One save at a time

    nonisolated(nonsending) func beginSave() async {
        if !isSaving {
            isSaving = true
            return
        }
        await withCheckedContinuation { continuation in
            waitingSaves.append { continuation.resume() }
        }
    }

    /// Lets the next waiting save begin; `isSaving` stays true when there is one.
    func endSave() {
        inFlight = 0
        if waitingSaves.isEmpty {
            isSaving = false
        } else {
            waitingSaves.removeFirst()()
        }
    }

    /// Runs `body` now, or when the running saves are over; then a save is running, and `endSave` must follow.
    func whenIdle(_ body: @escaping () -> Void) {
        if isSaving {
            waitingSaves.append(body)
        } else {
            isSaving = true
            body()
        }
    }

    // MARK: Steps

    /// Everything before the hand-over. Gives false when there is nothing to save; throws when an object refuses.
    func prepareSave() throws -> Bool {
        guard hasChanges else { return false }
        processPendingChanges()
        if !noticeObservers.isEmpty { post(.willSave, foldedChanges().changeSet(origin: origin)) }
        try runWillSave()
        processPendingChanges()
        try validate()
        sealTop()
        inFlight = sealed.count
        return hasChanges
    }

    nonisolated(nonsending) private func write(_ layers: [Layer], _ durability: Durability) async throws -> SaveOutcome {
        try setup.coordinator.checkOpen()
        let request = saveRequest(layers, durability)
        let writer = setup.writer
        let origin = number
        if baseState.ancestors != nil || setup.coordinator.routing == .ancestors {
            return try writer.submitAndWait(request, origin: origin)
        }
        return try await withCheckedThrowingContinuation { continuation in
            writer.submit(request, origin: origin) { continuation.resume(with: $0) }
        }
    }

    func saveRequest(_ layers: [Layer], _ durability: Durability) -> SaveRequest {
        SaveRequest(
            layers: layers, base: baseState.state, watched: Array(watched), policy: mergePolicy, durability: durability,
            origin: origin, preserved: traits.preserved, rules: traits.rules, mayHaveOrphans: !orphans.isEmpty)
    }

    /// Who changes things here. Time and process follow when it is saved.
    var origin: SaveOrigin { SaveOrigin(author: transactionAuthor ?? "", contextName: name) }

    /// After the store has taken the layers in flight.
    func didWrite(_ outcome: SaveOutcome, adopted: ChangeSet? = nil) {
        let written = takeInFlight()
        let old = baseState.state
        let between = setup.writer.changes(after: old, through: outcome.state)
        let others = between.map { $0.filter { $0.generation != outcome.changes.generation } }
        if outcome.state.sequence > old.sequence {
            var moved = baseState
            moved.state = outcome.state
            moved.isPinned = false
            settlesBaseLater = true
            move(to: moved, others)
        }
        if !hasUnsavedLayers { orphans = UpdatesOfDeletedObjects() }
        clean(written)
        watched = []
        let dropped = dropped(of: written, outcome.changes, others: others)
        let added = added(to: written, adopted, outcome.changes)
        let visible = others.map { ChangeSet.union($0 + [adopted, dropped, added].compactMap(\.self)) }
        let refreshed = refreshRegistered(visible)
        if !viewObservers.isEmpty || visible?.isEmpty != true { notify(visible, refreshed: refreshed, saved: outcome.changes) }
        if !outcome.changes.isEmpty { post(.didSave, outcome.changes) }
        // Of what children handed up, too, the policy may have dropped something.
        let left = mergePolicy.mayDrop ? [adopted, dropped].compactMap(\.self) : []
        if settlesBaseLater { settleBaseNow() }
        tellFollowers(between.map { ChangeSet.union($0 + left) })
    }

    /// Removes the layers that a save has taken from the context's own.
    private func takeInFlight() -> [Layer] {
        let taken = Array(sealed.prefix(inFlight))
        sealed.removeFirst(inFlight)
        inFlight = 0
        viewRevision += 1
        rebuildView()
        return taken
    }

    /// Makes registered objects clean whose changes were saved with `layers` and that have no newer ones.
    func clean(_ layers: [Layer]) {
        let mayHaveNewer = !sealed.isEmpty || !top.isEmpty
        for layer in layers {
            forEachRegisteredPage(in: layer) { entity, registered, page in
                let ends = retainsRegisteredObjects ? page.deleted : page.touched
                let isPlain = !mayHaveNewer && !traits.hasLifecycle[entity]
                for slot in SlotIterator(registered.present & page.touched) {
                    let isReleased = ends >> UInt64(slot) & 1 != 0
                    if isPlain {
                        registry.clean(slot, of: registered, isReleased: isReleased)
                    } else if let object = registered[slot] {
                        clean(object, isReleased: isReleased)
                    }
                }
            }
        }
    }

    private func clean(_ object: ManagedObject, isReleased: Bool) {
        let newer = newestOwnRow(object.entity, object.key)
        object.row = newer
        if traits.hasLifecycle[object.entity] { didSave(object) }
        if newer == nil, isReleased { registry.release(object) }
    }
}
