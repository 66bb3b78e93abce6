internal import Platform

/// A running observation. The observation ends when the token is cancelled or released.
///
/// A token can be stored, cancelled and released on any executor. After ``cancel()`` has returned, no call of the observer begins; a call
/// that runs on another thread at that moment is not interrupted. The observer's closure is released on its context's executor.
///
/// ```swift
/// let token = context.observe { notice in print(notice.kind) }
/// token.cancel()
/// ```
public final class ObservationToken: Sendable {
    private let end: ObservationEnd
    private let onEnd: @Sendable () -> Void

    /// - Parameter onEnd: Called once, on the thread that ends the observation. It must not wait.
    init(_ end: ObservationEnd, onEnd: @escaping @Sendable () -> Void) {
        self.end = end
        self.onEnd = onEnd
    }

    deinit { cancel() }

    /// Ends the observation. Further calls have no effect.
    public func cancel() {
        if end.reach() { onEnd() }
    }
}

/// The end of an observation: shared by its token and by the closure that is called, which must not retain the token.
final class ObservationEnd: Sendable {
    private let flag = Atomic(false)

    var isReached: Bool { flag.load(ordering: .acquiring) }

    /// Returns whether this call ended it.
    func reach() -> Bool { !flag.exchange(true, ordering: .acquiringAndReleasing) }
}
