import StoreInterface
import StoreModel

/// The parts of a context that a ``RequestRoute`` uses.
extension ContextLink {
    /// Runs a job on the context's executor, blocks until it ends, and returns its result.
    ///
    /// - Parameter goneError: The error to throw if the context was released.
    package func wait<T: Sendable>(
        orThrow goneError: @autoclosure () -> any Error, _ job: @Sendable (ManagedObjectContext) throws -> T
    ) throws -> T {
        guard let contextExecutor else { throw goneError() }
        return try contextExecutor.wait(job)
    }
}

// MARK: Reading

extension ManagedObjectContext {
    /// The route of the context's requests; nil if the context reads the state and the layers below it.
    package var route: (any RequestRoute)? { layerStack.baseState.route }

    /// A weak reference to the context, for its children.
    package var link: ContextLink { ContextLink(place: place, name: name) }

    /// All layers and the snapshot below them, newest first.
    package var presentView: LayeredView { layerStack.view }

    /// The layers of unsaved changes, newest first.
    package var unsavedLayers: ArraySlice<Layer> { layerStack.view.layers.prefix(layerStack.sealed.count + 1) }

    /// The layers of the deferred saves that a root reads over the snapshot, newest first.
    package var deferredLayers: [Layer] { layerStack.baseState.state.deferred }

    /// Returns a page of the snapshot, which the context keeps; nil if it has no objects.
    package func storedPage(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        try layerStack.pages.page(entity, number, in: layerStack.view.base)
    }
}

// MARK: Taking a child's changes

extension ManagedObjectContext {
    /// The open layer of unsaved changes.
    package var topLayer: Layer { layerStack.top }

    /// The other layers of unsaved changes, oldest first.
    package var sealedLayers: [Layer] { layerStack.sealed }

    /// Seals the unsaved changes, and returns a child's changes in the form in which they apply to them.
    ///
    /// - Returns: The layers, oldest first: the child's, and the changes that its deletions require here. And the child's changes
    ///   among them, without those of objects that do not exist here any more.
    package func layersToTake(of push: ChildChanges) -> (layers: [Layer], changes: ChangeSet) {
        sealTop()
        let isPresent = push.parentViewRevision == layerStack.revision && !hasDeletes && push.updatesOfDeleted.isEmpty
        let rest = isPresent ? push : applicable(push)
        return (layersAbove(layerStack.sealed, [rest.layer]), rest.changes)
    }

    /// Returns the instance of an object, registered and without a look at the store.
    package func instance(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject { object(entity, key) }

    /// Makes a row of ``topLayer`` the newest row of an object.
    package func put(_ row: Row, of object: ManagedObject) {
        if row.kind == .delete { object.isDeletedHere = true }
        object.row = row
        registry.retain(object)
        layerStack.top.put(row, entity: object.entity, key: object.key)
        tracker.log.note(object.entity, object.key)
    }

    /// Sets a value of an object, without its hooks and rules.
    package func put(_ value: Value, column: ColumnIndex, of object: ManagedObject) {
        write(object, column: column, value: value)
    }

    /// Adds or removes a pair of objects.
    package func putLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked: Bool) {
        layerStack.top.setLink(link, from: source, to: destination, linked: linked)
        tracker.log.noteLink(link, from: source, to: destination)
    }

    /// Records which objects of a child's changes another context may have inserted too. Call this after they were taken.
    package func noteRestored(by push: ChildChanges) {
        tracker.updatesOfDeleted.noteRestored(push.updatesOfDeleted.restored)
    }

    /// Returns the present state for a child that reads it through its route.
    ///
    /// - Parameter taken: The child's changes that were accepted.
    package func parentState(taken: ChangeSet) -> ParentState {
        ParentState(
            state: layerStack.baseState.state, inherited: [], viewRevision: layerStack.revision, parentLayers: [],
            showsTheSame: false, taken: taken)
    }
}

// MARK: Saving a child's changes

extension ManagedObjectContext {
    /// Saves the layers that a save has taken: a root to the store, through its route and blocking; another context through its parent.
    ///
    /// - Parameters:
    ///   - metadata: The metadata of the child's changes among them.
    ///   - completion: Called once, on this context's executor, with the changes that the level above has made.
    package func saveTaken(
        _ durability: Durability, metadata: SaveMetadata, _ completion: @escaping (Result<ChangeSet, any Error>) -> Void
    ) {
        let metadata = metadata.orAuthor(transactionAuthor)
        if isRoot { return completion(Result { try writeTaken(durability, metadata: metadata) }) }
        guard let parent = configuration.parent?.contextExecutor else {
            return completion(.failure(SaveError.parentGone(context: name)))
        }
        var push = makePush()
        push.metadata = metadata
        // Safe because it is called on the executor on which it was made.
        nonisolated(unsafe) let then = { [self, push] (result: Result<ParentState, any Error>) in
            completion(
                result.map { above in
                    didPush(push, above)
                    return above.taken(of: push)
                })
        }
        let contextExecutor = requiredContextExecutor
        let isEnqueued = parent.enqueue { [push] parent in
            parent.mergeThrough(child: push, durability: durability) { result in
                contextExecutor.enqueue { _ in then(result) }
            }
        }
        if !isEnqueued { then(.failure(SaveError.parentGone(context: name))) }
    }

    private func writeTaken(_ durability: Durability, metadata: SaveMetadata) throws -> ChangeSet {
        try configuration.coordinator.checkOpen()
        var request = saveRequest(layerStack.taken, durability)
        request.metadata = metadata
        guard let route else { throw configuration.coordinator.closedError }
        let outcome = try route.write(request.layers) { [request] in
            try configuration.writer.submitAndWait(request, from: .context(number))
        }
        didWrite(outcome)
        return outcome.changes
    }

    /// Drops the changes that were taken for a save that failed: the layers above the oldest `kept`. Changes made while it ran stay.
    package func dropLayers(above kept: Int) {
        if !layerStack.hasTakenLayers { sealTop() }
        let dropped = withoutUndo { layerStack.dropTaken(above: kept) }
        guard !dropped.isEmpty else { return }
        for layer in dropped {
            forEachRegistered(in: layer) { object, _ in
                object.row = newestOwnRow(object.entity, object.key)
                object.isDeletedHere = object.row?.kind == .delete
                if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
            }
        }
        let changes = Layer.folding(dropped, schema: storedModel.storeSchema).changeSet(metadata: metadata).inverted
        notify(changes, refreshed: refreshRegistered(changes))
    }
}
