import StoreInterface
import StoreModel

/// The activity of a context besides its changes: saving, merging, not yet merged saves, and closing.
struct ContextPhase {
    var saveGate = SaveGate()
    /// Whether the merge policy with which the running save began may drop changes. The program may set another one meanwhile.
    var policyMayDrop = false
    /// Whether a step of a save or merge is running. Such a step must read the state that it started with.
    var isMoving = false
    /// Whether the program has asked for the merge that is running.
    var isMerging = false
    /// Whether a save is being applied. See ``ManagedObjectContext/settleBaseNow()``.
    var settlesBaseLater = false
    /// The notifier of saves that the context has not merged yet; nil if there are none. The next read merges them first.
    var behind: CoalescedNotifier? {
        didSet { noteWork() }
    }
    /// The knowledge of the context when the store was suspended; nil if the store is not suspended.
    var suspended: ManagedObjectContext.Suspended? {
        didSet { noteWork() }
    }
    /// The states of the parent to which this child has not moved yet, with the changes that led to them. The next use moves it.
    var announced: [(base: SealedBase, changes: ChangeSet?)] = [] {
        didSet { noteWork() }
    }
    /// Whether the next use has to move the context first.
    private(set) var mustCatchUp = false
    /// Whether the context was not used since the store was suspended.
    var isSuspended: Bool { suspended.map { !$0.hasMoved } ?? false }
    /// The new objects that the next use of the context inserts. See ``ManagedObjectContext/awaitArrival(of:_:)``.
    var arrivals: [ManagedObject] = []
    /// The number of registrations of objects when the context last began to rest. If there are more now, the context may have read a value
    /// from a deferred save in memory.
    var registrationsAtRest: UInt64 = 0
    /// Whether the context is notified of flushes although it does not merge. After a flush it can release the snapshot below the
    /// deferred saves.
    var awaitsFlushes = false
    /// The newest step of the writer that the context has merged, or with which it began. Later steps in its state came with its own saves
    /// and those of its children, or with a snapshot budget, which are no merges.
    var mergedThrough = SaveSequence.zero
    /// The newest step of the writer when the program chose the state that the context reads.
    var pinnedThrough = SaveSequence.zero
    /// The view below the unsaved changes before a move that is no merge, and the layers in it that the next state contains as saved; nil
    /// if none is running. The move compares them before it notifies observers, whose changes are made over the new state.
    var unmergedSince: (view: LayeredView, saved: [Layer])?
    /// Whether the parent has announced a state to which this child did not move, so that the next announcement does not contain all changes.
    var hasMissedParent = false
    /// The error thrown by requests and saves after the container was closed; nil before.
    var closure: StoreError?

    private mutating func noteWork() { mustCatchUp = behind != nil || isSuspended || !announced.isEmpty }
}
