/// What went wrong in a store: a code to switch on, a line that names the thing, the reason and the remedy.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    public enum Code: String, Sendable, Hashable {
        case cannotOpen, notAStore, damaged, formatTooNew, schemaMismatch, schemaTooNew, inUseElsewhere
        case full, readersFull, readOnly, remoteFileSystem, usedAfterFork, closed, unsupported, inputOutput
        case valueTooLarge, internalInconsistency
    }

    public var code: Code
    public var message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
