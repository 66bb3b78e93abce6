internal import Platform
import StoreInterface
import StoreModel

/// Saving: prepare, hand over sealed layers, and become clean. The context's executor is free while the writer works.
extension ManagedObjectContext {
    /// Saves one level: a root context to the store, a child to its parent.
    ///
    /// The order of steps (S060):
    /// 1. Pending changes are processed, and the will-save notice is posted.
    /// 2. `willSave` is called until no call changes anything. Then objects are validated.
    /// 3. The writer, or the parent, takes the layers.
    /// 4. `didSave` is called and the did-save notice posted before this method returns.
    ///
    /// A durable save of a root returns when it is on disk, a deferred one when other contexts can see it (S066). If others have saved
    /// objects that this context has changed, ``mergePolicy`` decides.
    ///
    /// With nothing to save, this method does nothing (S063). Changes made during a save belong to the next save.
    /// Cost on this executor: O(layers + changed registered objects). A child also folds its layers: O(changed objects).
    ///
    /// - Throws: ``SaveError`` or the store's error. Then the context and the store are unchanged (S062). There is one exception, on
    ///   SQLite: if a thread has waited for a deferred save in the last minute, a durable save is visible before it is on disk. If the disk
    ///   then refuses it, this throws `StoreError` `.notOnDisk`, and the save stays. Call this method again, or `flush()`, to wait until
    ///   it is on disk.
    nonisolated(nonsending) public func save(_ durability: Durability = .durable) async throws {
        try await save(durability, through: nil) {}
    }

    /// Saves the context, its parents and the root as one atomic step (S064). In a root context, this is the same as `save`.
    ///
    /// - Throws: The same errors as ``save(_:)``. Then every level is unchanged.
    nonisolated(nonsending) public func save(through target: SaveTarget, _ durability: Durability = .durable) async throws {
        try await save(durability, through: target) {}
    }

    /// Runs `body` and saves. Running saves are awaited before `body`, and from its beginning until the changes are handed over nothing
    /// else runs on the context's executor.
    ///
    /// - Parameter target: nil: one level.
    nonisolated(nonsending) func save<T>(
        _ durability: Durability, through target: SaveTarget?, after body: () throws -> T
    ) async throws -> T {
        let result = try await saveInTurn(durability, through: target, after: body)
        if durability == .durable, isRoot || target != nil { try await configuration.writer.repeatFailedSync() }
        return result
    }

    nonisolated(nonsending) private func saveInTurn<T>(
        _ durability: Durability, through target: SaveTarget?, after body: () throws -> T
    ) async throws -> T {
        // A save that waits until the store is resumed does not move the context, which would open the file.
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        // A child's save to its parent does not use the store.
        let usesStore = isRoot || target != nil
        if usesStore { try await configuration.writer.suspension.enter(for: configuration.coordinator) }
        defer { if usesStore { configuration.writer.suspension.leave() } }
        checkIsolation()
        let uses = try beginUse()
        defer { uses?.end() }
        await beginSave()
        defer { endSave() }
        try checkOpen()
        let result = try body()
        let hasOwn = try moving(prepareSave)
        if isRoot {
            guard hasOwn else { return result }
            let outcome = try await write(layerStack.sealed, durability)
            moving { _ = didWrite(outcome) }
        } else if target == nil {
            guard hasOwn else { return result }
            let push = makePush()
            let place = try await pushOneLevel(push)
            moving { didPush(push, place) }
        } else {
            // The parents may have changes to save even when this context has none.
            let push = makePush()
            let place: ParentState
            do { place = try await pushThrough(push, durability) } catch {
                // Changes of this context that return do this at the end of the save.
                if !layerStack.hasTakenLayers { leaveWithdrawnSave() }
                throw error
            }
            moving {
                didPush(push, place)
                followParent(after: place)
            }
            // Without layers the new values are the parent's. The save has succeeded, even if the parent was released since.
            if layerStack.baseState.route != nil, configuration.decidesForParent, !place.showsTheSame {
                try? await refreshFromParent()
            }
        }
        return result
    }

