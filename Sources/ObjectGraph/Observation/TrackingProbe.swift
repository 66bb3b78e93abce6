import Observation
internal import Platform

/// Detects whether the calling code runs inside `withObservationTracking`, for which the Observation module has no function.
///
/// The module records the key path of each access inside `withObservationTracking` in a set, and hashes it for that. The probe makes an
/// access whose key path counts how often it is hashed. Outside of a tracking function, that costs some 30 instructions and no
/// allocation.
///
/// A probe is used by one thread at a time. Its key path may be hashed by other threads, when they end an observation. Then the probe may
/// wrongly report tracking, which costs an unneeded registrar.
final class TrackingProbe {
    /// A key path argument that counts how often it is hashed.
    private final class HashCount: Hashable, Sendable {
        let count = Atomic<Int>(0)

        static func == (a: HashCount, b: HashCount) -> Bool { a === b }

        func hash(into hasher: inout Hasher) {
            count.add(1, ordering: .relaxed)
            hasher.combine(ObjectIdentifier(self))
        }
    }

    private final class Subject: Observable, Sendable {
        static let shared = Subject()

        subscript(count: HashCount) -> Bool { false }
    }

    private let hashes = HashCount()
    private let path: KeyPath<Subject, Bool>
    // Unchecked, because the functions of a registrar that run here call nothing of this object.
    @exclusivity(unchecked) private var registrar = ObservationRegistrar()
    @exclusivity(unchecked) private var tracked = 0
    private static let maximumTracked = 64

    init() { path = \Subject.[hashes] }

    /// Returns whether an access made now is recorded.
    func isTracking() -> Bool {
        let before = hashes.count.load(ordering: .relaxed)
        registrar.access(Subject.shared, keyPath: path)
        guard hashes.count.load(ordering: .relaxed) != before else { return false }
        tracked += 1
        // A registrar keeps the closures of observations that were never notified. A new one releases them.
        if tracked % Self.maximumTracked == 0 { registrar = ObservationRegistrar() }
        return true
    }
}
