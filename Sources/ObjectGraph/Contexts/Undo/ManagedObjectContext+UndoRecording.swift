import StoreInterface
import StoreModel

/// Recording changes for undo. A change itself records nothing, so contexts without a history pay nothing for it.
///
/// The layers above ``LayerStack/undoBoundary`` contain the changes since the last *segment* was closed. Closing a segment seals them and
/// compares them with the view below. A segment is closed at the end of a group, and before anything else moves, folds or drops layers.
extension ManagedObjectContext {
    private var recordingHistory: UndoHistory? { tracker.undo.flatMap { $0.suspensions == 0 ? $0 : nil } }

    /// Whether groups end without a call of `processPendingChanges()`. The blocks of a background context end them.
    var endsUndoEventsAutomatically: Bool {
        tracker.undo != nil && place.confinement == nil && !(contextExecutor is BackgroundContext)
    }

    // MARK: Segments

    /// Adds the changes since the last segment to the open group. O(these changes).
    ///
    /// If the store cannot be read since it was suspended, the segment stays open: see ``hasOpenUndoSegment``.
    func closeUndoSegment() {
        guard let history = recordingHistory else { return }
        admitArrivals()
        _ = layerStack.seal()
        let layers = Array(layerStack.sealed.dropFirst(layerStack.undoBoundary))
        guard !layers.isEmpty else { return }
        // The values before the changes cannot be read after closing, and no undo follows.
        if phase.closure != nil { return beginUndoSegment() }
        // A later use may find the store readable, and the changes are recorded then.
        guard isBaseReadable else { return }
        // The changes may replace recorded ones, so the history decides whether they fit.
        let step = undoStep(of: layers, over: Array(layerStack.view.layers.dropFirst(1 + layers.count)), history.stacks.byteLimit)
        layerStack.undoBoundary = layerStack.sealed.count
        history.stacks.record(step)
    }

    /// Whether there are sealed changes that are not recorded yet.
    var hasOpenUndoSegment: Bool { recordingHistory != nil && layerStack.undoBoundary < layerStack.sealed.count }

    /// Adds a change that was made without recording to the open group. The changes before it are recorded already.
    func recordForUndo(_ step: UndoStep) { recordingHistory?.stacks.record(step) }

    /// Leaves the changes since the last segment out of the history.
    func skipUndoSegment() {
        guard recordingHistory != nil else { return }
        admitArrivals()
        beginUndoSegment()
    }

    func beginUndoSegment() {
        guard tracker.undo != nil else { return }
        _ = layerStack.seal()
        layerStack.undoBoundary = layerStack.sealed.count
    }

    /// Ends the group of a `perform` block, a save of a child, or a job of the main actor. While hooks of a save run, the group stays open,
    /// because the changes of all hooks belong to it.
    func endUndoEvent() {
        if tracker.undo?.isRunningHooks == true { closeUndoSegment() } else { closeUndoEvent() }
    }

    /// Ends the group of the event, also while hooks of a save run.
    func closeUndoEvent() {
        guard let history = recordingHistory else { return }
        closeUndoSegment()
        // The store cannot be read now, so the group ends with the move to a state that can be read.
        if hasOpenUndoSegment {
            phase.suspended?.endsUndoEvent = true
            return
        }
        history.endEvent()
        takeBackRepeatedPairs()
    }

    /// Runs a step that changes the layers or the state below them, and does not record what changes.
    @inline(__always)
    package func withoutUndo<R>(_ body: () throws -> R) rethrows -> R {
        guard let history = tracker.undo else { return try body() }
        return try withoutRecording(history, body)
    }

    @inline(never)
    private func withoutRecording<R>(_ history: UndoHistory, _ body: () throws -> R) rethrows -> R {
        closeUndoSegment()
        let (isOpen, revision) = (hasOpenUndoSegment, layerStack.revision)
        history.suspensions += 1
        defer {
            history.suspensions -= 1
            // A segment that could not be recorded stays open while it is the only one with changes.
            if history.suspensions == 0, history === tracker.undo, !isOpen || layerStack.revision != revision {
                beginUndoSegment()
            }
        }
        return try body()
    }

    /// Runs the hooks of a save. Their changes complete the group of the event, or the newest group if the event has no changes.
    func completingUndoGroup(_ body: () throws -> Void) rethrows {
        guard let history = recordingHistory else { return try body() }
        closeUndoSegment()
        // Changes of a save within an undo do not belong to the group that is being undone.
        let isInEvent = history.stacks.hasOpenChanges || history.isReverting
        history.stacks.isCompleting = !isInEvent
        history.isRunningHooks = true
        defer {
            closeUndoSegment()
            history.isRunningHooks = false
            history.stacks.isCompleting = false
            if !isInEvent, let step = history.stacks.takeEvent() { history.stacks.absorb(step) }
        }
        try body()
    }

