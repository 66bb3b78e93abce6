import StoreInterface

/// A state of the store that somebody still reads, and what that costs (S152).
public struct LiveSnapshot: Sendable, Hashable, CustomStringConvertible {
    /// Contexts by name, and snapshots that are kept, by the name that they were taken under. Empty for what live results, running
    /// fetches or another process hold.
    public var owners: [String]
    public var processID: Int32
    /// Since when the store has been read in this state; nil for another process's, which does not say.
    public var age: Duration?
    /// nil for another process's.
    public var generation: Generation?
    /// Bytes of the file that cannot be used anew while the snapshot lives, if it were the only one; nil where the store does not
    /// know. On LMDB: the pages that commits after it have freed, read from the list of free pages.
    public var bytesRetained: Int?
    /// Whether it is the newest state, which every new context reads.
    public var isNewest: Bool

    public var description: String {
        let who =
            owners.isEmpty ? (age == nil ? "process \(processID)" : "live results or reads") : owners.joined(separator: ", ")
        let since = age.map { ", for \($0.formattedSeconds)" } ?? ""
        let what = generation.map { "save \($0)" } ?? "an older state"
        return "\(who): \(what)\(since), \(bytesRetained.map { "\($0) bytes" } ?? "an unknown number of bytes") retained"
    }
}

extension Duration {
    /// Seconds with one decimal.
    fileprivate var formattedSeconds: String {
        let tenths = components.seconds * 10 + components.attoseconds / 100_000_000_000_000_000
        return "\(tenths / 10).\(tenths % 10) s"
    }
}

/// What snapshots may cost before something is done about them. Whatever is done is logged as a warning too.
public struct SnapshotBudget: Sendable, Hashable {
    public struct Response: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Contexts without unsaved changes that read a state over the budget are moved to the newest one, those that were pinned
        /// or made to read it too. Contexts with unsaved changes stay.
        public static let advanceCleanContexts = Response(rawValue: 1)
        /// `coordinator.snapshot()` throws ``SnapshotError`` while a state over the budget is held.
        public static let refuseNewSnapshots = Response(rawValue: 2)
    }

    /// How long a state may be read after newer ones have come.
    public var maximumAge: Duration?
    /// How many bytes of the file a state may keep from reuse.
    public var maximumBytes: Int?
    /// Beside the warning.
    public var responses: Response

    public init(maximumAge: Duration? = nil, maximumBytes: Int? = nil, responses: Response = []) {
        self.maximumAge = maximumAge
        self.maximumBytes = maximumBytes
        self.responses = responses
    }

    func isExceeded(by snapshot: LiveSnapshot) -> Bool {
        guard !snapshot.isNewest else { return false }
        if let maximumAge, let age = snapshot.age, age > maximumAge { return true }
        if let maximumBytes, let bytes = snapshot.bytesRetained, bytes > maximumBytes { return true }
        return false
    }
}

/// Why a snapshot was not given.
public enum SnapshotError: Error, Sendable, CustomStringConvertible {
    /// The budget refuses new snapshots while these are held.
    case overBudget([LiveSnapshot])

    public var description: String {
        switch self {
        case .overBudget(let snapshots):
            "no new snapshot while older ones exceed the budget: "
                + snapshots.map(\.description).joined(separator: "; ") + "; let go of them, or move their contexts on"
        }
    }
}
