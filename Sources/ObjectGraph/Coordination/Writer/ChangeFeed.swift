import StoreInterface

/// What the newest steps of a store's state changed, for contexts that catch up. Every step has a sequence and one entry.
struct ChangeFeed: Sendable {
    enum Step: Sendable {
        /// A save of this writer.
        case save(ChangeSet)
        /// Saves of other connections, which the history tells.
        case external(after: Generation, through: Generation)
        /// A change that nothing describes.
        case unknown
    }

    /// Ascending, without gaps.
    private var steps: [(sequence: SaveSequence, step: Step)] = []
    private let limit: Int

    /// - Parameter limit: how many steps are kept; older ones come from the store's history.
    init(limit: Int) { self.limit = limit }

    mutating func append(_ step: Step, _ sequence: SaveSequence) {
        if let last = steps.last, last.sequence.next != sequence { steps.removeAll() }
        steps.append((sequence, step))
        // Trimmed in large steps: removing from the front moves the rest.
        if steps.count > 2 * limit { steps.removeFirst(steps.count - limit) }
    }

    /// The steps after one sequence up to another; nil when the feed does not hold all of them.
    func steps(after old: SaveSequence, through new: SaveSequence) -> [Step]? {
        guard old < new else { return old == new ? [] : nil }
        guard let first = steps.first, let last = steps.last, first.sequence <= old.next, new <= last.sequence else { return nil }
        let start = Int(old.next.rawValue - first.sequence.rawValue)
        return steps[start..<start + Int(new.rawValue - old.rawValue)].map(\.step)
    }
}