    /// Includes an unchanged object in the version check of the next save (S100).
    ///
    /// Use this for an object on which a decision rests. If another context has changed or deleted it, the save throws
    /// ``SaveError/conflicts(_:)`` under the policy `.error`, and a custom policy decides. The other policies have nothing to resolve, because
    /// this context has no change of the object. In a child, the object is checked when its root saves.
    ///
    /// The save compares the object with the state that the context reads when this method is called. A merge or refresh, also an automatic
    /// one, moves that state, so decide again after it. A move to which a ``SnapshotBudget`` forces the context does not. A merge in the
    /// parent of a child does not either, until ``save(_:)`` has moved the check to the parent. An object of which the parent has unsaved
    /// changes is not checked for a child. The check ends with the next save that writes changes, with ``rollback()`` and with
    /// ``reset()``.
    public func detectConflicts(for object: ManagedObject) {
        checkIsolation()
        tracker.checks.watched.insert(object.objectID)
    }

    // MARK: One save at a time

    nonisolated(nonsending) func beginSave() async {
        if phase.saveGate.enterIfIdle() { return }
        await withCheckedContinuation { continuation in phase.saveGate.wait { continuation.resume() } }
    }

    /// Ends the running save and starts the next one that waits.
    func endSave() {
        let hasFailed = layerStack.hasTakenLayers
        let dropped = layerStack.dropsTaken ? layerStack.taken : []
        if dropped.isEmpty { layerStack.endTaking() } else { drop(dropped) }
        if hasFailed { leaveWithdrawnSave() }
        if !dropped.isEmpty { notify(nil, refreshed: refreshRegistered(nil)) }
        withoutUndo {
            if hasFailed {
                takeBackUndone()
                // The whole rows of a failed save are unsaved again.
                if layerStack.hasMovedInFlight { settleReturned() }
            }
            settleAfterMergeInFlight()
        }
        tracker.undoneInFlight = UndoneChanges()
        layerStack.endSave()
        tracker.returnTakenChecks()
        if !hasUnsavedLayers { tracker.provisional = [:] }
        tracker.replacements.leaveSave()
        tracker.log.forgetUnsavedChange()
        tracker.updatesOfDeleted.forgetCompletions()
        if place.confinement != nil { giveBackKeys() }
        phase.saveGate.leave()?()
    }

    /// Drops the changes that a failed save had taken, because the context was reset during it. Until now it has shown them.
    private func drop(_ dropped: [Layer]) {
        showing(
            layerStack.view(movedTo: layerStack.baseState, droppingTaken: true), changes: nil, keeping: layerStack.notInFlight
        ) {
            layerStack.endTaking()
            for layer in dropped {
                forEachRegistered(in: layer) { object, _ in
                    object.row = newestOwnRow(object.entity, object.key)
                    object.isDeletedHere = object.row?.kind == .delete
                    if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
                }
            }
        }
    }

    /// Makes keys and one-to-one ends consistent if the context has merged other saves during its own save. Call it at the end of the save,
    /// when its layers are written, or are unsaved changes again. The merge itself could not change the layers in flight.
    func settleAfterMergeInFlight() {
        guard layerStack.hasMovedInFlight, hasUnsavedLayers else { return }
        if automaticallyMergesChanges { dropMovedPositions() }
        settleRestored()
        settlePairs(of: layerStack.notInFlight)
        settleInsertedKeys(after: nil)
    }

    /// Runs `body` as a save: now, or after the running saves. `body` must call `endSave` at its end.
    func whenIdle(_ body: @escaping () -> Void) {
        if phase.saveGate.enterIfIdle() { body() } else { phase.saveGate.wait(body) }
    }

    // MARK: Steps

