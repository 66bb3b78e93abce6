import Observation
internal import Platform

/// Detects whether the calling code runs inside `withObservationTracking`, for which the Observation module has no function.
///
/// The module records the key path of each access inside `withObservationTracking` in a set, and hashes it for that. The probe makes an
/// access whose key path counts how often it is hashed. Outside of a tracking function, that costs some 90 instructions and no
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

    /// The access that the probe makes. The parts are constants, so that an access copies none of them.
    private final class Access: Sendable {
        private let hashes = HashCount()
        private let path: KeyPath<Subject, Bool> & Sendable
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

    /// Retained from the first use to `deinit`, or until it is worn. It is unmanaged because counting references to it would cost as much as
    /// the rest of an access. Making an access calls no code that could release it.
    private var access: Unmanaged<Access>?
    /// The number of recorded accesses.
    private var recorded = 0
    private static let maximumRecorded = 64

    /// Accesses that no probe uses, for the probes of later contexts: making a key path takes some 20 microseconds.
    private static let unused = Mutex<[Access]>([])
    private static let maximumUnused = 16

    deinit {
        guard let access = access?.takeRetainedValue() else { return }
        // The registrar of recorded accesses keeps closures.
        if recorded == 0 { Self.unused.withLock { if $0.count < Self.maximumUnused { $0.append(access) } } }
    }

    /// A worn access, which the caller of ``isTracking()`` releases where other code may run.
    typealias Worn = any AnyObject & Sendable

    /// Returns whether an access made now is recorded, and a worn access if there is one.
    ///
    /// A registrar keeps the closures of observations that were never notified, and what they have captured, so that it is replaced from
    /// time to time. This happens outside of tracking functions, which register their observations at their end.
    mutating func isTracking() -> (Bool, Worn?) {
        let access = access ?? .passRetained(Self.unused.withLock { $0.popLast() } ?? Access())
        self.access = access
        if access._withUnsafeGuaranteedRef({ $0.isRecorded() }) {
            recorded += 1
            return (true, nil)
        }
        return (false, recorded >= Self.maximumRecorded ? wear() : nil)
    }

    /// Returns the access if accesses were recorded, for the caller to release. The next access is made by another one.
    mutating func wear() -> Worn? {
        guard recorded > 0, let worn = access else { return nil }
        recorded = 0
        access = nil
        return worn.takeRetainedValue()
    }
}
