#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store that can make its file smaller while it is in use.
public protocol CompactableStore: ObjectStore {
    /// Packs pages that have not been written for a while, in small write transactions. Readers never wait, and a writer
    /// waits for one of these transactions at most.
    ///
    /// The file keeps its length. Later saves reuse the freed space when no reader needs it any more. Runs off the calling
    /// executor; a store runs one compaction at a time. `progress` is called after each transaction.
    /// - Throws: `CancellationError` when the task is cancelled; pages packed so far stay packed. `StoreError`.
    func compact(
        _ options: CompactionOptions, progress: @escaping @Sendable (CompactionProgress) -> Void
    ) async throws -> CompactionProgress

    /// Writes a copy of the newest state to a new file without free space. Readers and writers continue. Space that they free
    /// meanwhile is reused only afterwards. The copy gets its name when it is complete, on disk and verified.
    ///
    /// - Throws: `StoreError` `.cannotOpen` if a file of that name exists, `.inputOutput`, `.damaged`; `CancellationError`.
    func compactCopy(to url: URL) async throws
}

/// The pages that a compaction packs, and the effort that it takes.
public struct CompactionOptions: Sendable, Hashable {
    /// The minimum age of the pages to pack.
    public enum Age: Sendable, Hashable {
        /// Pages that none of the newest saves has written. The associated value is the number of saves.
        case saves(UInt64)
        /// All pages.
        case any
    }

    /// The effort spent on packing a page. It does not change the cost of reading.
    public enum Effort: Sendable, Hashable {
        /// About 0.1 ms per page.
        case fast
        /// About 1 ms per page, for files that are a few percent smaller.
        case usual
    }

    public var age: Age
    public var effort: Effort

    public init(age: Age = .saves(100), effort: Effort = .usual) {
        self.age = age
        self.effort = effort
    }
}

/// The progress of a compaction, or its final result.
public struct CompactionProgress: Sendable, Hashable {
    /// The number of pages to look at, counted at the beginning; at least ``pagesSeen``.
    public var pages = 0
    public var pagesSeen = 0
    public var pagesPacked = 0
    /// The size of the packed pages before and after.
    public var bytesBefore = 0
    public var bytesAfter = 0
    /// The duration of the longest write transaction, disk included. A save waits at most this long.
    public var longestWrite = Duration.zero

    public init() {}

    /// The completed part, from 0 to 1.
    public var fraction: Double { pages == 0 ? 1 : min(1, Double(pagesSeen) / Double(max(pages, pagesSeen))) }
}
