#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An error of a store: a code to switch on, and a line that names the file, the reason and the remedy.
///
/// Two errors are equal if their codes, messages and causes are equal. ``location`` does not count.
///
/// ```swift
/// do {
///     try await context.save()
/// } catch let error as StoreError where error.code == .full {
///     show(error.localizedDescription)
/// }
/// ```
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The code of a store's error.
    ///
    /// - `cannotOpen`: The file or its folder cannot be opened, created or found.
    /// - `notAStore`: The file belongs to another program, or is a store of another kind.
    /// - `damaged`: The bytes of the file are not what the store wrote.
    /// - `formatTooNew`: A newer version of the library wrote the file.
    /// - `schemaMismatch`: The file cannot be brought to the model.
    /// - `schemaTooNew`: A newer model wrote the file.
    /// - `inUseElsewhere`: The file is in use in a way that excludes this call.
    /// - `full`: The disk or the map of the file has no room.
    /// - `readersFull`: All reader slots are in use.
    /// - `storeBusy`: Another process holds saves back, or keeps the file locked, and did not finish in time.
    /// - `readOnly`: A write is needed, but the store was opened read-only or this user may not write to the file.
    /// - `remoteFileSystem`: The file is on a file system whose locks and maps cannot be trusted.
    /// - `usedAfterFork`: The store was opened before a fork.
    /// - `closed`: The store was closed.
    /// - `suspended`: The store is suspended, and the call cannot wait until it is resumed.
    /// - `unsupported`: The store cannot do what the call asks for.
    /// - `inputOutput`: A call of the system failed.
    /// - `notOnDisk`: A save is in the file and visible, but a sync has failed, so that a power failure could take it away. Saving again
    ///   would repeat it: call `flush()`, which waits until it is on disk.
    /// - `mustReopen`: An earlier write failed, and the file takes no writes until it is closed and opened again. Closing the container
    ///   writes deferred saves.
    /// - `valueTooLarge`: A value does not fit its column or the store.
    /// - `internalInconsistency`: An invariant of the library was violated.
    public enum Code: String, Sendable, Hashable {
        /// The file was deleted, moved, replaced or overwritten while it was open. Data saved to it would be lost.
        case fileReplaced
        case cannotOpen, notAStore, damaged, formatTooNew, schemaMismatch, schemaTooNew, inUseElsewhere
        case full, readersFull, storeBusy, readOnly, remoteFileSystem, usedAfterFork, closed, suspended, unsupported
        case inputOutput, notOnDisk, mustReopen, valueTooLarge, internalInconsistency
    }

    /// The line of source code that created an error, for bug reports.
    public struct Location: Sendable, Hashable, CustomStringConvertible {
        /// The module and the file, in the form of `#fileID`.
        public let fileID: String
        /// The number of the line, from 1.
        public let line: Int

        /// The file and the line as text: `Module/File.swift:12`.
        public var description: String { "\(fileID):\(line)" }
    }

    /// The kind of failure.
    public var code: Code
    /// One line: what failed, why, and what to do.
    public var message: String
    /// The error of a lower layer that caused this one, such as LMDB's. ``message`` includes its text.
    public var cause: (any Error)?
    /// The line of source code that created the error.
    public let location: Location

    /// - Parameters:
    ///   - code: The kind of error, for programs.
    ///   - message: `<what failed>: <why>. <what to do>`.
    ///   - cause: The error of a lower layer, if there is one.
    ///   - fileID: The file of ``location``.
    ///   - line: The line of ``location``.
    public init(
        _ code: Code, _ message: String, cause: (any Error)? = nil, fileID: String = #fileID, line: Int = #line
    ) {
        self.code = code
        self.message = message
        self.cause = cause
        location = Location(fileID: fileID, line: line)
    }

    /// Returns whether two errors have the same code, message and cause. Ignores ``location``.
    public static func == (a: StoreError, b: StoreError) -> Bool {
        a.code == b.code && a.message == b.message && ErrorComparison.areEqual(a.cause, b.cause)
    }

    /// The message.
    public var description: String { message }

    /// Creates the error for a file that was replaced or is missing.
    /// - Parameter isGone: Whether no file has that name.
    package static func fileReplaced(_ path: String, isGone: Bool) -> StoreError {
        StoreError(
            .fileReplaced,
            "cannot use \(path): it was \(isGone ? "deleted or moved" : "replaced by another file") while it was open. "
                + "\(isGone ? "Move it back, or close" : "Close") the store and open it again, which loses unsaved changes and "
                + "unwritten saves")
    }
}

