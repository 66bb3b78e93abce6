import StoreInterface

/// Runs one save of a context at a time.
///
/// Saves that come during another one start in the order in which they came. Consecutive saves of children with one author are collected
/// and forwarded together, so that they share one transaction. A transaction has one author in the history (S160). A gate belongs to its
/// context's executor.
struct SaveGate {
    /// The gate of children's saves that pass the context; nil if they cannot.
    var direct: DirectSaveGate?
    private var isRunning = false
    /// Whether a save is running, or passes the context.
    var isSaving: Bool { isRunning || direct?.isTaken ?? false }
    /// Whether the running save was handed over to the writer or to the parent.
    private var isHandedOver = false
    /// Whether the context has moved to another state since the running save was handed over, or since it has passed ``direct``.
    private(set) var hasMoved = false
    private var waiting: [() -> Void] = []
    /// The children's saves by group, in their order.
    private var groups: [[WaitingPush]] = []
    /// The number of children's saves that wait.
    var pushCount: Int { groups.reduce(0) { $0 + $1.count } }

    /// Begins a save if none is running. Returns whether it began.
    mutating func enterIfIdle() -> Bool {
        if direct?.close() == true { isRunning = true }
        guard !isRunning else { return false }
        isRunning = true
        return true
    }

    /// Begins the last part of a child's save that has passed the context.
    mutating func enterDirect() {
        isRunning = true
        direct?.end()
    }

    /// Notes that the running save is handed over, the context's own or that of a child.
    mutating func handOver() { isHandedOver = true }

    /// Notes that the context moves to another state.
    mutating func noteMove() { if isHandedOver || direct?.isTaken ?? false { hasMoved = true } }

    /// Adds a save that starts after the running save and the saves that already wait. Precondition: a save is running.
    mutating func wait(_ start: @escaping () -> Void) {
        precondition(isRunning, "a save waits only for another save")
        waiting.append(start)
    }

    /// Ends the running save. Returns the next save for the caller to start, or nil if none waits.
    mutating func leave() -> (() -> Void)? {
        (isHandedOver, hasMoved) = (false, false)
        guard waiting.isEmpty else { return waiting.removeFirst() }
        isRunning = false
        return nil
    }

    /// Adds a child's save. Returns whether it is the first of its group, for which the caller starts a save of this context.
    mutating func add(_ push: WaitingPush) -> Bool {
        if let last = groups.last?.last, last.push.metadata.author == push.push.metadata.author {
            groups[groups.count - 1].append(push)
            return false
        }
        groups.append([push])
        return true
    }

    /// Removes and returns the next group; empty if none waits.
    mutating func takeGroup() -> [WaitingPush] { groups.isEmpty ? [] : groups.removeFirst() }
}

extension [WaitingPush] {
    /// The strictest durability that the pushes ask for. Of several bounds, this is the shortest (S066).
    var durability: Durability {
        var shortest: Duration?
        for waiting in self {
            guard case .deferred(let bound) = waiting.durability else { return .durable }
            shortest = shortest.map { Swift.min($0, bound) } ?? bound
        }
        return shortest.map { .deferred(within: $0) } ?? .durable
    }
}
