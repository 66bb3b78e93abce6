/// How the contexts of a container stand to each other and to the store: the topologies of the field.
public enum ContextStack: String, Sendable, Hashable, CaseIterable {
    /// The main context on the coordinator, background contexts its children.
    case nested
    /// A private master on the coordinator, the main context its child, workers children of main.
    case masterMainWorker
    /// The main context and background contexts side by side on one coordinator, merged after each save.
    case siblings
    /// Two coordinators on one file; background contexts import on the second, the main one merges.
    case split
    /// `masterMainWorker`, and batch contexts on a coordinator of their own.
    case hybrid
}
