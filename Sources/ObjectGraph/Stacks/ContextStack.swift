/// The arrangement of a container's contexts over the store.
///
/// ```swift
/// let nested = try await PersistentContainer(for: Track.self, Album.self, store: .lmdb(file), stack: .nested)
/// let draft = nested.newBackgroundContext(name: "draft")  // a child of the main context
/// ```
public enum ContextStack: String, Sendable, Hashable, CaseIterable {
    /// The main context is a root. Background contexts are its children.
    case nested
    /// A private root context has the main context as its child. Background contexts are children of the main context.
    case masterMainWorker
    /// The main context and background contexts are roots on one coordinator. The main context merges each save.
    case siblings
    /// Two coordinators share one file. Background contexts save through the second, and the main context merges their saves.
    case split
    /// As `masterMainWorker`, with batch contexts on a coordinator of their own.
    case hybrid
}