    /// Runs the hooks after a save, within a step that is not recorded. Their changes complete the newest group.
    func recordingHooks(_ body: () -> Void) {
        // More suspensions than that of the step are the program's.
        guard let history = tracker.undo, history.suspensions == 1 else { return body() }
        beginUndoSegment()
        history.suspensions = 0
        defer { history.suspensions = 1 }
        completingUndoGroup(body)
    }

    // MARK: Changes of children on their way to the store

    /// The changes that children save through this context, before they are saved.
    package struct PassedChanges {
        /// The difference to this context's state; nil if it is too large.
        fileprivate var step: UndoStep?
    }

    /// Returns changes that are about to be saved, for ``record(_:)``; nil if they are not recorded.
    ///
    /// - Parameters:
    ///   - layers: The changes, oldest first and sealed.
    ///   - count: The number of these layers that are part of this context's changes already.
    package func passedChanges(_ layers: @autoclosure () -> [Layer], included count: Int = 0) -> PassedChanges? {
        guard let history = recordingHistory else { return nil }
        let below = Array(layerStack.view.layers.dropFirst(1 + count))
        return PassedChanges(step: undoStep(of: layers(), over: below, history.stacks.byteLimit))
    }

    /// Records changes of children as a group, after they were saved.
    package func record(_ changes: PassedChanges?) {
        guard let changes, let history = recordingHistory else { return }
        closeUndoEvent()
        history.stacks.record(changes.step)
        history.endEvent()
    }

    // MARK: Differences

    /// Returns the difference that layers make.
    ///
    /// Values of other objects are not read. Large values are read only if they fit.
    /// - Parameters:
    ///   - layers: Sealed layers, oldest first.
    ///   - below: The layers below them, newest first.
    ///   - limit: The maximum number of bytes.
    /// - Returns: nil if the difference is larger than the limit.
    func undoStep(of layers: [Layer], over below: [Layer], _ limit: Int) -> UndoStep? {
        let changes = layers.count == 1 ? layers[0] : Layer.folding(layers, schema: storedModel.storeSchema)
        var step = UndoStep()
        for entity in changes.entityIndices {
            for (number, page) in changes.entity(entity)?.pages ?? [:] {
                for slot in SlotIterator(page.touched) {
                    let key = PageAddress.key(page: number, slot: slot)
                    guard let row = page[slot] else { continue }
                    if entity == capabilities.keyedValues, row.isSet(KeyedColumn.key) {
                        step.note(key: row[KeyedColumn.key], of: key)
                    }
                    let state = StateBelow(context: self, layers: below, entity: entity, key: key)
                    guard let change = trapOnStoreError({ try state.change(to: row, limit - step.byteCount) }) else { return nil }
                    if change.before != nil || change.after != nil {
                        let address = ObjectAddress(entity: entity, key: key)
                        step.set(change, at: address)
                        if let pair = trapOnStoreError({ try movedPair(row, state) }) { step.note(place: pair, at: address) }
                    }
                    if step.byteCount > limit { return nil }
                }
            }
        }
        for (link, pairs) in changes.links.enumerated(as: LinkIndex.self) where !pairs.isEmpty {
            for (source, partners) in pairs.forward {
                let linked = linkedPartners(link, of: source, in: below)
                for (destination, isLinked) in partners where linked(destination) != isLinked {
                    step.set(.init(link: link, source: source, destination: destination), linked: isLinked)
                }
            }
            if step.byteCount > limit { return nil }
        }
        let view = LayeredView(base: layerStack.view.base, layers: below)
        trapOnStoreError { try addPairsOfDeleted(to: &step, changes, view) }
        if let entity = capabilities.keyedValues {
            // The types after the changes, or those before them if the changes remove them.
            let after = LayeredView(base: view.base, layers: [changes] + below)
            trapOnStoreError { try step.addTypes(entity, in: [after, view]) }
        }
        return step.byteCount > limit ? nil : step
    }

    /// Returns the pair of a changed position in a many-to-many relationship; nil for other changes.
    private func movedPair(_ row: Row, _ state: StateBelow) throws -> PlacedPair? {
        guard row.kind == .update, capabilities.rules.isOrder(state.entity),
            let owner = try state.value(OrderEntity.owner)?.referenceKey,
            let member = try state.value(OrderEntity.member)?.referenceKey
        else { return nil }
        return PlacedPair(owner: owner, member: member)
    }

