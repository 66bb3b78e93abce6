/// The pages that a compaction packs, and the effort that it takes.
///
/// ```swift
/// try await container.compact(CompactionOptions(age: .any, effort: .fast)) { progress in
///     print("\(Int(progress.fraction * 100)) %")
/// }
/// ```
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

    /// The minimum age of the pages to pack.
    public var age: Age
    /// The effort spent on each page.
    public var effort: Effort

    /// Creates options. By default, packs pages that none of the newest 100 saves has written.
    public init(age: Age = .saves(100), effort: Effort = .usual) {
        self.age = age
        self.effort = effort
    }
}

/// The progress of a compaction, or its final result.
///
/// ```swift
/// let result = try await container.compact()
/// print(result.pagesPacked, result.bytesBefore - result.bytesAfter)
/// ```
public struct CompactionProgress: Sendable, Hashable {
    /// The number of pages to look at, counted at the beginning; at least ``pagesSeen``.
    public var pages = 0
    /// The number of pages looked at so far.
    public var pagesSeen = 0
    /// The number of pages packed so far. A page that would not save space is not packed.
    public var pagesPacked = 0
    /// The size of the packed pages before and after.
    public var bytesBefore = 0
    /// The size of the packed pages after packing, in bytes.
    public var bytesAfter = 0
    /// The duration of the longest write transaction, disk included. A save waits at most this long.
    public var longestWrite = Duration.zero

    /// Creates the progress of a compaction that has not begun.
    public init() {}

    /// The completed part, from 0 to 1.
    public var fraction: Double { pages == 0 ? 1 : min(1, Double(pagesSeen) / Double(max(pages, pagesSeen))) }
}
