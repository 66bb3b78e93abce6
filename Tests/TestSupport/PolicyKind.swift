import ObjectGraph

/// The merge policies without a closure, as test arguments.
public enum PolicyKind: String, CaseIterable, Sendable {
    case error, storeTrump, objectTrump, overwrite, rollback

    public var mergePolicy: MergePolicy {
        switch self {
        case .error: .error
        case .storeTrump: .storeTrump
        case .objectTrump: .objectTrump
        case .overwrite: .overwrite
        case .rollback: .rollback
        }
    }

    /// Whether the policy keeps the store's values where both sides changed them.
    public var prefersStore: Bool { self == .storeTrump || self == .rollback }
}
