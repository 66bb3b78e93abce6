#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The author, context, time and process of a save, which the history records with the changes.
///
/// ```swift
/// let metadata = transaction.changeSet.metadata
/// print(metadata.date, metadata.author, metadata.processID)
/// ```
public struct SaveMetadata: Sendable, Hashable, Codable {
    /// The context's `transactionAuthor`; empty if it had none.
    public var author: String
    /// The context's name.
    public var contextName: String
    /// The time in microseconds since the beginning of 1970, by the saving machine's clock, which may be set back; 0 if
    /// unknown.
    public var time: Int64
    /// The id of the saving process; 0 if unknown.
    public var processID: Int32

    /// Creates the metadata of a save. To get the current time and process, call ``now(author:contextName:)``.
    public init(author: String = "", contextName: String = "", time: Int64 = 0, processID: Int32 = 0) {
        self.author = author
        self.contextName = contextName
        self.time = time
        self.processID = processID
    }

    /// Returns metadata with the current time and this process. About 0.2 µs.
    public static func now(author: String = "", contextName: String = "") -> SaveMetadata {
        SaveMetadata(author: author, contextName: contextName, time: Self.time(of: Date()), processID: thisProcess)
    }

    /// The time of the save as a date.
    public var date: Date { Date(timeIntervalSince1970: Double(time) / 1_000_000) }

    /// Returns a date in microseconds since the beginning of 1970.
    public static func time(of date: Date) -> Int64 {
        Int64(exactly: (date.timeIntervalSince1970 * 1_000_000).rounded()) ?? (date > .distantPast ? .max : .min)
    }

    /// The id of this process, read once: a store is not used on both sides of a fork.
    public static let thisProcess: Int32 = ProcessInfo.processInfo.processIdentifier
}

extension SaveMetadata: CustomStringConvertible {
    /// The author, the context, the time in ISO 8601, and the process.
    public var description: String {
        let author = author.isEmpty ? "no author" : author
        let context = contextName.isEmpty ? "no context" : "context \(contextName)"
        return "\(author), \(context), \(timeText), process \(processID)"
    }

    /// The time of the save as text.
    package var timeText: String {
        time == 0 ? "an unknown time" : Value.double(date.timeIntervalSinceReferenceDate).text(as: .date)
    }
}
