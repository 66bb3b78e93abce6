/// The bytes that readers keep from being reused. Each number is computed as if the reader were the only one.
public struct Retention: Sendable, Hashable {
    /// A reader in another process.
    public struct Foreign: Sendable, Hashable {
        public var processID: Int32
        public var bytes: Int?

        public init(processID: Int32, bytes: Int?) {
            self.processID = processID
            self.bytes = bytes
        }
    }

    /// The bytes per snapshot, in the order of the snapshots; nil if unknown.
    public var bytes: [Int?]
    /// The readers in other processes.
    public var foreign: [Foreign]

    public init(bytes: [Int?], foreign: [Foreign] = []) {
        self.bytes = bytes
        self.foreign = foreign
    }
}