    /// Adds the pairs that only the save of a deletion removes: those of relationships whose rules are no action or deny.
    private func addPairsOfDeleted(to step: inout UndoStep, _ changes: Layer, _ view: LayeredView) throws {
        let ended = Set(step.objects.filter { $0.value.after == nil }.keys)
        /// A save removes a pair with the rule deny only if both ends are deleted. A redo must not remove it either.
        func isDenied(_ link: LinkIndex, _ direction: LinkDirection, of entity: EntityIndex, to other: ObjectAddress) -> Bool {
            !ended.contains(other) && capabilities.rules.rule(of: link, direction, from: entity) == .deny
        }
        func add(_ pair: ChangeLog.ChangedPair, isDenied: Bool, of deleted: ObjectAddress, to other: ObjectAddress) {
            if isDenied { step.hold(pair, of: deleted, until: other) } else { step.set(pair, linked: false) }
        }
        for (number, pairs) in changes.links.enumerated(as: LinkIndex.self) where !ended.isEmpty && !pairs.isEmpty {
            let link = storedModel.storeSchema.links[number]
            for (source, partners) in pairs.forward {
                let near = ObjectAddress(entity: link.source, key: source)
                for case (let destination, true) in partners {
                    let far = ObjectAddress(entity: link.destination, key: destination)
                    let pair = ChangeLog.ChangedPair(link: number, source: source, destination: destination)
                    if ended.contains(near) { step.hold(pair, of: near, until: far) }
                    if ended.contains(far) { step.hold(pair, of: far, until: near) }
                }
            }
        }
        for (address, change) in step.objects where change.after == nil {
            for (number, link) in storedModel.storeSchema.links.enumerated(as: LinkIndex.self) {
                if link.source == address.entity {
                    for other in try view.related(.link(number, .forward, destination: link.destination), to: address.key)
                    where changes.links[number].forward[address.key]?[other] == nil {
                        let far = ObjectAddress(entity: link.destination, key: other)
                        let pair = ChangeLog.ChangedPair(link: number, source: address.key, destination: other)
                        add(pair, isDenied: isDenied(number, .forward, of: address.entity, to: far), of: address, to: far)
                    }
                }
                if link.destination == address.entity {
                    for other in try view.related(.link(number, .backward, destination: link.source), to: address.key)
                    where changes.links[number].backward[address.key]?[other] == nil {
                        let far = ObjectAddress(entity: link.source, key: other)
                        let pair = ChangeLog.ChangedPair(link: number, source: other, destination: address.key)
                        add(pair, isDenied: isDenied(number, .backward, of: address.entity, to: far), of: address, to: far)
                    }
                }
            }
        }
    }

    /// Returns a function that tells whether a pair is linked in a state. Each list is read once, as by ``linkedPartners(_:of:in:)``.
    func linkedPairs(in layers: [Layer]) -> (ChangeLog.ChangedPair) -> Bool {
        var lists: [LinkIndex: [ObjectKey: (ObjectKey) -> Bool]] = [:]
        return { [self] pair in
            let isLinked = lists[pair.link]?[pair.source] ?? linkedPartners(pair.link, of: pair.source, in: layers)
            lists[pair.link, default: [:]][pair.source] = isLinked
            return isLinked(pair.destination)
        }
    }

    /// Returns a function that tells whether a source object is linked to a destination in a state.
    ///
    /// An unsaved deletion in this context does not end a pair: whoever takes the deletion back gets the pair back. A deletion below the
    /// unsaved changes ends it. The save of that deletion has removed the pair, although the layer that a child reads may still contain it.
    ///
    /// - Parameter layers: The layers of the state, newest first: the oldest ones of the view. Below them is the base of the view.
    func linkedPartners(_ link: LinkIndex, of source: ObjectKey, in layers: [Layer]) -> (ObjectKey) -> Bool {
        let ends = storedModel.storeSchema.links[link]
        let relation = Relation.link(link, .forward, destination: ends.destination)
        let below = Array(layers.suffix(layerStack.view.layers.count - layerStack.notInFlight.count))
        let own = layers.dropLast(below.count).compactMap { $0.links[link].forward[source] }
        let verdicts = below.compactMap { $0.links[link].forward[source] }
        var stored: Set<ObjectKey>?
        return { [self] destination in
            for verdict in own { if let known = verdict[destination] { return known } }
            var isLinked = verdicts.lazy.compactMap { $0[destination] }.first
            if isLinked == nil {
                let read = stored ?? Set(trapOnStoreError { try layerStack.view.base.related(relation, to: source) })
                stored = read
                isLinked = read.contains(destination)
            }
            // A snapshot alone has no pairs of missing objects.
            guard isLinked == true, !below.isEmpty else { return isLinked == true }
            return trapOnStoreError {
                try StateBelow(context: self, layers: below, entity: ends.source, key: source).exists()
                    && StateBelow(context: self, layers: below, entity: ends.destination, key: destination).exists()
            }
        }
    }
}

extension UndoStep {
    /// Adds the types of the collections of which the step changes entries or the types themselves, each from the first view that has them.
    /// One look-up per collection.
    mutating func addTypes(_ entity: EntityIndex, in views: [LayeredView]) throws {
        var names: Set<CollectionName> = []
        for case .data(let key) in keys.values {
            if let name = KeyedColumn.name(inKey: key) { names.insert(name) }
        }
        for name in names {
            let key = KeyedColumn.typesKey(name.text)
            for view in views {
                guard let object = try view.keyedObject(entity, key),
                    let value = try view.value(entity, key: object, column: KeyedColumn.value)
                else { continue }
                note(types: RecordedTypes(object: object, value: value), of: name)
                break
            }
        }
    }
}