    /// Runs all steps before the hand-over. Returns false if there is nothing to save. Throws if validation fails.
    package func prepareSave() throws -> Bool {
        try checkKeyedChanges()
        guard hasChanges else {
            // A save of children may follow.
            phase.saveGate.handOver()
            return false
        }
        try recordMissingTypes()
        postPendingChanges()
        try completingUndoGroup {
            if observers.hasNotices { post(.willSave, layerStack.folded().changeSet(metadata: metadata)) }
            try runWillSave()
            try recordMissingTypes()
            postPendingChanges()
            try validate()
            // Hooks and observers, also those of the two lines above, may have written keyed values.
            try checkKeyedChanges()
            try recordMissingTypes()
        }
        endUndoEvent()
        if !tracker.positions.isEmpty, withoutUndo({ dropMovedPositions(beforeSaveBy: mergePolicy) }), !observed.isEmpty {
            // The observers of the lists may have changed objects.
            try validate()
            try checkKeyedChanges()
            try recordMissingTypes()
        }
        sealTop()
        tracker.replacements.beginSave()
        layerStack.beginSave()
        phase.saveGate.handOver()
        return hasChanges
    }

    nonisolated(nonsending) private func write(_ layers: [Layer], _ durability: Durability) async throws -> SaveOutcome {
        try configuration.coordinator.checkOpen()
        var request = saveRequest(layers, durability)
        request.trace = trace(of: request)
        let writer = configuration.writer
        let source = SaveSource.context(number)
        if let route = layerStack.baseState.route {
            return try route.write(request.layers) { [request] in try writer.submitAndWait(request, from: source) }
        }
        return try await withCompletion { [request] in writer.submit(request, from: source, completion: $0) }
    }

    /// Returns the report of a save; nil if nothing is installed.
    func trace(of request: SaveRequest) -> SaveTrace? {
        configuration.coordinator.instruments.map { SaveTrace($0, metadata: request.metadata, durability: request.durability) }
    }

    func saveRequest(_ layers: [Layer], _ durability: Durability) -> SaveRequest {
        phase.policyMayDrop = mergePolicy.mayDrop
        var request = emptySaveRequest()
        request.layers = layers
        request.durability = durability
        request.checks = tracker.takeChecks()
        request.mayUpdateDeleted = !tracker.updatesOfDeleted.isEmpty
        request.changedOfDeleted = tracker.updatesOfDeleted.changed
        request.restored = tracker.updatesOfDeleted.restored
        request.readsNextState = place.readsNextState.load(ordering: .relaxed)
        return request
    }

    /// Returns a request of this context without its changes.
    func emptySaveRequest() -> SaveRequest {
        SaveRequest(
            layers: [], base: layerStack.baseState.state, policy: mergePolicy, durability: .durable, metadata: metadata,
            preserved: capabilities.preserved, rules: capabilities.rules, validation: capabilities.validation,
            clearsMissingReferences: clearsMissingReferences, mergesByItself: automaticallyMergesChanges)
    }

    /// Whether saves of a root context clear references to objects that other contexts have deleted, and remove such pairs. Otherwise
    /// these saves throw ``SaveError/danglingReference(object:property:target:)`` (S050).
    ///
    /// A deleted object of which the context changed only one-to-one relationships stays deleted under every merge policy.
    ///
    /// A save still throws for a property that must have an object, and for an object that this context has deleted itself.
    package var clearsMissingReferences: Bool {
        get { tracker.clearsMissingReferences }
        set { tracker.clearsMissingReferences = newValue }
    }

    /// The author and context name of this context's saves. Time and process are added when a save is written.
    var metadata: SaveMetadata { SaveMetadata(author: transactionAuthor ?? "", contextName: name) }

