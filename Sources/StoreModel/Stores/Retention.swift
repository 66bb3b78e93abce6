/// The bytes that readers keep from being reused. Each number is computed as if the reader were the only one.
public struct Retention: Sendable, Hashable {
    /// A reader in another process.
    public struct Foreign: Sendable, Hashable {
        /// The id of the process.
        public var processID: Int32
        /// The number of bytes of the file that the reader keeps from being reused; nil if unknown.
        public var bytes: Int?
        /// A Boolean value that indicates whether the reader reads the newest state, which keeps nothing from being reused.
        public var isNewest: Bool

        /// Creates a reader in another process.
        public init(processID: Int32, bytes: Int?, isNewest: Bool = false) {
            self.processID = processID
            self.bytes = bytes
            self.isNewest = isNewest
        }
    }

    /// The bytes per snapshot, in the order of the snapshots; nil if unknown.
    public var bytes: [Int?]
    /// The readers in other processes.
    public var external: [Foreign]

    /// Creates the numbers of a store. `bytes` has one element per snapshot.
    public init(bytes: [Int?], external: [Foreign] = []) {
        self.bytes = bytes
        self.external = external
    }
}
