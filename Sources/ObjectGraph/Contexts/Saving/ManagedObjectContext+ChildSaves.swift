internal import Platform
import StoreInterface
import StoreModel

/// The parent's side of a child's save: a parent takes the changes of its children, and forwards them.
extension ManagedObjectContext {
    /// Adds a child's changes to the unsaved changes of this context (S070, S074, S075).
    ///
    /// O(pages of the push + registered objects among them) (S079).
    func merge(child push: ChildChanges) throws -> ParentState {
        // While the store is suspended, a child may have read saves of others that this context has not read. This context notes them now,
        // because it moves to the child's state below.
        moveIfSuspended()
        endUndoEvent()
        defer { endUndoEvent() }
        if let route = layerStack.baseState.route { return try route.merge(child: push, in: self) }
        try checkAccepts(push)
        var push = push
        // Observers of the move may have reset or closed this context.
        if catchUp(with: &push) != nil { try checkAccepts(push) }
        var pushed = prepared(push)
        try checkUpdatesOfDeleted(pushed.taken)
        if dropHiddenUpdates(replacedBy: push) { pushed = prepared(push) }
        let (refreshed, changes) = try changingObserved {
            if !observed.isEmpty {
                let revision = layerStack.revision
                willShow(from: layerStack.view, to: layerStack.view(appending: pushed.layers), pushed.changes)
                // Observers may have changed objects, rolled back, or reset or closed the context.
                if !layerStack.top.isEmpty || layerStack.revision != revision {
                    try checkAccepts(push)
                    pushed = prepared(push)
                }
            }
            tracker.checks.formUnion(push.checks)
            tracker.positions.formUnion(push.positions)
            tracker.updatesOfDeleted.noteRestored(push.updatesOfDeleted.restored)
            guard !pushed.taken.layer.isEmpty else { return ([ObjectID](), ChangeSet()) }
            addUpdatesOfDeleted(of: pushed.taken)
            layerStack.append(pushed.layers)
            forgetErrors(ofKeysIn: pushed.taken.layer)
            permitReplacements(by: pushed.taken.layer)
            tracker.log.noteUnsavedChange()
            let refreshed = pushed.layers.flatMap { showPushed($0) }
            if !pushed.showsTheSame { settlePairs(of: pushed.layers) }
            foldIfLong()
            return (refreshed, pushed.changes)
        }
        if pushed.taken.layer.isEmpty { return place(pushed.showsTheSame, pushed.taken.changes) }
        let shown = layerStack.revision
        notify(changes, refreshed: refreshed)
        // The child has seen neither further changes that its deletions require, nor what observers of the notice have changed.
        let hasMore = pushed.layers.count > 1 || layerStack.revision != shown
        return place(pushed.showsTheSame && !hasMore, pushed.taken.changes)
    }

    /// A child's changes as they will appear in this context.
    private struct PreparedPush {
        var taken: ChildChanges
        /// The child's layer, and the changes that its deletions require.
        var layers: [Layer]
        var changes: ChangeSet
        /// Whether this context has no changes that the child did not see.
        var showsTheSame: Bool
    }

    /// Seals the unsaved changes, and returns the changes to add to them.
    private func prepared(_ push: ChildChanges) -> PreparedPush {
        sealTop()
        let showsTheSame = layerStack.revision == push.parentViewRevision
        let taken = applicable([push])[0]
        // The child may also have missed changes that this context has saved to its parent, and the parent not yet to the store.
        let unseen = showsTheSame ? [] : Array(layerStack.baseState.inherited.reversed())
        let layers = layersAbove(unseen + layerStack.sealed, [taken.layer])
        let others = layers.dropFirst().map { $0.changeSet(metadata: push.metadata) }
        return PreparedPush(
            taken: taken, layers: layers, changes: others.isEmpty ? taken.changes : ChangeSet.union([taken.changes] + others),
            showsTheSame: showsTheSame)
    }

    /// Saves a child's changes to the store, together with this context's own changes, in one step.
    ///
    /// Children with one author that ask during a running save are saved together afterwards: one transaction, one wait for the disk.
    func mergeThrough(
        child push: ChildChanges, durability: Durability,
        _ completion: @escaping @Sendable (Result<ParentState, any Error>) -> Void
    ) {
        guard phase.saveGate.add(WaitingPush(push: push, durability: durability, completion: completion)) else { return }
        whenIdle { [self] in mergeThrough(phase.saveGate.takeGroup()) }
    }