    /// Applies the result of a save after the store has accepted the layers in flight.
    /// - Parameters:
    ///   - outcome: The result.
    ///   - joined: The changes of children among the saved ones.
    /// - Returns: The changes that the writer added, and own changes that the save does not contain; nil if there are none.
    @discardableResult
    func didWrite(_ outcome: SaveOutcome, adopted joined: JoinedPushes? = nil) -> ChangeSet? {
        let adopted = joined?.changes
        let old = layerStack.baseState.place
        var new = savedBase(outcome)
        var revision = layerStack.revision
        // Changes that the save lacks are in no change set.
        let mayLack = mayLackChanges(joined)
        let written = showing(
            layerStack.view(movedTo: new.base, droppingTaken: true),
            changes: mayLack ? nil : new.others.map { ChangeSet.union($0 + [outcome.changes]) },
            keeping: layerStack.notInFlight
        ) {
            // Observers may have changed objects, or moved the context.
            if hasLeft(old) { new = savedBase(outcome) }
            revision = layerStack.revision
            let hasNewer = layerStack.mayHaveNewerChanges || !tracker.checks.watched.isEmpty
            let below = hasNewer ? viewBelow(layerStack.taken.reversed()) : nil
            // Before the saved layers are gone, because changes made during the save may be of objects that it has inserted.
            if new.isLater, layerStack.mayHaveNewerChanges {
                keepUpdatesOfDeleted(movingTo: new.base, new.others, afterSave: true)
            }
            let written = layerStack.removeTaken()
            tracker.dropTakenChecks()
            layerStack.baseState.route?.didSave(written, accepted: outcome.changes)
            if new.isLater {
                phase.settlesBaseLater = true
                move(to: new.base, new.others)
                // Changes of children that are saved together are no conflicts of this context.
                let saves = new.others.map { joined == nil ? $0 + resolvedByPolicy([outcome.changes]) : $0 }
                if let below { noteUnmerged(since: below, in: layerStack.notInFlight, saved: written, by: saves) }
            }
            settleAfterMergeInFlight()
            if phase.policyMayDrop { dropUpdatesOfDropped(written, outcome.changes) }
            dropCompletions()
            if hasUnsavedLayers { forgetSettledUpdates() } else { tracker.forgetSaved() }
            clean(written)
            return written
        }
        let others = new.others
        let dropped = mayLack ? others.flatMap { withdrawn(written, without: [outcome.changes] + $0) } : nil
        let added = added(to: written, adopted, outcome.changes)
        if let added { layerStack.baseState.route?.forget([added]) }
        let visible = others.map { ChangeSet.union($0 + [adopted, dropped, added].compactMap(\.self)) }
        let refreshed = refreshRegistered(visible)
        if phase.policyMayDrop { keepValuesOfDropped(written) }
        if !observers.views.isEmpty || visible?.isEmpty != true {
            // After a move during the save, the context has shown pairs that the new state may lack.
            let saved = layerStack.hasMovedInFlight ? outcome.changes : outcome.changes.asShown()
            notify(visible, refreshed: refreshed, saved: saved)
        }
        if !outcome.changes.isEmpty { post(.didSave, outcome.changes) }
        // The policy may also have dropped changes of children (`adopted`).
        let left = [phase.policyMayDrop ? adopted : nil, dropped, added].compactMap(\.self)
        if phase.settlesBaseLater { settleBaseNow() }
        refreshUnwatched()
        if visible?.isEmpty == true { tracker.listEnds.keep(from: revision, in: layerStack.revision) }
        notifyChildren(new.between.map { ChangeSet.union($0 + left) }, saved: written)
        return dropped.and(added)
    }

    /// The base state after a save. If the context reads a later state already, it stays there.
    private struct SavedBase {
        var base: LayerStack.BaseState
        var isLater: Bool
        /// The saves between the two states, and those of other contexts among them; nil if they are unknown.
        var between: [ChangeSet]?
        var others: [ChangeSet]?
    }

