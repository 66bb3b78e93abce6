import Observation
internal import Platform

/// Detects whether the calling code runs inside `withObservationTracking`, for which the Observation module has no function.
///
/// The module records the key path of each access inside `withObservationTracking` in a set, and hashes it for that. The probe makes an
/// access whose key path counts how often it is hashed. Outside of a tracking function, that costs some 80 instructions and no
/// allocation, and counts no reference.
///
/// A probe is used by one thread at a time. Its key path may be hashed by other threads, when they end an observation. Then the probe may
/// wrongly report tracking, which costs an unneeded registrar.
struct TrackingProbe: ~Copyable {
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

    /// The access that the probe makes. Its parts are constants, so that making it copies none of them.
    private final class Access {
        private let hashes = HashCount()
        private let path: KeyPath<Subject, Bool>
        private let registrar = ObservationRegistrar()
        private let subject = Subject.shared

        init() { path = \Subject.[hashes] }

        /// Returns whether the access was recorded.
        func isRecorded() -> Bool {
            let before = hashes.count.load(ordering: .relaxed)
            registrar.access(subject, keyPath: path)
            return hashes.count.load(ordering: .relaxed) != before
        }
    }

    /// Made at the first use. It is released in `deinit`, and unmanaged because counting references to it would cost as much as the rest of
    /// an access. The functions of a registrar that run in one call nothing of this module that could release it.
    private var access: Unmanaged<Access>?
    private var recorded = 0
    private static let maximumRecorded = 256

    deinit { access?.release() }

    /// Returns whether an access made now is recorded.
    mutating func isTracking() -> Bool {
        let access = access ?? .passRetained(Access())
        self.access = access
        guard access._withUnsafeGuaranteedRef({ $0.isRecorded() }) else { return false }
        recorded += 1
        // A registrar keeps the closures of observations that were never notified. A new one releases them.
        if recorded % Self.maximumRecorded == 0 {
            self.access = nil
            access.release()
        }
        return true
    }
}