    /// Forwards a group of pushes. If the group fails, each push is retried alone, so that only the invalid pushes fail. Call this
    /// during a save; it calls `endSave`.
    private func mergeThrough(_ group: [WaitingPush]) {
        let (durability, revision) = (group.durability, layerStack.revision)
        do {
            let keepsState = savesNothing(group.map(\.push))
            for index in group.indices {
                try checkAccepts(group[index].push, after: group[..<index].map(\.push.layer))
                if keepsState, wouldMove(with: group[index].push) { continue }
                guard let before = catchUp(with: &group[index].push) else { continue }
                for earlier in 0..<index {
                    noteWatched(of: &group[earlier].push)
                    noteUnmerged(
                        &group[earlier].push.checks, since: before, in: [group[earlier].push.layer],
                        restored: group[earlier].push.updatesOfDeleted.restored)
                }
            }
            if let route = layerStack.baseState.route {
                return route.mergeThrough(group.map(\.push), durability: durability, in: self) { [self, group] in
                    finish(group, $0)
                }
            }
            _ = try prepareSave()
            // Hooks and observers may have reset this context, or recorded types of collections.
            if layerStack.revision != revision {
                for index in group.indices { try checkAccepts(group[index].push, after: group[..<index].map(\.push.layer)) }
            }
        } catch {
            return refuse(group, error)
        }
        let pushes = applicable(group.map(\.push))
        let same = group.count == 1 && layerStack.revision == pushes[0].parentViewRevision
        if isRoot, !hasChanges, pushes.allSatisfy(\.layer.isEmpty) {
            // With nothing to save, this context keeps its state (S063, S090).
            let taken = ChangeSet.union(pushes.map(\.changes))
            for waiting in group { waiting.completion(.success(place(same, taken))) }
            return endSave()
        }
        let began = layerStack.revision
        let joined = joined(pushes)
        let passed = passedChanges(joined.layers)
        let end = { [self, group] (result: Result<Answer, any Error>) in
            // Before `didSave`, whose changes complete the newest group. Recording seals newer changes, which moves the revision.
            let isSame = same && began == layerStack.revision
            if case .success = result { record(passed) }
            let state = Result { try didForwardToParent(joined, same: isSame, result: result) }
            finish(group, state)
        }
        if isRoot, layerStack.hasTakenLayers, layerStack.cancelOut(joined.layers) {
            // The children have taken back all changes of this context. It keeps its state then, too.
            return end(.success(.written(SaveOutcome(state: layerStack.baseState.state, changes: ChangeSet()))))
        }
        forwardToParent(joined, durability: durability, end)
    }

    /// Whether neither this context nor its children have anything to save. Then it keeps its state, also one that the program has chosen
    /// (S063, S150).
    ///
    /// A context with a parent forwards the objects that the children watch. They are compared with the state that the children have read,
    /// so they count here as something to save.
    func savesNothing(_ pushes: [ChildChanges]) -> Bool {
        pushes.allSatisfy { $0.layer.isEmpty && (isRoot || $0.checks.isEmpty) } && layerStack.baseState.route == nil
            && !hasChanges
    }

    /// Whether ``catchUp(with:)`` would move this context to later saves, or may move it off a state that the program has chosen.
    func wouldMove(with push: ChildChanges) -> Bool {
        let place = layerStack.baseState.place
        return place.sequence < push.state.sequence || place.isPinned && place.sequence == push.state.sequence
    }

    /// Returns the changes of a group of children in the form in which they apply to this context, one after the other. Usually all of
    /// them, without a look at the objects.
    func applicable(_ group: [ChildChanges]) -> [ChildChanges] {
        if group.count == 1, isNewest(group[0]) { return group }
        var pushes: [ChildChanges] = []
        for push in group {
            let isNewest = isNewest(push)
            let earlier: [Layer] = pushes.map(\.layer).reversed()
            var settled = isNewest && pushes.isEmpty ? push : settledKeys(push, after: earlier)
            if !isNewest || !pushes.isEmpty { settled = withoutMovedPositions(settled, after: earlier) }
            pushes.append(isNewest ? settled : applicable(settled, after: earlier))
        }
        return pushes
    }

    /// Whether a child has seen this context's present state, so that its changes apply as they are.
    private func isNewest(_ push: ChildChanges) -> Bool {
        push.parentViewRevision == layerStack.revision && !hasDeletes && push.updatesOfDeleted.isEmpty
    }

