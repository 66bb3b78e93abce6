internal import Platform

/// The time between two attempts of work that waits until a suspended store is resumed.
let suspensionDelay = Duration.seconds(1)

/// The actor in which an observer was made. The reference is weak, because the actor may own the observer.
final class ObserverIsolation: @unchecked Sendable {
    // `@unchecked Sendable` is safe because the reference is set once, and a weak reference may be read by every thread.
    /// The actor; nil if it was released, or if there was none.
    private(set) weak var actor: (any Actor)?
    /// Whether the observer was not made on an actor.
    let isNone: Bool

    init(_ actor: (any Actor)?) {
        self.actor = actor
        isNone = actor == nil
    }
}

/// Calls a closure in the isolation in which it was made.
///
/// Wake-ups in quick succession are combined. Without an isolation, the closure is not called, because no thread is known that may call it.
final class IsolatedWakeup: @unchecked Sendable {
    // `@unchecked Sendable` is safe because the closure is called in the isolation only, and the rest is immutable or locked.
    private let isolation: ObserverIsolation
    private let body: () -> Bool
    private let isScheduled = Mutex(false)

    /// - Parameter body: The closure, which returns false if it has to be called again after a suspension of the store.
    init(in isolation: (any Actor)?, _ body: @escaping () -> Bool) {
        self.isolation = ObserverIsolation(isolation)
        self.body = body
    }

    /// Schedules a call.
    func wake() {
        guard let actor = isolation.actor else { return }
        let isFirst = isScheduled.withLock { isScheduled in
            defer { isScheduled = true }
            return !isScheduled
        }
        if isFirst { Task { await run(in: actor) } }
    }

    private func wakeLater() {
        Task { [weak self] in
            try? await Task.sleep(for: suspensionDelay)
            self?.wake()
        }
    }

    private func run(in isolation: isolated any Actor) {
        // Events from here on need another call.
        isScheduled.withLock { $0 = false }
        if !body() { wakeLater() }
    }
}
