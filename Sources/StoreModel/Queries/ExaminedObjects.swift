internal import Platform

/// Counts the objects whose values a store compares for a query, if the caller wants to know (S174).
///
/// A store counts while it answers, and adds the sum once per query, so that a query that is not watched costs one atomic read.
package final class ExaminedObjects: Sendable {
    @TaskLocal private static var current: ExaminedObjects?
    /// The number of queries that are being watched, so that others do not look for a task-local value.
    private static let watched = Atomic(0)
    private let sum = Atomic(0)
    private let isKnown = Atomic(false)

    /// Runs a query.
    /// - Returns: The result, and the number of objects that the store has examined; nil if the store does not count.
    package static func counting<R>(_ query: () throws -> R) rethrows -> (result: R, count: Int?) {
        let counter = ExaminedObjects()
        watched.add(1, ordering: .relaxed)
        defer { watched.subtract(1, ordering: .relaxed) }
        let result = try $current.withValue(counter) { try query() }
        return (result, counter.isKnown.load(ordering: .relaxed) ? counter.sum.load(ordering: .relaxed) : nil)
    }

    /// Whether some thread watches a query.
    package static var isWatched: Bool { watched.load(ordering: .relaxed) > 0 }

    /// Adds the objects that a store has examined for the query of this thread.
    package static func add(_ count: Int) {
        guard isWatched, let current else { return }
        current.isKnown.store(true, ordering: .relaxed)
        current.sum.add(count, ordering: .relaxed)
    }
}
