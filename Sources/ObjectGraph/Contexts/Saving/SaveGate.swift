/// Runs one save of a context at a time.
///
/// Saves that come during another one start in the order in which they came. Saves of children through the context are collected and
/// forwarded together, so that they share one transaction. A gate belongs to its context's executor.
struct SaveGate {
    /// Whether a save is running.
    private(set) var isSaving = false
    private var waiting: [() -> Void] = []
    private var pushes: [WaitingPush] = []
    /// The number of children's saves in the next group.
    var pushCount: Int { pushes.count }

    /// Begins a save if none is running. Returns whether it began.
    mutating func enterIfIdle() -> Bool {
        guard !isSaving else { return false }
        isSaving = true
        return true
    }

    /// Adds a save that starts after the running save and the saves that already wait. Precondition: a save is running.
    mutating func wait(_ start: @escaping () -> Void) {
        precondition(isSaving, "a save waits only for another save")
        waiting.append(start)
    }

    /// Ends the running save. Returns the next save for the caller to start, or nil if none waits.
    mutating func leave() -> (() -> Void)? {
        guard waiting.isEmpty else { return waiting.removeFirst() }
        isSaving = false
        return nil
    }

    /// Adds a child's save. Returns whether it is the first of its group, for which the caller starts a save of this context.
    mutating func add(_ push: WaitingPush) -> Bool {
        pushes.append(push)
        return pushes.count == 1
    }

    /// Removes and returns the collected saves of children.
    mutating func takeGroup() -> [WaitingPush] {
        defer { pushes = [] }
        return pushes
    }
}
