internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Takes bytes part by part and gives them as one `Data` that lies in a file without a name, not in memory.
///
///     let writer = try LargeDataWriter(inFolder: folder)
///     for try await part in download { try writer.append(part) }
///     photo.payload = try writer.finish()
///
/// The data is a value like others: it can be assigned, saved and read. Its bytes come from the system's page cache, and its file goes with
/// the last copy of it, also when the process ends. Not `Sendable`; calls block as writing a file does. A store on
/// LMDB writes the value 16 MiB at a time and takes no more memory for it; other stores take the value whole.
public final class LargeDataWriter {
    /// 1 GiB: what a value of a store may have.
    public static let maximumByteCount = 1 << 30

    // Right because it is closed in `deinit`, or given up in `finish`.
    private var descriptor: Int32
    private let folder: String
    public private(set) var byteCount = 0

    /// - Parameter folder: where the file has its bytes, best the store's own; the temporary folder may lie in memory. It must have room for them.
    /// - Throws: `StoreError` `.cannotOpen`.
    public init(inFolder folder: URL) throws {
        self.folder = folder.path.isEmpty ? "." : folder.path
        let path = "\(self.folder)/.strata-data-\(UUID().uuidString)"
        descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            throw StoreError(
                .cannotOpen, "\(self.folder): a file for data cannot be made: \(reason). Check the folder and its rights")
        }
        // From here on nothing is left of it when the process ends.
        unlink(path)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Adds bytes at the end.
    /// - Throws: `StoreError` `.valueTooLarge` past 1 GiB, `.full`, `.inputOutput`; what was there stays.
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

    /// All bytes as one value. The writer takes no more then.
    /// - Throws: `StoreError` `.inputOutput`.
    public func finish() throws -> Data {
        defer {
            close(descriptor)
            descriptor = -1
        }
        guard byteCount > 0 else { return Data() }
        // Private and writable: who changes the data in place changes pages of its own.
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