    func finish(_ group: [WaitingPush], _ result: Result<ParentState, any Error>) {
        switch result {
        case .success(let place):
            for waiting in group { waiting.completion(.success(place)) }
            endSave()
            openDirectGate()
        case .failure(let error): refuse(group, error)
        }
    }

    private func refuse(_ group: [WaitingPush], _ error: any Error) {
        // If the save has taken changes of this context, its end does this when they are unsaved again.
        if !layerStack.hasTakenLayers { leaveWithdrawnSave() }
        if group.count == 1 || (error as? StoreError)?.code == .storeBusy {
            // A busy store is not tried again for each child, because each would wait just as long again.
            for waiting in group { waiting.completion(.failure(error)) }
        } else {
            for waiting in group { whenIdle { [self] in mergeThrough([waiting]) } }
        }
        endSave()
    }

    /// Changes of children that are saved together.
    struct JoinedPushes {
        var pushes: [ChildChanges]
        /// The children's layers, each followed by the changes that its deletions require here.
        var layers: [Layer]
        /// The changes of all layers.
        var changes: ChangeSet
        /// The changes among them that no child made; nil if there are none.
        var consequences: ChangeSet?
    }

    /// Returns changes of children as they are saved together with this context's own changes in flight.
    func joined(_ pushes: [ChildChanges]) -> JoinedPushes {
        let own = layerStack.taken
        var joined = JoinedPushes(pushes: pushes, layers: [], changes: pushes[0].changes)
        joined.layers = layersAbove(own, pushes.map(\.layer))
        if pushes.count > 1 { joined.changes = ChangeSet.union(pushes.map(\.changes)) }
        guard joined.layers.count > pushes.count else { return joined }
        let known = Set(pushes.map(\.layer.id))
        joined.consequences = ChangeSet.union(
            joined.layers.filter { !known.contains($0.id) }.map { $0.changeSet(metadata: pushes[0].metadata) })
        joined.changes = ChangeSet.union(joined.layers.map { $0.changeSet(metadata: pushes[0].metadata) })
        return joined
    }

    /// The result of the level above.
    enum Answer: Sendable {
        case written(SaveOutcome)
        /// The changes that were forwarded, and the state of this context after that.
        case pushed(ChildChanges, ParentState)
    }

    /// Forwards own layers and the pushes to the writer or to the parent. Calls `then` on this context's executor.
    private func forwardToParent(
        _ joined: JoinedPushes, durability: Durability, _ then: @escaping (Result<Answer, any Error>) -> Void
    ) {
        let contextExecutor = requiredContextExecutor
        // `then` is called once, on this context's executor, where it was created.
        nonisolated(unsafe) let then = then
        if isRoot {
            if configuration.coordinator.isClosed { return then(.failure(configuration.coordinator.closedError)) }
            var request = saveRequest(with: joined, durability)
            request.trace = trace(of: request)
            configuration.writer.submit(request, from: .context(number)) { result in
                contextExecutor.enqueue { _ in then(result.map { .written($0) }) }
            }
            return
        }
        guard let parent = configuration.parent?.contextExecutor else {
            then(.failure(SaveError.parentGone(context: name)))
            return
        }
        let push = push(of: joined)
        let isEnqueued = parent.enqueue { parent in
            parent.mergeThrough(child: push, durability: durability) { result in
                contextExecutor.enqueue { _ in then(result.map { .pushed(push, $0) }) }
            }
        }
        if !isEnqueued { then(.failure(SaveError.parentGone(context: name))) }
    }

    /// Returns the request of a root that saves its own changes in flight and the children's changes.
    func saveRequest(with joined: JoinedPushes, _ durability: Durability) -> SaveRequest {
        let pushes = joined.pushes
        var request = saveRequest(layerStack.taken + joined.layers, durability)
        if pushes.contains(where: { $0.parentViewRevision != layerStack.revision || !$0.updatesOfDeleted.isEmpty }) {
            request.mayUpdateDeleted = true
        }
        request.metadata = pushes[0].metadata.orAuthor(transactionAuthor)
        for index in pushes.indices {
            request.checks.formUnion(pushes[index].checks)
            request.restored.formUnion(pushes[index].updatesOfDeleted.restored)
            for (place, changed) in keptUpdatesOfDeleted(pushes[index]) {
                request.changedOfDeleted[place, default: ColumnSet()].formUnion(changed)
            }
            if pushes[index].readsNextState { request.readsNextState = true }
        }
        return request
    }

