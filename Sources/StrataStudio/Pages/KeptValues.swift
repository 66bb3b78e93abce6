import StoreInterface
import StoreModel
import NIOConcurrencyHelpers

/// Values that are kept for a page between its requests: a few at most, each until it was not used for a while.
final class KeptValues<Kept: Sendable>: Sendable {
    private struct Entry {
        var value: Kept
        var lastUse: ContinuousClock.Instant
    }

    private let limit: Int
    private let idleTime: Duration
    private let entries = NIOLockedValueBox<[String: Entry]>([:])

    init(limit: Int, idleTime: Duration) {
        self.limit = limit
        self.idleTime = idleTime
    }

    /// Keeps a value, and releases the one whose last use is longest ago if there are too many.
    ///
    /// - Returns: The name of the value.
    func add(_ value: Kept) -> String {
        let name = AccessCheck.makeToken()
        let released = entries.withLockedValue { entries -> Entry? in
            entries[name] = Entry(value: value, lastUse: .now)
            guard entries.count > limit, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return nil }
            return entries.removeValue(forKey: oldest.key)
        }
        // The value is released after the lock.
        _ = released
        return name
    }

    /// Returns a value that is still kept.
    subscript(name: String) -> Kept? {
        entries.withLockedValue { entries in
            entries[name]?.lastUse = .now
            return entries[name]?.value
        }
    }

    @discardableResult
    func remove(_ name: String) -> Kept? { entries.withLockedValue { $0.removeValue(forKey: name) }?.value }

    /// Releases the values that were not used for a while.
    func releaseIdle() {
        let end = ContinuousClock.now - idleTime
        let released = entries.withLockedValue { entries in
            let old = entries.filter { $0.value.lastUse < end }
            for name in old.keys { entries[name] = nil }
            return old
        }
        _ = released
    }

    func removeAll() {
        let released = entries.withLockedValue { entries in
            defer { entries = [:] }
            return entries
        }
        _ = released
    }

    var count: Int { entries.withLockedValue { $0.count } }
}
