#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Who saved, when and where: what a row of the history says beside what changed.
public struct SaveOrigin: Sendable, Hashable, Codable {
    /// The context's `transactionAuthor`; empty when it had none.
    public var author: String
    /// The context's name.
    public var contextName: String
    /// Microseconds since the beginning of 1970 by the saving machine's clock, which may be set back; 0 is unknown.
    public var time: Int64
    /// The saving process; 0 is unknown.
    public var processID: Int32

    public init(author: String = "", contextName: String = "", time: Int64 = 0, processID: Int32 = 0) {
        self.author = author
        self.contextName = contextName
        self.time = time
        self.processID = processID
    }

    /// An origin with the time of now and this process. About 0.2 µs.
    public static func now(author: String = "", contextName: String = "") -> SaveOrigin {
        SaveOrigin(author: author, contextName: contextName, time: Self.time(of: Date()), processID: thisProcess)
    }

    public var date: Date { Date(timeIntervalSince1970: Double(time) / 1_000_000) }

    public static func time(of date: Date) -> Int64 {
        Int64(exactly: (date.timeIntervalSince1970 * 1_000_000).rounded()) ?? (date > .distantPast ? .max : .min)
    }

    /// Asked for once: a store is not used on both sides of a fork.
    public static let thisProcess: Int32 = ProcessInfo.processInfo.processIdentifier
}