    /// Returns own changes in flight and the children's changes as one. If there is only one child's push, it is forwarded without
    /// a copy on this executor.
    func push(of joined: JoinedPushes) -> ChildChanges {
        let pushes = joined.pushes
        if !layerStack.hasTakenLayers, pushes.count == 1 {
            var push = pushes[0].forwarded(over: SealedBase(baseState: layerStack.baseState), author: transactionAuthor)
            push.readsNextState = push.readsNextState || place.readsNextState.load(ordering: .relaxed)
            push.checks.formUnion(tracker.takeChecks())
            push.positions.formUnion(tracker.positions)
            if configuration.decidesForParent {
                // This context has settled the child's updates of deleted objects. Its root leaves others to the merge policy.
                push.updatesOfDeleted = push.updatesOfDeleted.withoutChanges
                push.decidesForParent = true
            }
            push.updatesOfDeleted.noteRestored(tracker.updatesOfDeleted.restored)
            return push
        }
        var push = makePush()
        push.layer = Layer.folding([push.layer] + joined.layers, schema: storedModel.storeSchema)
        push.layer.seal()
        push.changes = ChangeSet.union([push.changes, joined.changes])
        for other in pushes {
            if other.readsNextState { push.readsNextState = true }
            push.checks.formUnion(other.checks)
            push.positions.formUnion(other.positions)
            push.updatesOfDeleted.noteRestored(other.updatesOfDeleted.restored)
        }
        push.metadata = pushes[0].metadata.orAuthor(transactionAuthor)
        return push
    }

    /// Applies the result after the level above has saved this context's own changes and the children's.
    func didForwardToParent(_ joined: JoinedPushes, same: Bool, result: Result<Answer, any Error>) throws -> ParentState {
        let changes = joined.changes
        // The child has seen this context's own changes, and does not know which of them the save has dropped.
        let hasOwn = layerStack.hasTakenLayers
        let known = layerStack.baseState.state.sequence
        switch try result.get() {
        case .written(let outcome):
            // A save that wrote nothing, because the policy dropped everything, has no number.
            let isAlone = outcome.state.sequence == (outcome.changes.isEmpty ? known : known.next)
            let added = didWrite(outcome, adopted: joined).and(joined.consequences)
            let lacksOwn = hasOwn && phase.policyMayDrop
            let newest = max(known, outcome.state.sequence)
            // An observer may also have chosen an older state.
            let isThere = layerStack.baseState.state.sequence == newest
            let isSame = same && isAlone && !lacksOwn && isThere && hasNoNewer(than: newest)
            var parent = place(isSame, changes.limited(to: outcome.changes), added: added)
            parent.mayLackChanges = phase.policyMayDrop
            // The writer has acquired the snapshot for the child, which would otherwise acquire another one on its own executor.
            let isInFile = outcome.state.pendingSaves == 0 && parent.state.sequence == outcome.state.sequence
            if isInFile, joined.pushes.contains(where: \.readsNextState) { parent.state = outcome.state }
            return parent
        case .pushed(let push, let above):
            didPush(push, above, adopted: changes)
            if configuration.decidesForParent { followParent(after: above) }
            let lacksOwn = hasOwn && above.mayLackChanges
            let isSame = same && above.showsTheSame && !lacksOwn && hasNoNewer(than: max(known, above.state.sequence))
            var parent = place(
                isSame, changes.limited(to: above.taken(of: push)), added: above.added.and(joined.consequences))
            parent.mayLackChanges = above.mayLackChanges
            return parent
        }
    }

    /// Whether the child has seen all changes of this context. Observers of a save may have made others, or moved this context on.
    ///
    /// - Parameter sequence: The newest save that the child has seen or made.
    private func hasNoNewer(than sequence: SaveSequence) -> Bool {
        layerStack.sealed.isEmpty && layerStack.baseState.state.sequence <= sequence
    }

    private func place(_ showsTheSame: Bool, _ taken: ChangeSet? = nil, added: ChangeSet? = nil) -> ParentState {
        let below = layerStack.belowTop()
        return ParentState(
            state: layerStack.baseState.state, inherited: below.layers, viewRevision: layerStack.revision,
            parentLayers: below.ids,
            showsTheSame: showsTheSame, taken: taken, added: added)
    }

