import StoreInterface
import StoreModel

/// A state of the store that is still in use, and its cost (S152).
///
/// ```swift
/// for snapshot in try container.coordinator.snapshots() where !snapshot.isNewest { print(snapshot) }
/// ```
public struct LiveSnapshot: Sendable, Hashable, CustomStringConvertible {
    /// The names of the contexts and kept snapshots that use the state. Empty for live results, running fetches and other processes.
    public var owners: [String]
    /// The id of the process that uses the state.
    public var processID: Int32
    /// The time since the state was first read; nil for another process's state, whose age is unknown.
    public var age: Duration?
    /// The generation of the state; nil for another process's state.
    public var generation: Generation?
    /// The bytes of the file that this snapshot keeps from reuse, even if other snapshots keep them too; nil if unknown.
    ///
    /// On LMDB, these are the pages that later commits have freed, read from the list of free pages.
    public var bytesRetained: Int?
    /// A Boolean value that indicates whether this is the newest state, which every new context reads.
    ///
    /// A snapshot with the newest save can still retain bytes, such as the pages that a compaction has replaced since it was taken.
    public var isNewest: Bool

    /// The owners, the state, its age and its cost, as one line.
    public var description: String {
        let who =
            owners.isEmpty ? (age == nil ? "process \(processID)" : "live results or reads") : owners.joined(separator: ", ")
        let since = age.map { ", for \($0.formattedSeconds)" } ?? ""
        let what = generation.map { "save \($0)" } ?? (isNewest ? "the newest state" : "an older state")
        return "\(who): \(what)\(since), \(bytesRetained.map { "\($0) bytes" } ?? "an unknown number of bytes") retained"
    }
}

extension Duration {
    /// The duration in nanoseconds, at most `Int.max`.
    var nanoseconds: Int {
        let (whole, isTooLong) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflow) = whole.addingReportingOverflow(components.attoseconds / 1_000_000_000)
        return isTooLong || overflow ? (components.seconds < 0 ? .min : .max) : Int(sum)
    }

    /// The duration in seconds, with one decimal.
    fileprivate var formattedSeconds: String {
        let tenths = components.seconds * 10 + components.attoseconds / 100_000_000_000_000_000
        return "\(tenths / 10).\(tenths % 10) s"
    }
}

/// A limit on the cost of snapshots, with the responses to exceeding it. Each response is also logged as a warning.
///
/// ```swift
/// container.coordinator.snapshotBudget = SnapshotBudget(maximumAge: .seconds(60), responses: .advanceCleanContexts)
/// ```
public struct SnapshotBudget: Sendable, Hashable {
    /// The responses to an exceeded budget.
    public struct Response: OptionSet, Sendable, Hashable {
        /// The responses as bits.
        public let rawValue: UInt8
        /// Creates a set of responses from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Moves contexts without unsaved changes from a state over the budget to the newest state. This includes pinned contexts.
        /// Contexts with unsaved changes stay. A context without an executor stays until its next request.
        public static let advanceCleanContexts = Response(rawValue: 1)
        /// Makes `coordinator.snapshot()` throw ``SnapshotError`` while a state over the budget is in use.
        public static let refuseNewSnapshots = Response(rawValue: 2)
    }

    /// The maximum age of a state that is not the newest; nil for no limit.
    public var maximumAge: Duration?
    /// The maximum number of bytes of the file that a state may keep from reuse; nil for no limit.
    public var maximumBytes: Int?
    /// The responses in addition to the warning.
    public var responses: Response

    /// Creates a budget. Without arguments, it has no limits.
    public init(maximumAge: Duration? = nil, maximumBytes: Int? = nil, responses: Response = []) {
        self.maximumAge = maximumAge
        self.maximumBytes = maximumBytes
        self.responses = responses
    }

    func isExceeded(by snapshot: LiveSnapshot) -> Bool {
        if let maximumAge, let age = snapshot.age, age > maximumAge, !snapshot.isNewest { return true }
        // A snapshot with the newest save retains the pages that a later compaction has replaced.
        if let maximumBytes, let bytes = snapshot.bytesRetained, bytes > maximumBytes { return true }
        return false
    }
}

/// An error of ``PersistentStoreCoordinator/snapshot(owner:)``.
///
/// ```swift
/// do {
///     print(try coordinator.snapshot(owner: "report").generation)
/// } catch SnapshotError.overBudget(let older) {
///     for snapshot in older { print(snapshot) }
/// }
/// ```
public enum SnapshotError: Error, Sendable, CustomStringConvertible {
    /// The budget refuses new snapshots while these snapshots are in use.
    case overBudget([LiveSnapshot])

    /// The snapshots that exceed the budget, and the remedy.
    public var description: String {
        switch self {
        case .overBudget(let snapshots):
            "cannot take a snapshot: other snapshots exceed the budget: "
                + snapshots.map(\.description).joined(separator: "; ") + ". Release them, or advance their contexts."
        }
    }
}
