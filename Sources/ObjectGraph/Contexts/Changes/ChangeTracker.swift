import StoreInterface
import StoreModel

/// The record of a context's changes, besides their values in the layers.
struct ChangeTracker {
    /// The objects that changed since observers were last notified.
    var log = ChangeLog()
    /// The updated objects that another context has deleted.
    var updatesOfDeleted = UpdatesOfDeletedObjects()
    /// The changes of the running save that undos have taken back.
    var undoneInFlight = UndoneChanges()
    /// The checks of the next save.
    var checks = ConflictChecks() {
        didSet { log.closeGate() }
    }
    /// The checks of the running save, which are those of the next one if it fails.
    private(set) var takenChecks = ConflictChecks()
    /// See ``ManagedObjectContext/clearsMissingReferences``.
    var clearsMissingReferences = false {
        didSet { log.closeGate() }
    }
    /// The addresses of unsaved objects that had a provisional id before their insertion, by its key.
    var provisional: [ObjectKey: ObjectAddress] = [:]
    /// The recorded changes; nil while undo is off.
    var undo: UndoHistory? {
        didSet { log.closeGate() }
    }
    /// The changes of keyed collections.
    var keyed = KeyedChanges() {
        didSet { log.closeGate() }
    }
    /// The assignments that would destroy stored values that cannot be decoded.
    var replacements = UndecodableReplacements()
    /// The pairs that were changed and changed back since the last event of undo.
    var repeatedPairs: Set<ChangeLog.ChangedPair> = []
    /// The unsaved positions in lists.
    var positions = UnsavedPositions()
    /// The ends of ordered relationships to which objects were appended.
    var listEnds = ListEnds()
    /// The allocated keys that new objects have not used yet, by entity.
    var keys: [Range<ObjectKey>]

    /// Whether a child's save can pass this context, if there are no unsaved layers either.
    var hasNothingToSave: Bool {
        checks.isEmpty && updatesOfDeleted.isEmpty && positions.isEmpty && undo == nil && keyed.refused.isEmpty
    }

    /// Forgets what is known about unsaved changes, when there are none any more.
    mutating func forgetSaved() {
        updatesOfDeleted = UpdatesOfDeletedObjects()
        positions.removeAll()
    }

    /// Takes the checks for the running save. Those that are added during it belong to the next one.
    mutating func takeChecks() -> ConflictChecks {
        takenChecks.formUnion(checks)
        checks = ConflictChecks()
        return takenChecks
    }

    /// Forgets the recorded changes of other saves that the context has merged. This includes objects of a running save: if it fails, their
    /// changes are unsaved again.
    mutating func forgetUnmerged(where isMerged: (ObjectAddress) -> Bool = { _ in true }) {
        // Most merges find none.
        if !checks.unmerged.isEmpty { checks.unmerged = checks.unmerged.filter { !isMerged($0.key) } }
        if !takenChecks.unmerged.isEmpty { takenChecks.unmerged = takenChecks.unmerged.filter { !isMerged($0.key) } }
        if !checks.outdated.isEmpty { checks.outdated = checks.outdated.filter { !isMerged($0.key) } }
        if !takenChecks.outdated.isEmpty { takenChecks.outdated = takenChecks.outdated.filter { !isMerged($0.key) } }
    }

    /// Forgets the checks of a save that succeeded.
    mutating func dropTakenChecks() { takenChecks = ConflictChecks() }

    /// Returns the checks of a save that failed to the next one.
    mutating func returnTakenChecks() {
        checks = takeChecks()
        takenChecks = ConflictChecks()
    }

    /// Takes all unused keys, so that the caller returns them to the allocator.
    mutating func takeKeys() -> [(entity: EntityIndex, keys: Range<ObjectKey>)] {
        guard keys.contains(where: { !$0.isEmpty }) else { return [] }
        let rest = keys.enumerated(as: EntityIndex.self).filter { !$1.isEmpty }.map { (entity: $0, keys: $1) }
        keys = Array(repeating: 0..<0, count: keys.count)
        return rest
    }
}
