#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store that can make its file smaller while it is in use.
public protocol CompactableStore: ObjectStore {
    /// Packs what was not written for a while, in small write transactions, so that readers never wait and writers only for one of
    /// these. The file keeps its length; what is freed in it is used again by later saves, once no reader needs it any more.
    ///
    /// Runs off the calling executor; the store takes one at a time. `progress` is called after each transaction.
    /// - Throws: `CancellationError` when its task is cancelled: what was packed so far stays so. `StoreError`.
    func compact(
        _ options: CompactionOptions, progress: @escaping @Sendable (CompactionProgress) -> Void
    ) async throws -> CompactionProgress

    /// Writes a copy of the newest state to a new file, with nothing free in it. Readers and writers go on; what they free
    /// meanwhile is used again only afterwards. The copy appears under its name when it is whole, on disk and verified.
    ///
    /// - Throws: `StoreError` `.cannotOpen` when there is a file of that name, `.inputOutput`, `.damaged`; `CancellationError`.
    func compactCopy(to url: URL) async throws
}

/// What a compaction is to pack.
public struct CompactionOptions: Sendable, Hashable {
    public enum Age: Sendable, Hashable {
        /// What none of the newest so many saves has written.
        case saves(UInt64)
        /// Everything.
        case any
    }

    /// How hard to pack. Reading costs the same.
    public enum Effort: Sendable, Hashable {
        /// About 0.1 ms a page.
        case fast
        /// About 1 ms a page, for files that are some hundredths smaller.
        case usual
    }

    public var age: Age
    public var effort: Effort

    public init(age: Age = .saves(100), effort: Effort = .usual) {
        self.age = age
        self.effort = effort
    }
}

/// How far a compaction has come, or what it has done in the end.
public struct CompactionProgress: Sendable, Hashable {
    /// Pages there are to look at, as counted at the beginning; at least ``pagesSeen``.
    public var pages = 0
    public var pagesSeen = 0
    public var pagesPacked = 0
    /// Of the packed pages, before and after.
    public var bytesBefore = 0
    public var bytesAfter = 0
    /// The longest write transaction, disk included: how long a save had to wait at most.
    public var longestWrite = Duration.zero

    public init() {}

    /// 0 to 1.
    public var fraction: Double { pages == 0 ? 1 : min(1, Double(pagesSeen) / Double(max(pages, pagesSeen))) }
}
