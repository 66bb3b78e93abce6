import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

extension SQLiteStore {
    /// Copies the store with SQLite's backup API, in one read transaction of a separate connection.
    /// - Throws: `StoreError` `.cannotOpen` if the file exists or is this store's file, `.full`, `.inputOutput`, `.damaged`;
    ///   `.inUseElsewhere` if a process has the file to replace open, or if the store is read without locks and another process writes it
    ///   meanwhile; `CancellationError`.
    public func backup(to url: URL, existing: ExistingFile, cancellation: Cancellation) throws -> Generation {
        let target = try StoreFile.resolved(url).path
        guard !StoreFile.areSamePaths(target, path) else {
            throw StoreError(.cannotOpen, "cannot back up \(path) to itself: the store is open. Choose another name")
        }
        let partial = try PartialFile(for: url, existing: existing, like: path)
        defer { partial.discard() }
        let generation = try pool.withSeparate { try SQLiteCopy.make(from: $0, to: partial, cancellation) }
        try cancellation.check()
        try SQLiteCopy.name(partial)
        return generation
    }

    /// Copies the store to a file in the temporary folder first, because SQLite writes its pages in no fixed order.
    public func backup(to descriptor: Int32, cancellation: Cancellation) throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")
        let partial = try PartialFile(for: url, existing: .refuse, like: path)
        defer { partial.discard() }
        _ = try pool.withSeparate { try SQLiteCopy.make(from: $0, to: partial, cancellation) }
        let source = try FileHandle(forReadingFrom: URL(fileURLWithPath: partial.path))
        let target = OpenFile(descriptor: descriptor)
        do {
            try withoutBrokenPipeSignal {
                while let part = try source.read(upToCount: 1 << 18), !part.isEmpty {
                    try cancellation.check()
                    try part.withUnsafeBytes { try target.write($0) }
                }
            }
        } catch let error as CancellationError {
            throw error
        } catch let error as SystemError where error.isDiskFull {
            throw StoreError(error, "a copy of \(path) cannot be written")
        } catch {
            throw StoreError(.inputOutput, "cannot write a copy of \(path): \(error). Check the process that reads it")
        }
    }
}
