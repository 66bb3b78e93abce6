import StoreInterface

/// The changes of the newest steps of a store's state, for contexts that catch up. Each step has a sequence number and one entry.
struct ChangeFeed: Sendable {
    enum Step: Sendable {
        /// A save of this writer.
        case save(ChangeSet)
        /// Saves of other connections, whose changes are in the history.
        case external(after: Generation, through: Generation)
        /// A change without a description.
        case unknown
    }

    /// The steps, ascending, without gaps.
    private var steps: [(sequence: SaveSequence, step: Step)] = []
    private let limit: Int

    /// - Parameter limit: The number of steps to keep. Older steps are read from the store's history.
    init(limit: Int) { self.limit = limit }

    mutating func append(_ step: Step, _ sequence: SaveSequence) {
        if let last = steps.last, last.sequence.next != sequence { steps.removeAll() }
        steps.append((sequence, step))
        // Trim many steps at once, because removing from the front moves the rest.
        if steps.count > 2 * limit { steps.removeFirst(steps.count - limit) }
    }

    /// Returns the steps after one sequence up to another; nil if the feed does not contain all of them.
    func steps(after old: SaveSequence, through new: SaveSequence) -> [Step]? {
        guard old < new else { return old == new ? [] : nil }
        guard let first = steps.first, let last = steps.last, first.sequence <= old.next, new <= last.sequence else { return nil }
        let start = Int(old.next.rawValue - first.sequence.rawValue)
        return steps[start..<start + Int(new.rawValue - old.rawValue)].map(\.step)
    }
}
