import StoreModel
internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A writer that takes bytes part by part and returns them as one `Data` in an unnamed file, not in memory.
///
/// ```swift
/// let writer = try LargeDataWriter(inFolder: folder)
/// for await part in download { try writer.append(part) }
/// track["recording"] = .data(try writer.finish())
/// ```
///
/// The data is a value like any other: it can be assigned, saved and read. Its bytes come from the system's page cache. Its
/// file is removed with the last copy of the data, also when the process ends.
///
/// The writer is not `Sendable`. Calls block as writing a file does. A store on LMDB writes the value 16 MiB at a time and
/// takes no more memory for it. Other stores need the whole value in memory.
public final class LargeDataWriter {
    /// The maximum size of a stored value: 1 GiB.
    public static let maximumByteCount = Value.maximumByteCount

    /// nil after `finish`, which closes the file.
    private var file: OpenFile?
    private let folder: String
    /// The number of bytes appended so far.
    public private(set) var byteCount = 0

    /// Creates a writer with an unnamed file.
    /// - Parameter folder: The folder of the file, preferably the folder of the store, because the temporary folder may be in
    ///   memory. It must have room for the bytes.
    /// - Throws: `StoreError` `.cannotOpen`.
    public init(inFolder folder: URL) throws {
        self.folder = folder.path.isEmpty ? "." : folder.path
        let path = "\(self.folder)/.strata-data-\(UUID().uuidString)"
        do throws(SystemError) {
            file = try OpenFile(path, access: .readAndWrite, options: [.create, .exclusive])
        } catch {
            throw StoreError(
                .cannotOpen, "\(self.folder): a file for data cannot be created: \(error). Check the folder and its permissions")
        }
        // Without a name, the file disappears when the process ends.
        try? FileSystem.remove(path)
    }

    deinit { file?.close() }

    /// Appends bytes.
    /// - Throws: `StoreError` `.valueTooLarge` above 1 GiB, `.full`, `.inputOutput`. The bytes written before stay.
    public func append(_ bytes: Data) throws {
        guard byteCount + bytes.count <= Self.maximumByteCount else {
            throw StoreError(
                .valueTooLarge,
                "\(byteCount + bytes.count) bytes are more than a value may have, which is 1 GiB. Divide them among several objects"
            )
        }
        guard let file else { throw failure(.badDescriptor) }
        do {
            try bytes.withUnsafeBytes { try file.write($0, at: byteCount) }
        } catch let error as SystemError {
            throw failure(error)
        }
        byteCount += bytes.count
    }

    /// Returns all bytes as one value. Afterwards the writer accepts no more bytes.
    /// - Throws: `StoreError` `.inputOutput`.
    public func finish() throws -> Data {
        guard let file else { throw failure(.badDescriptor) }
        defer {
            file.close()
            self.file = nil
        }
        guard byteCount > 0 else { return Data() }
        do throws(SystemError) {
            // The mapping is private and writable: changing the data in place changes only private pages.
            let map = try file.mapPrivately(byteCount: byteCount)
            return Data(
                bytesNoCopy: map, count: byteCount,
                deallocator: .custom { AddressSpace.unmap($0, byteCount: $1) })
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: SystemError) -> StoreError {
        StoreError(
            error.isDiskFull ? .full : .inputOutput,
            "\(folder): a file for data cannot be written: \(error). Make room, or give another folder")
    }
}
