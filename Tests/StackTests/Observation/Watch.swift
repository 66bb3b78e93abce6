import Observation
import ObjectGraph

/// Counts the notifications of one property. Observes again inside each notification, so that a second one is counted too.
@MainActor
final class Watch {
    private let read: @MainActor () -> Void
    private let note: @MainActor () -> Void
    private(set) var count = 0

    /// - Parameter note: Called inside each notification.
    init(_ read: @escaping @MainActor () -> Void, note: @escaping @MainActor () -> Void = {}) {
        self.read = read
        self.note = note
        observe()
    }

    private func observe() {
        withObservationTracking {
            read()
        } onChange: { [weak self] in
            MainActor.assumeIsolated {
                guard let self else { return }
                self.count += 1
                self.note()
                self.observe()
            }
        }
    }

    /// Returns the number of notifications since the last call.
    func take() -> Int {
        defer { count = 0 }
        return count
    }
}
