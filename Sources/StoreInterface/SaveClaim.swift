import StoreModel

/// The kind of right that a process acquires on a store's file before it saves.
public enum SaveClaimKind: Sendable {
    /// The right to commit. Several processes can have such a claim; the store's transaction orders their commits.
    case committing
    /// The right to acknowledge saves before they are committed. While a process has this claim, no other process has any
    /// claim.
    case holdingBack
}

/// The right of a process to save, until it is released or deallocated.
public protocol SaveClaim: AnyObject, Sendable {
    /// A Boolean value that indicates whether another process waits for the claim. Costs one system call.
    var isWanted: Bool { get }
    /// Releases the claim. A second call does nothing.
    func release()
}
