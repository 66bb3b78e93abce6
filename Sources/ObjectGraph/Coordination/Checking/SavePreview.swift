import StoreInterface
import StoreModel

/// The result that a save would have, found without saving (S065).
///
/// ```swift
/// let preview = await context.previewSave()
/// if preview.conflicts.isEmpty && preview.failure == nil { try await context.save() }
/// ```
public struct SavePreview: Sendable {
    /// The changes that would be written, after merging. Its generation is the one that the save would have.
    ///
    /// Empty if there is nothing to save, or if the save would fail.
    public var changes: ChangeSet
    /// Every object that was changed both in the context and in the store, even if the merge policy resolves the conflict.
    public var conflicts: [MergeConflict]
    /// The error that the save would throw; nil if it would succeed.
    public var failure: (any Error)?
    /// The schema of the store, for the names of entities; nil in a preview that a program has made.
    var schema: StoreSchema?

    /// Creates a preview. By default, it is that of a save with no changes.
    public init(changes: ChangeSet = ChangeSet(), conflicts: [MergeConflict] = [], failure: (any Error)? = nil) {
        self.changes = changes
        self.conflicts = conflicts
        self.failure = failure
    }
}

extension SavePreview: CustomStringConvertible {
    /// The changes that would be written, the conflicts, and the error that the save would throw.
    public var description: String {
        let names = schema?.entities.map(\.name) ?? []
        let text = changes.description(naming: { $0.rawValue < names.count ? names[$0.rawValue] : "entity \($0)" })
        let parts = [failure.map { "the save would fail: \($0)" } ?? text] + conflicts.map(\.description)
        return parts.joined(separator: "; ")
    }
}
