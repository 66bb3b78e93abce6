internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A writer that takes bytes part by part and returns them as one `Data` in an unnamed file, not in memory.
///
///     let writer = try LargeDataWriter(inFolder: folder)
///     for try await part in download { try writer.append(part) }
///     photo.payload = try writer.finish()
///
/// The data is a value like any other: it can be assigned, saved and read. Its bytes come from the system's page cache. Its
/// file is removed with the last copy of the data, also when the process ends.
///
/// The writer is not `Sendable`. Calls block as writing a file does. A store on LMDB writes the value 16 MiB at a time and
/// takes no more memory for it. Other stores need the whole value in memory.
public final class LargeDataWriter {
    /// The maximum size of a stored value: 1 GiB.
    public static let maximumByteCount = 1 << 30

    // Closed by `finish` or by `deinit`.
    private var descriptor: Int32
    private let folder: String
    public private(set) var byteCount = 0

    /// Creates a writer with an unnamed file.
    /// - Parameter folder: The folder of the file, preferably the folder of the store, because the temporary folder may be in
    ///   memory. It must have room for the bytes.
    /// - Throws: `StoreError` `.cannotOpen`.
    public init(inFolder folder: URL) throws {
        self.folder = folder.path.isEmpty ? "." : folder.path
        let path = "\(self.folder)/.strata-data-\(UUID().uuidString)"
        descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            throw StoreError(
                .cannotOpen, "\(self.folder): a file for data cannot be created: \(reason). Check the folder and its permissions")
        }
        // Without a name, the file disappears when the process ends.
        unlink(path)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Appends bytes.
    /// - Throws: `StoreError` `.valueTooLarge` above 1 GiB, `.full`, `.inputOutput`. The bytes written before stay.
    public func append(_ bytes: Data) throws {
        guard byteCount + bytes.count <= Self.maximumByteCount else {
            throw StoreError(
                .valueTooLarge,
                "\(byteCount + bytes.count) bytes are more than a value may have, which is 1 GiB. Divide them among several objects"
            )
        }
        try bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let part = UnsafeRawBufferPointer(rebasing: bytes[written...])
                let count = pwrite(descriptor, part.baseAddress, part.count, off_t(byteCount + written))
                if count > 0 {
                    written += count
                } else if errno != EINTR {
                    throw failure()
                }
            }
        }
        byteCount += bytes.count
    }

    /// Returns all bytes as one value. Afterwards the writer accepts no more bytes.
    /// - Throws: `StoreError` `.inputOutput`.
    public func finish() throws -> Data {
        defer {
            close(descriptor)
            descriptor = -1
        }
        guard byteCount > 0 else { return Data() }
        // The mapping is private and writable: changing the data in place changes only private pages.
        guard let map = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0), map != MAP_FAILED else {
            throw failure()
        }
        return Data(bytesNoCopy: map, count: byteCount, deallocator: .custom { pointer, count in munmap(pointer, count) })
    }

    private func failure() -> StoreError {
        let isFull = errno == ENOSPC || errno == EDQUOT || errno == EFBIG
        let reason = String(cString: strerror(errno))
        return StoreError(
            isFull ? .full : .inputOutput,
            "\(folder): a file for data cannot be written: \(reason). Make room, or give another folder")
    }
}
