#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The identity of the store that an object belongs to: the UUID in the file, interned to a small number that is unique in
/// the process.
///
/// ```swift
/// let isSameStore = first.id.store == second.id.store
/// ```
public struct StoreIdentity: Sendable, Hashable {
    /// A small number that stands for ``uuid`` in this process. It differs from run to run and must not be stored.
    public let number: UInt32
    /// The UUID that is stored with the data. O(1), under a lock.
    public var uuid: UUID { StoreIdentityTable.uuid(of: number) }

    /// Creates the identity of a UUID. Equal UUIDs have equal identities within a process.
    public init(_ uuid: UUID) { number = StoreIdentityTable.number(of: uuid) }
}
