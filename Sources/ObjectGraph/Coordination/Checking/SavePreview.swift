import StoreInterface

/// What a save would do, found out without doing it (S065).
public struct SavePreview: Sendable {
    /// What would be written, after merging; its generation is the one that the save would get. Empty when there is nothing to save, or
    /// when the save would fail.
    public var changes: ChangeSet
    /// Every object that was changed here and in the store since it was read, whatever the merge policy makes of it.
    public var conflicts: [MergeConflict]
    /// What the save would throw; nil when it would succeed.
    public var failure: (any Error)?

    public init(changes: ChangeSet = ChangeSet(), conflicts: [MergeConflict] = [], failure: (any Error)? = nil) {
        self.changes = changes
        self.conflicts = conflicts
        self.failure = failure
    }
}