extension StoreError: LocalizedError {
    /// The message.
    public var errorDescription: String? { message }
}

/// Compares errors of unknown types.
package enum ErrorComparison {
    /// Returns whether two errors are equal, if their type can tell, or else have the same type and the same text.
    package static func areEqual(_ a: (any Error)?, _ b: (any Error)?) -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        if let a = a as? any Equatable { return isEqual(a, b) }
        return type(of: a) == type(of: b) && "\(a)" == "\(b)"
    }

    private static func isEqual<T: Equatable>(_ a: T, _ b: any Error) -> Bool { b as? T == a }
}

extension StoreError {
    /// The error of every call after the store was closed.
    package static func closed(_ name: String) -> StoreError {
        StoreError(.closed, "cannot use \(name): it was closed. Open it again")
    }

    /// The error of closing or suspending a store that is still being read.
    package static func stillRead(_ name: String, readers: Int, verb: String = "close") -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot \(verb) \(name): \(readers) reads are still running, such as streams or a backup. End them, and \(verb) it again"
        )
    }

    /// The error of a call that cannot wait until the store is resumed.
    package static func suspended(_ name: String) -> StoreError {
        StoreError(.suspended, "cannot use \(name): it is suspended. Call resume() of its container first")
    }

    /// The error of writing to a store that was opened read-only.
    package static func openReadOnly(_ name: String) -> StoreError {
        StoreError(.readOnly, "cannot write to \(name): it was opened read-only. Open it without readOnly to write")
    }

    /// The error of opening read-only a file that would have to be changed first.
    package static func needsMigration(_ path: String) -> StoreError {
        StoreError(
            .readOnly,
            "cannot open \(path) read-only: its model differs from this one, so that the file would have to be migrated. Open it once "
                + "for writing, or with the model that it was written with")
    }

    /// The error of a migration that would make columns unique although two objects share their values.
    /// - Parameters:
    ///   - values: The shared values, in the order of the columns.
    ///   - store: The beginning of object ids in the message: `strata://UUID`.
    package static func duplicate(
        _ values: [Value], of columns: [ColumnIndex], entity: EntityIndex, in schema: StoreSchema, keys: [ObjectKey],
        store: String,
        path: String
    ) -> StoreError {
        let definition = schema.entities[entity]
        let name = columns.map { definition.columns[$0].name }.joined(separator: "+")
        let ids = keys.map { "\(store)/\(entity)/\($0)" }.joined(separator: " and ")
        let text = values.count == 1 ? "\(values[0])" : "\(values)"
        return StoreError(
            .schemaMismatch,
            "\(path): \(definition.name).\(name) must be unique, but \(text) is the value of \(ids). The file is unchanged. Change one "
                + "of these objects with the previous model, then open the file again")
    }

    package static func noFileToRead(_ path: String) -> StoreError {
        StoreError(.cannotOpen, "cannot open \(path) read-only: there is no file. Check the path, or open it for writing")
    }

    package static func emptyFileToRead(_ path: String) -> StoreError {
        StoreError(.cannotOpen, "cannot open \(path) read-only: it is empty. Check the path, or open it for writing")
    }

    package static func unfinishedFileToRead(_ path: String) -> StoreError {
        StoreError(
            .readOnly,
            "cannot open \(path) read-only: the process that created it ended before it wrote the tables. Open it once for writing"
        )
    }

    /// The error of opening a file that a newer model of the same version has written, which was derived from this model.
    public static func olderModel(_ path: String) -> StoreError {
        StoreError(
            .schemaTooNew,
            "cannot open \(path): it was written by a newer model than this one. Update the program. To go back on purpose, give "
                + "the model a higher version, and name what only the newer model has in allowsDataLoss")
    }
}
