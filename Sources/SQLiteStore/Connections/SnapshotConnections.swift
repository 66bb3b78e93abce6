/// The connections that the snapshots of an SQLite store read on.
package enum SnapshotConnections: Sendable, CaseIterable {
    /// Each snapshot has a connection with an open read transaction. It shows one state, and waits for no write.
    case onePerSnapshot
    /// All snapshots share the connection that writes. They show the newest state, and wait for a running write.
    case sharedWithWriter
}
