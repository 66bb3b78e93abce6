import StoreInterface
import StoreModel

/// The generations with which accepted saves were committed. With them, a row read before the commit and the same row read after it
/// have equal versions.
struct CommittedNumbers: Sendable {
    /// Saves with consecutive sequences and consecutive generations.
    private struct Run {
        var first: SaveSequence
        var count: Int
        var generation: Generation
    }

    /// The runs, ascending and bounded. A forgotten version counts as changed, which is safe.
    private var runs: [Run] = []
    private static let limit = 4096
    /// The saves that were written otherwise than they were accepted, which is rare.
    private var rewritten: Set<SaveSequence> = []
    /// The saves that contexts may have read while they were being committed, and that were not committed, ascending and bounded.
    private var withdrawn: [SaveSequence] = []

    mutating func note(_ numbers: CommitNumbers) {
        for (position, sequence) in numbers.sequences.enumerated() {
            let generation = numbers.first.advanced(by: position)
            if let last = runs.last, sequence == last.first.advanced(by: last.count),
                generation == last.generation.advanced(by: last.count)
            {
                runs[runs.count - 1].count += 1
            } else {
                runs.append(Run(first: sequence, count: 1, generation: generation))
            }
        }
        if runs.count > Self.limit { runs.removeFirst(runs.count - Self.limit / 2) }
    }

    /// Records a save whose rows in the file may have other values than those that contexts have read in memory.
    mutating func noteRewritten(_ sequence: SaveSequence) { rewritten.insert(sequence) }

    /// Whether rows of a version may have other values in the file.
    func isRewritten(_ version: RowVersion?) -> Bool {
        !rewritten.isEmpty && version?.sequence.map(rewritten.contains) ?? false
    }

    /// Records saves that will never be in the file under these sequences.
    mutating func noteWithdrawn(_ sequences: some Sequence<SaveSequence>) {
        withdrawn += sequences
        if withdrawn.count > Self.limit { withdrawn.removeFirst(withdrawn.count - Self.limit / 2) }
    }

    /// Whether a version is that of a save that was withdrawn. O(log saves).
    func isWithdrawn(_ version: RowVersion?) -> Bool {
        guard let sequence = version?.sequence else { return false }
        let position = withdrawn.partitioningIndex { $0 >= sequence }
        return position < withdrawn.count && withdrawn[position] == sequence
    }

    /// Returns the generation of a save; nil if it is not in the file, or if its commit is forgotten. O(log runs).
    func generation(of sequence: SaveSequence) -> Generation? {
        let after = runs.partitioningIndex { $0.first > sequence }
        guard after > 0 else { return nil }
        let run = runs[after - 1]
        let offset = sequence.saves(since: run.first)
        return offset < run.count ? run.generation.advanced(by: offset) : nil
    }

    /// Returns the generation of the newest save up to one that is in the file; nil if none of them is known. O(log runs).
    func newest(through sequence: SaveSequence) -> Generation? {
        let after = runs.partitioningIndex { $0.first > sequence }
        guard after > 0 else { return nil }
        let run = runs[after - 1]
        return run.generation.advanced(by: min(sequence.saves(since: run.first), run.count - 1))
    }

    /// Whether two versions belong to the same save.
    func areSame(_ a: RowVersion?, _ b: RowVersion?) -> Bool {
        if a == b { return true }
        guard let a, let b else { return false }
        return committed(a) == committed(b)
    }

    private func committed(_ version: RowVersion) -> RowVersion {
        version.sequence.flatMap(generation(of:)).map(RowVersion.committed) ?? version
    }
}
