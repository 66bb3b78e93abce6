internal import Platform
import StoreInterface
import StoreModel

/// The gate through which saves of one store pass. While the store is suspended, they wait (S167).
final class SaveSuspension: Sendable {
    /// A save, or longer work, that waits until the store is resumed, or its coordinator closed.
    private struct Waiter {
        /// The number by which the cancellation of its task ends the wait; nil if the wait goes on.
        let number: Int?
        let coordinator: PersistentStoreCoordinator
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var isClosed = false
        /// The number of saves that have passed and not ended.
        var running = 0
        var waiting: [Waiter] = []
        var lastWaiter = 0
        /// The calls that wait for the end of the running saves.
        var closing: [CheckedContinuation<Void, Never>] = []
        /// The interruptions of long work, by number.
        var interruptions: [Int: @Sendable () -> Void] = [:]
        var lastInterruption = 0
        /// Whether the store is being suspended, resumed or closed.
        var isInTurn = false
        /// The calls that wait to suspend, resume or close it.
        var turns = FirstInFirstOut<CheckedContinuation<Void, Never>>()
    }

    private let state = Mutex(State())
    /// Whether the store is suspended, for work that no caller waits for.
    private let isOn = Atomic(false)

    var isSuspended: Bool { isOn.load(ordering: .acquiring) }
    /// Whether saves wait.
    var isClosed: Bool { state.withLock { $0.isClosed } }
    /// The number of saves that wait until the store is resumed.
    var waitingCount: Int { state.withLock { $0.waiting.count } }
    /// Whether a call waits to suspend, resume or close the store.
    var isTurnWanted: Bool { state.withLock { !$0.turns.isEmpty } }

    /// Begins a save, which the caller ends with ``leave()``. If the store is suspended, waits until it is resumed. Saves must not be
    /// nested.
    ///
    /// - Throws: `StoreError` `.closed` if the coordinator is closed while the store is suspended.
    nonisolated(nonsending) func enter(for coordinator: PersistentStoreCoordinator) async throws {
        while !enterIfOpen() {
            try coordinator.checkOpen()
            await wait(nil, for: coordinator)
        }
    }

    /// Begins work as ``enter(for:)`` does. Cancelling the task ends the wait.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while the store is suspended. `StoreError` `.closed` if the coordinator is
    ///   closed while the store is suspended.
    nonisolated(nonsending) func enterUnlessCancelled(for coordinator: PersistentStoreCoordinator) async throws {
        while !enterIfOpen() {
            try Task.checkCancellation()
            try coordinator.checkOpen()
            let number = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            await withTaskCancellationHandler {
                await wait(number, for: coordinator)
            } onCancel: {
                endWaiting { $0.number == number }
            }
        }
    }

    /// Waits until the store is resumed, or the coordinator closed.
    ///
    /// - Parameter number: The number by which the cancellation of the task ends the wait; nil if the wait goes on.
    private nonisolated(nonsending) func wait(_ number: Int?, for coordinator: PersistentStoreCoordinator) async {
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                // Closing the coordinator, or cancelling the task, ends only a wait that it finds here.
                let isOver = coordinator.isClosed || (number != nil && Task.isCancelled)
                let waits = state.isClosed && !isOver
                if waits { state.waiting.append(Waiter(number: number, coordinator: coordinator, continuation: continuation)) }
                return waits
            }
            if !waits { continuation.resume() }
        }
    }

    /// Begins work that must not run while the store is suspended, and that the caller ends with ``leave()``. Returns false while the store is
    /// suspended, or about to be. Never waits.
    func enterIfOpen() -> Bool {
        state.withLock { state in
            if !state.isClosed { state.running += 1 }
            return !state.isClosed
        }
    }

    func leave() {
        let closing = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.running -= 1
            guard state.running == 0 else { return [] }
            defer { state.closing = [] }
            return state.closing
        }
        for waiting in closing { waiting.resume() }
    }

    /// Calls `interrupt` when the store is about to be suspended, at once if it is already. Returns a number for ``endInterruption(_:)``. For
    /// long work between ``enter(for:)`` and ``leave()``.
    func onClosing(_ interrupt: @escaping @Sendable () -> Void) -> Int {
        let (number, isClosed) = state.withLock { state in
            state.lastInterruption += 1
            state.interruptions[state.lastInterruption] = interrupt
            return (state.lastInterruption, state.isClosed)
        }
        if isClosed { interrupt() }
        return number
    }

    func endInterruption(_ number: Int) {
        let ended = state.withLock { $0.interruptions.removeValue(forKey: number) }
        withExtendedLifetime(ended) {}
    }

    /// Makes later saves wait, and returns when no save is running.
    func close() async {
        await withCheckedContinuation { continuation in
            let (isIdle, interruptions) = state.withLock { state in
                state.isClosed = true
                if state.running > 0 { state.closing.append(continuation) }
                return (state.running == 0, Array(state.interruptions.values))
            }
            if isIdle { continuation.resume() }
            for interrupt in interruptions { interrupt() }
        }
        isOn.store(true, ordering: .releasing)
    }

    /// Lets the writer read the store by itself again. Saves still wait.
    func wake() { isOn.store(false, ordering: .releasing) }

    /// Lets the saves that wait, and later ones, pass.
    func open() {
        wake()
        let waiting = state.withLock { state in
            state.isClosed = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.continuation.resume() }
    }

    /// Ends the wait of the saves of a coordinator that was closed. They throw. The store stays suspended, for other coordinators.
    func endWaiting(of coordinator: PersistentStoreCoordinator) { endWaiting { $0.coordinator === coordinator } }

    private func endWaiting(_ isEnded: @Sendable (Waiter) -> Bool) {
        let ended = state.withLock { state in
            let ended = state.waiting.filter(isEnded)
            state.waiting.removeAll(where: isEnded)
            return ended
        }
        for waiter in ended { waiter.continuation.resume() }
    }

    /// Runs `body`, which hands a save to the writer. For saves that cannot wait. A suspension that begins meanwhile waits for its end.
    ///
    /// - Throws: `StoreError` `.suspended` while the store is suspended, or about to be.
    func whileOpen<R>(_ store: any ObjectStore, _ body: () throws -> R) throws -> R {
        guard enterIfOpen() else { throw StoreError.suspended(store.name) }
        defer { leave() }
        return try body()
    }

    // MARK: Turns

    /// Begins to suspend, resume or close the store, which the caller ends with ``endTurn()``. Waits for the turns that have begun before.
    func beginTurn() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isInTurn { state.turns.append(continuation) }
                defer { state.isInTurn = true }
                return !state.isInTurn
            }
            if isFree { continuation.resume() }
        }
    }

    func endTurn() {
        let next = state.withLock { state in
            let next = state.turns.popFirst()
            state.isInTurn = next != nil
            return next
        }
        next?.resume()
    }
}