    /// - Throws: `StoreError` `.closed` if this context is closed: it would drop the changes of objects that it no longer shows.
    ///   ``SaveError/parentGone(context:)`` if it was reset since. The error of ``checkTypes(in:after:)``.
    package func checkAccepts(_ push: ChildChanges, after earlier: [Layer] = []) throws {
        try checkOpen()
        guard push.parentResetGeneration == layerStack.resetGeneration else {
            throw SaveError.parentGone(context: push.metadata.contextName)
        }
        try checkTypes(in: push, after: earlier)
    }

    /// Returns a child's changes without those of objects that were deleted or rolled back in this context (S056).
    ///
    /// Objects that exist again receive only the columns that the child changed. An insertion of an object that exists here, because both
    /// contexts have undone its deletion, becomes an update.
    ///
    /// - Parameter earlier: Layers that are saved before this push, newest first. An object that one of them inserts exists.
    func applicable(_ push: ChildChanges, after earlier: [Layer] = []) -> ChildChanges {
        func isThere(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
            try exists(entity, key) || earlier.contains { $0.row(entity, key)?.kind == .insert }
        }
        let push = completingUpdates(of: push)
        let keptUpdates = keptUpdatesOfDeleted(push)
        var kept: Layer?
        var dropped: Set<ObjectAddress> = []
        for change in push.changes.entities {
            for key in change.updatedKeys + change.deletedKeys where !trapOnStoreError({ try isThere(change.entity, key) }) {
                let place = ObjectAddress(entity: change.entity, key: key)
                if keptUpdates[place] != nil { continue }
                let layer = kept ?? Layer(copying: push.layer)
                layer.remove(entity: change.entity, key: key)
                layer.forgetLinks(of: change.entity, key, storedModel.storeSchema)
                dropped.insert(place)
                kept = layer
            }
        }
        kept?.forgetPlaces(of: dropped, storedModel)
        // Values that the child did not change must not overwrite newer values.
        for (place, changed) in push.updatesOfDeleted.changed where keptUpdates[place] == nil {
            guard let row = (kept ?? push.layer).row(place.entity, place.key), row.kind == .update else { continue }
            let layer = kept ?? Layer(copying: push.layer)
            let own = row.copy(layer: layer.id)
            row.set.forEach { if !changed.contains($0) { own.clear($0) } }
            layer.put(own, entity: place.entity, key: place.key)
            kept = layer
        }
        for place in push.updatesOfDeleted.restored {
            guard let row = (kept ?? push.layer).row(place.entity, place.key), row.kind == .insert,
                trapOnStoreError({ try exists(place.entity, place.key) })
            else { continue }
            let layer = kept ?? Layer(copying: push.layer)
            layer.remove(entity: place.entity, key: place.key)
            if let own = trapOnStoreError({ try changes(of: place, restoredWith: row, layer.id) }) {
                layer.put(own, entity: place.entity, key: place.key)
            }
            kept = layer
        }
        return kept.map(push.replacing(with:)) ?? push
    }

    /// Returns the updates of deleted objects about which the merge policy of the root decides, as about its own: those of a main context
    /// that counts as a root (S024, S106). Other children drop theirs, because their parent has merged the deletion (S056).
    private func keptUpdatesOfDeleted(_ push: ChildChanges) -> [ObjectAddress: ColumnSet] {
        guard push.decidesForParent, !push.updatesOfDeleted.changed.isEmpty else { return [:] }
        return push.updatesOfDeleted.changed.filter { place, _ in
            push.layer.row(place.entity, place.key)?.kind == .update
                && layerStack.pendingKind(place.entity, place.key) != .delete
                && !trapOnStoreError { try exists(place.entity, place.key) }
        }
    }

    /// Completes a main context's updates of objects that only this root knows to be deleted, as main would have done if it had merged the
    /// deletion before its save.
    private func completingUpdates(of push: ChildChanges) -> ChildChanges {
        guard push.decidesForParent else { return push }
        let shown = push.shown
        var layer: Layer?
        var updates: [ObjectAddress: ColumnSet] = [:]
        for change in push.changes.entities {
            for key in change.updatedKeys {
                let place = ObjectAddress(entity: change.entity, key: key)
                guard push.updatesOfDeleted.changed[place] == nil, let row = push.layer.row(place.entity, key),
                    row.kind == .update,
                    trapOnStoreError({ try !exists(place.entity, key) && shown.exists(place.entity, key) })
                else { continue }
                let copy = layer ?? Layer(copying: push.layer)
                let whole = row.copy(layer: copy.id)
                for column in whole.columnIndices where !whole.isSet(column) {
                    whole[column] = trapOnStoreError { try shown.value(place.entity, key: key, column: column) } ?? .null
                }
                copy.put(whole, entity: place.entity, key: key)
                updates[place] = row.set
                layer = copy
            }
        }
        guard let layer else { return push }
        var completed = push.replacing(with: layer)
        completed.updatesOfDeleted.add(updates)
        return completed
    }

