/// The way that contexts read from a store.
public enum Routing: String, Sendable, Hashable, CaseIterable {
    /// Each context reads layers over a snapshot. No reader waits for another reader or a writer.
    case snapshot
    /// Each request goes through every ancestor's executor to the coordinator's single connection, as in Core Data.
    case ancestors
}
