/// The position of an accepted save in the order of one writer. Local to the process: files contain only generations.
///
/// A writer assigns a sequence to a save when it accepts it, and a generation when it commits it.
public struct SaveSequence: Sendable, Hashable, Comparable {
    /// The position as a number. Later saves have greater numbers.
    public let rawValue: UInt64

    /// Creates a sequence from its number.
    @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// The sequence before the first save.
    public static let zero = SaveSequence(0)

    /// The sequence of the following save.
    @inlinable public var next: SaveSequence { SaveSequence(rawValue + 1) }

    /// Returns the number of saves that were accepted after an earlier save, up to and including this one.
    package func saves(since earlier: SaveSequence) -> Int { Int(rawValue - earlier.rawValue) }

    /// Returns the sequence that a number of further saves leads to.
    package func advanced(by saves: Int) -> SaveSequence { SaveSequence(rawValue + UInt64(saves)) }

    /// Returns whether a save was accepted before another save of the same writer.
    @inlinable public static func < (a: SaveSequence, b: SaveSequence) -> Bool { a.rawValue < b.rawValue }
}

/// The save that last wrote a row: no save yet, a save in the file, or a save that a writer has accepted but not yet
/// committed.
@frozen
public struct RowVersion: Sendable, Hashable {
    /// The highest bit distinguishes sequences from generations, which stay far below it.
    @usableFromInline let rawValue: UInt64
    @usableFromInline static let acceptedBit: UInt64 = 1 << 63

    @inlinable init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The version of a row that no writer has accepted.
    public static let unsaved = RowVersion(rawValue: 0)

    /// Returns the version of rows that a commit has written under a generation.
    @inlinable public static func committed(_ generation: Generation) -> RowVersion { RowVersion(rawValue: generation.rawValue) }

    /// Returns the version of rows that a writer has accepted and not yet committed.
    @inlinable public static func accepted(_ sequence: SaveSequence) -> RowVersion {
        RowVersion(rawValue: sequence.rawValue | acceptedBit)
    }

    /// The sequence of an accepted save; nil for any other version.
    @inlinable public var sequence: SaveSequence? {
        rawValue & Self.acceptedBit == 0 ? nil : SaveSequence(rawValue & ~Self.acceptedBit)
    }

    /// The generation of a committed save; nil for any other version.
    @inlinable public var generation: Generation? {
        rawValue & Self.acceptedBit == 0 && rawValue != 0 ? Generation(rawValue: rawValue) : nil
    }
}

/// The generations that one commit assigns to accepted saves: consecutive numbers, in the order of the saves.
public struct CommitNumbers: Sendable {
    /// The sequences of the saves, ascending.
    public let sequences: [SaveSequence]
    /// The generation of the first save.
    public let first: Generation
    private let isContiguous: Bool

    /// - Parameters:
    ///   - sequences: The saves, ascending.
    ///   - first: `StoreTransaction.nextGeneration` before the first of the saves is written.
    public init(_ sequences: [SaveSequence], first: Generation) {
        self.sequences = sequences
        self.first = first
        isContiguous = sequences.isEmpty || sequences[sequences.count - 1].saves(since: sequences[0]) == sequences.count - 1
    }

    /// Creates the numbers of a commit whose saves directly follow a generation.
    public init(_ sequences: [SaveSequence], after generation: Generation) { self.init(sequences, first: generation.next) }

    /// The numbers for layers that are already stamped with generations.
    public static let none = CommitNumbers([], after: 0)

    /// Returns the generation under which a row is written. O(1); O(log saves) if the sequences have gaps.
    ///
    /// Passing a sequence that the commit does not contain is a programmer error.
    public func generation(of version: RowVersion) -> Generation {
        guard let sequence = version.sequence else { return version.generation ?? 0 }
        precondition(!sequences.isEmpty, "a row of an accepted save is written without the numbers of its commit")
        if isContiguous { return first.advanced(by: sequence.saves(since: sequences[0])) }
        let position = sequences.partitioningIndex { $0 >= sequence }
        precondition(
            position < sequences.count && sequences[position] == sequence, "a row is written with the commit of other saves")
        return first.advanced(by: position)
    }
}

extension Array {
    /// Returns the first position at which the element, and every later element, satisfies `isAfter`. O(log n).
    package func partitioningIndex(where isAfter: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = low + (high - low) / 2
            if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
