import StoreInterface
import StoreModel

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
    private var steps: [Entry] = []

    private struct Entry {
        var sequence: SaveSequence
        var step: Step
        var source: SaveSource
        /// Whether the file has the save with other changes.
        var isRewritten = false

        var isUnknown: Bool { if case .unknown = step { true } else { false } }
    }

    /// The steps that were removed, as far as they are known.
    private var forgotten = Forgotten()

    private struct Forgotten {
        var newest = SaveSequence.zero
        /// The source of the newest step.
        var source = SaveSource.externalProcess
        /// The newest step of another source.
        var newestOfOthers = SaveSequence.zero
        /// The newest change without a description.
        var newestUnknown = SaveSequence.zero

        mutating func append(_ sequence: SaveSequence, source: SaveSource) {
            if source != self.source { newestOfOthers = newest }
            (newest, self.source) = (sequence, source)
        }

        /// Whether a context has made all of these steps after a sequence.
        func areAll(by context: SaveSource?, after old: SaveSequence) -> Bool {
            (context == source ? newestOfOthers : newest) <= old
        }
    }

    private let limit: Int

    /// - Parameter limit: The number of steps to keep. Older steps are read from the store's history.
    init(limit: Int) { self.limit = limit }

    mutating func append(_ step: Step, _ sequence: SaveSequence, source: SaveSource = .externalProcess) {
        let newest = steps.last?.sequence ?? forgotten.newest
        if newest.next != sequence {
            removeFirst(steps.count)
            forgotten.append(SaveSequence(sequence.rawValue - 1), source: .externalProcess)
            forgotten.newestUnknown = forgotten.newest
        }
        steps.append(Entry(sequence: sequence, step: step, source: source))
        // Trim many steps at once, because removing from the front moves the rest.
        if steps.count > 2 * limit { removeFirst(steps.count - limit) }
    }

    /// Forgets the oldest steps.
    private mutating func removeFirst(_ count: Int) {
        for entry in steps.prefix(count) {
            forgotten.append(entry.sequence, source: entry.source)
            if entry.isUnknown { forgotten.newestUnknown = entry.sequence }
        }
        steps.removeFirst(count)
    }

    /// Whether there may be a change without a description after a sequence, also among forgotten steps. O(steps).
    func mayHaveUnknown(after old: SaveSequence) -> Bool {
        forgotten.newestUnknown > old || steps.contains { $0.isUnknown && $0.sequence > old }
    }

    /// Forgets all steps, as later ones do.
    mutating func forgetSteps() { removeFirst(steps.count) }

    /// Notes that a save was written with other changes than it was accepted with. Contexts that have not moved past it still see it as it
    /// was accepted.
    mutating func noteRewritten(_ sequence: SaveSequence) {
        guard let first = steps.first?.sequence, first <= sequence, let last = steps.last?.sequence, sequence <= last else {
            return
        }
        steps[Int(sequence.rawValue - first.rawValue)].isRewritten = true
    }

    /// Returns the steps after one sequence up to another; nil if the feed has forgotten one of them.
    ///
    /// - Parameter number: The number of a context whose saves are left out; nil for none.
    func steps(after old: SaveSequence, through new: SaveSequence, notBy number: UInt64? = nil) -> [Step]? {
        let context = number.map(SaveSource.context)
        guard old < new else { return old == new ? [] : nil }
        guard forgotten.areAll(by: context, after: old), new <= steps.last?.sequence ?? forgotten.newest else { return nil }
        let first = max(old, forgotten.newest)
        guard first < new else { return [] }
        let start = Int(first.rawValue - forgotten.newest.rawValue)
        var found: [Step] = []
        for entry in steps[start..<start + Int(new.rawValue - first.rawValue)] where context == nil || entry.source != context {
            found.append(entry.step)
        }
        return found
    }

    /// Returns the saves of this writer that are in the file with the generations after one up to another, oldest first; nil if it did
    /// not make all of them, or if a save may have been changed on its way to the file. O(steps that are newer).
    func saves(after old: Generation, through new: Generation, _ numbers: CommittedNumbers) -> [ChangeSet]? {
        var found: [ChangeSet] = []
        var next = new
        for entry in steps.reversed() where next > old {
            switch entry.step {
            case .unknown: return nil
            case .external: continue
            case .save(var changes):
                // Without a generation, the save is in memory only.
                guard let generation = numbers.generation(of: entry.sequence), generation <= new else { continue }
                guard generation == next, !entry.isRewritten else { return nil }
                changes.generation = generation
                found.append(changes)
                next = next.previous
            }
        }
        return next == old && old < new ? found.reversed() : nil
    }
}

/// Closures that are called after each save, and the sequences that end when their coordinator leaves the store.
struct SaveListeners {
    /// Called after each save with the new state and its source, on the writer's queue or on the thread that saves. All saves of other
    /// processes that were found in one check are one change.
    typealias Call = @Sendable (StoreState, SaveSource) -> Void

    private var calls: [UInt64: Call] = [:]
    private var endings: [UInt64: (owner: ObjectIdentifier, end: @Sendable () -> Void)] = [:]
    private var last: UInt64 = 0

    /// The listeners, for the caller to call outside of its lock.
    var all: [Call] { Array(calls.values) }

    mutating func add(_ listener: @escaping Call) -> UInt64 {
        last += 1
        calls[last] = listener
        return last
    }

    /// Sets the closure that ends a listener's sequence when its coordinator leaves.
    mutating func setEnding(of number: UInt64, owner: ObjectIdentifier, _ end: @escaping @Sendable () -> Void) {
        endings[number] = (owner, end)
    }

    mutating func remove(_ number: UInt64) {
        calls[number] = nil
        endings[number] = nil
    }

    /// The endings of a coordinator's sequences, for the caller to call outside of its lock.
    func endings(of owner: ObjectIdentifier) -> [@Sendable () -> Void] {
        endings.values.filter { $0.owner == owner }.map(\.end)
    }

    mutating func removeAll() { (calls, endings) = ([:], [:]) }
}
