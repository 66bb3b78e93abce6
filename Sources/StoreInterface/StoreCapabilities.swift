import StoreModel

/// The abilities of a store beyond the requirements of ``ObjectStore`` that have no default.
///
/// The layer above asks once, when it opens the store. A capability that a store leaves out is never asked of it.
public struct StoreCapabilities: OptionSet, Sendable, Hashable {
    /// The capabilities, one bit each.
    public let rawValue: UInt32

    /// Creates a set of capabilities from its bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Deferred saves wait in memory, as layers over the newest snapshot, until the layer above writes them with
    /// ``Durability/durable``. The right choice if every commit costs a sync or a network round trip.
    ///
    /// A store without this capability gets every save at once, and has a commit of its own for ``Durability/deferred(within:)``.
    /// It survives a crash of the process, but perhaps not a power failure.
    public static let layeredDeferral = StoreCapabilities(rawValue: 1 << 0)
    /// Other processes or other objects can save to the store: ``ObjectStore/mayHaveCommitted(after:)``,
    /// ``ObjectStore/watch(_:)`` and ``ObjectStore/claimSaves(_:)``.
    public static let externalSaves = StoreCapabilities(rawValue: 1 << 1)
    /// ``ObjectStore/history(after:limit:)`` returns the saves of the past.
    ///
    /// A store without a history returns nil. Contexts that are far behind then refresh all their objects.
    public static let history = StoreCapabilities(rawValue: 1 << 2)
    /// ``ObjectStore/backup(to:existing:cancellation:)``.
    public static let backup = StoreCapabilities(rawValue: 1 << 3)
    /// ``ObjectStore/compact(_:progress:)`` and ``ObjectStore/compactCopy(to:progress:)``.
    public static let compaction = StoreCapabilities(rawValue: 1 << 4)
}

/// The time at which a save reaches the disk, which decides what a crash may lose.
///
/// On LMDB, deferred saves wait in memory: those that are not on disk yet are lost if the process crashes or is killed, or in a power
/// failure, each one whole. On SQLite, only a power failure loses them.
///
/// ```swift
/// try await context.save(.deferred(within: .seconds(5)))  // visible at once
/// try await container.flush()  // on disk
/// ```
public enum Durability: Sendable, Hashable {
    /// The save is on disk when the call returns.
    case durable
    /// The save is visible at once. It is on disk within the bound, or when `flush()` returns.
    case deferred(within: Duration)

    /// Deferred with the default bound of one second.
    public static var deferred: Durability { .deferred(within: .seconds(1)) }
}

/// Whether the layer above the store keeps deferred saves in memory: see ``StoreCapabilities/layeredDeferral``.
public enum DeferralStyle: Sendable {
    /// The store has only durable commits. Deferred saves wait in memory as layers.
    case layered
    /// The store has a faster commit, which survives a crash of the process but not a power failure.
    case native
}

extension ObjectStore {
    /// The deferral style that corresponds to ``capabilities``.
    @available(*, deprecated, message: "Ask whether capabilities contains .layeredDeferral")
    public var deferralStyle: DeferralStyle { capabilities.contains(.layeredDeferral) ? .layered : .native }
}