    private func addUpdatesOfDeleted(of push: ChildChanges) {
        let updates = keptUpdatesOfDeleted(push)
        tracker.updatesOfDeleted.add(updates)
        for place in updates.keys where place.entity == capabilities.keyedValues {
            guard let row = push.layer.row(place.entity, place.key) else { continue }
            tracker.updatesOfDeleted.note(key: row[KeyedColumn.key], of: place)
        }
    }

    /// - Throws: ``SaveError/conflicts(_:)`` if a save to this root alone would leave it with updates of deleted objects that its policy refuses.
    ///   The main context keeps them, so that a program can drop them there.
    private func checkUpdatesOfDeleted(_ push: ChildChanges) throws {
        guard case .error = mergePolicy else { return }
        let places = keptUpdatesOfDeleted(push).keys
        if places.isEmpty { return }
        let check = SaveCheck(request: emptySaveRequest(), state: layerStack.baseState.state, writer: configuration.writer)
        throw SaveError.conflicts(
            try places.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) }.map { place in
                try check.conflict(
                    push.layer.row(place.entity, place.key), entity: place.entity, key: place.key, isInStore: false)
            })
    }

    /// Returns the values that a child has changed of an object that it has restored, as an update; nil if there are none.
    ///
    /// The other values are as they are below the changes of this context, which may have newer ones.
    private func changes(of place: ObjectAddress, restoredWith row: Row, _ layer: UInt64) throws -> Row? {
        let own = row.copy(layer: layer)
        own.kind = .update
        let below = StateBelow(
            context: self, layers: Array(layerStack.view.layers.dropFirst(layerStack.sealed.count + 1)), entity: place.entity,
            key: place.key)
        guard try below.exists() else { return own }
        capabilities.derivedColumns(of: place.entity).forEach { own.clear($0) }
        // The other end of a pair refers back to the object.
        let pairs = capabilities.rules.pairs[place.entity].map(\.column).filter { !row[$0].isNull }
        for column in row.columnIndices where row.isSet(column) && !pairs.contains(column) {
            if try Value.areSame(below.value(column), row[column]) { own.clear(column) }
        }
        guard place.entity == capabilities.keyedValues, own.isSet(KeyedColumn.value) else { return own.set.isEmpty ? nil : own }
        // A changed row of a keyed value always has the key.
        own[KeyedColumn.key] = row[KeyedColumn.key]
        return own
    }

    /// Returns the children's layers, oldest first. Each is followed by the changes that its deletions require in unsaved changes
    /// that the child did not see.
    ///
    /// - Parameters:
    ///   - unsaved: The layers with these unsaved changes, oldest first.
    ///   - pushed: The children's layers, oldest first.
    func layersAbove(_ unsaved: [Layer], _ pushed: [Layer]) -> [Layer] {
        // Only deletions require further changes.
        if unsaved.isEmpty && pushed.count == 1 || !pushed.contains(where: \.mayDelete) { return pushed }
        var layers = unsaved
        let gone = tracker.updatesOfDeleted.changed.keys.filter { place in
            !trapOnStoreError { try exists(place.entity, place.key) }
        }
        for layer in pushed {
            let consequences = capabilities.rules.consequences(
                of: layer, over: layers, without: Set(gone), storedModel.storeSchema)
            layers.append(layer)
            if let consequences { layers.append(consequences) }
        }
        return Array(layers.dropFirst(unsaved.count))
    }

    /// Sets registered objects in a pushed layer to their new rows, as changed objects of this context. Returns their ids.
    func showPushed(_ layer: Layer) -> [ObjectID] {
        var refreshed: [ObjectID] = []
        forEachRegistered(in: layer) { object, row in
            object.row = newestOwnRow(object.entity, object.key) ?? row
            object.isDeletedHere = object.row?.kind == .delete
            registry.retain(object)
            refreshed.append(object.objectID)
        }
        return refreshed
    }
}

extension SaveMetadata {
    /// Returns a copy with another author if this has none.
    func orAuthor(_ other: String?) -> SaveMetadata {
        var metadata = self
        if author.isEmpty { metadata.author = other ?? "" }
        return metadata
    }
}
