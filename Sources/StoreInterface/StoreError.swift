/// What went wrong in a store: a code to switch on, a line that names the thing, the reason and the remedy.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    public enum Code: String, Sendable, Hashable {
        /// The file was deleted, moved or replaced while it was open: what is saved would reach nobody.
        case fileReplaced
        case cannotOpen, notAStore, damaged, formatTooNew, schemaMismatch, schemaTooNew, inUseElsewhere
        case full, readersFull, storeBusy, readOnly, remoteFileSystem, usedAfterFork, closed, unsupported, inputOutput
        case valueTooLarge, internalInconsistency
    }

    public var code: Code
    public var message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }

    /// - Parameter isGone: whether there is no file of that name.
    package static func fileReplaced(_ path: String, isGone: Bool) -> StoreError {
        StoreError(
            .fileReplaced,
            "\(path) cannot be saved to: it was \(isGone ? "deleted or moved" : "replaced by another file") while it was open. "
                + "Close the store and open it again; what was not saved is lost then")
    }
}

extension StoreError {
    /// A file came from this very model to a newer one of the same version.
    public static func olderModel(_ path: String) -> StoreError {
        StoreError(
            .schemaTooNew,
            "\(path) was written by a newer model, which came after this one. Update the program. To go back on purpose, give "
                + "the model a higher version, and name what only the newer model has in allowsDataLoss")
    }
}