    private func savedBase(_ outcome: SaveOutcome) -> SavedBase {
        let old = layerStack.baseState
        let isLater = outcome.state.sequence > old.state.sequence
        let counted = configuration.writer.changes(after: old.state, through: outcome.state)
        // Newer changes must also meet the saves of other connections that only the snapshot contains.
        let mustKnow = isWatched || layerStack.mayHaveNewerChanges
        let between = mustKnow && isLater ? changes(counted, showing: outcome.state) : counted
        return SavedBase(
            base: isLater ? old.moved(to: outcome.state) : old, isLater: isLater, between: between,
            others: between.map { $0.filter { $0.generation != outcome.changes.generation } })
    }

    /// Whether observers must know every difference between what they have shown and the next state.
    var isWatched: Bool { !observers.views.isEmpty || !observed.isEmpty }

    /// Updates the registered objects of a context without observers, at the end of a save. The snapshot may have been acquired only then,
    /// after another connection's next save.
    func refreshUnwatched() {
        if isWatched || registry.count == 0 { return }
        _ = refreshRegistered(changes([], showing: layerStack.baseState.state).map(ChangeSet.union))
    }

    /// Keeps the values of new objects that the writer has merged into others with the same unique value, so that they can be read (S022).
    private func keepValuesOfDropped(_ written: [Layer]) {
        for layer in written {
            forEachRegisteredPage(in: layer) { _, registered, page in
                for slot in SlotIterator(registered.present & page.inserted) {
                    guard let object = registered[slot], object.isDeletedHere, object.row == nil else { continue }
                    // `insert` would insert an object with the row of a new object again, although another object has its values.
                    let kept = page[slot]?.copy(layer: 0)
                    kept?.kind = .update
                    object.row = kept
                }
            }
        }
    }

    /// Marks registered objects as clean if their changes were saved with `layers` and they have no newer changes.
    func clean(_ layers: [Layer]) {
        let mayHaveNewer = !layerStack.sealed.isEmpty || !layerStack.top.isEmpty
        var hooked: [ManagedObject] = []
        for layer in layers {
            forEachRegisteredPage(in: layer) { entity, registered, page in
                let ends = retainsRegisteredObjects ? page.deleted : page.touched
                let hasHooks = capabilities.hasLifecycle[entity]
                for slot in SlotIterator(registered.present & page.touched) {
                    let isReleased = ends >> UInt64(slot) & 1 != 0
                    if !mayHaveNewer, !hasHooks {
                        registry.clean(slot, of: registered, isReleased: isReleased)
                    } else if let object = registered[slot] {
                        object.row = newestOwnRow(object.entity, object.key)
                        if hasHooks {
                            hooked.append(object)
                        } else if object.row == nil, isReleased {
                            registry.release(object)
                        }
                    }
                }
            }
        }
        tracker.replacements.endSave()
        let hasLists = mayChangeHookedLists(layers)
        if !hooked.isEmpty || hasLists { callDidSave(of: hooked, layers, hasLists: hasLists) }
    }

    /// Calls `didSave` once per saved object, in however many layers it is, and of objects whose many-to-many relationships were saved. All
    /// objects are clean already, because a hook may change any of them.
    ///
    /// - Parameter hasLists: Whether the layers may have changed many-to-many relationships of objects with hooks.
    private func callDidSave(of objects: [ManagedObject], _ layers: [Layer], hasLists: Bool) {
        let saved = layers.count == 1 ? layers[0] : Layer.folding(layers, schema: storedModel.storeSchema)
        let others = hasLists ? hookedObjectsWithChangedLists(in: saved) : []
        let withChangedLists = Set(others.map { ObjectIdentifier($0) })
        if objects.isEmpty, others.isEmpty { return }
        var called: Set<ObjectIdentifier> = []
        recordingHooks {
            for object in objects + others where called.insert(ObjectIdentifier(object)).inserted {
                let isSaved = saved.row(object.entity, object.key) != nil || withChangedLists.contains(ObjectIdentifier(object))
                if isHere(object), isSaved { didSave(object) }
                if isHere(object), object.row == nil, !retainsRegisteredObjects || object.isDeletedHere {
                    registry.release(object)
                }
            }
        }
    }
}
