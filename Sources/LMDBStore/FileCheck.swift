import LMDB
import StoreInterface

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What a file must show before LMDB, which trusts every byte, may map it.
enum FileCheck {
    /// Pages at the end of a file that are not there. Sound only when each is free: LMDB does not write pages that one
    /// transaction took and gave back.
    struct Gap {
        var firstMissing: UInt64
        var last: UInt64
        var byteCount: UInt64

        /// - Throws: `.damaged` when a missing page is in use. The file gets its old size back.
        func checkFree(in environment: Environment, path: String) throws {
            var missing = Set(firstMissing...last)
            do {
                try ReadTransaction(environment).withCursor(.free) { cursor in
                    while let entry = try cursor.move(.next) {
                        for offset in stride(from: 8, to: entry.value.count & ~7, by: 8) {
                            missing.remove(entry.value.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                        }
                    }
                }
            } catch {
                truncate(path, off_t(byteCount))
                throw error
            }
            guard !missing.isEmpty else { return }
            truncate(path, off_t(byteCount))
            throw FileCheck.tooShort(path, byteCount)
        }
    }

    /// - Returns: missing pages that are to be checked once the file is open; it has been lengthened, so that they can be mapped.
    static func beforeOpening(_ path: String, _ check: LMDBStore.Options.OpeningCheck) throws -> Gap? {
        guard try FileIdentity.of(path: path) != nil else { return nil }
        switch try MetaPages.read(path: path) {
        case .empty: return nil
        case .notLMDB(let reason): throw StoreError(.notAStore, "\(path) is not a store: \(reason). Check the path")
        case .damaged(let reason): throw StoreError(.damaged, "\(path) is damaged: \(reason). Restore a copy")
        case .otherVersion(let version):
            throw StoreError(
                .formatTooNew,
                "\(path) was written by a line of LMDB with file format \(version); this library uses \(MetaTable.libraryLine), "
                    + "which reads 1. Export it there and import it here")
        case .sound(let meta):
            let gap = try gap(path, meta)
            do {
                try checkTrees(path, check == .everything ? .everything : .roots)
            } catch {
                if let gap { truncate(path, off_t(gap.byteCount)) }
                throw error
            }
            return gap
        }
    }

    /// Opening reads the main tree and the roots of the others: LMDB would crash on what is wrong there.
    private static func checkTrees(_ path: String, _ scope: TreeCheck.Scope) throws {
        // Other processes may write meanwhile; then their commit is looked at.
        for _ in 0..<8 {
            guard let findings = try TreeCheck.findings(path: path, scope: scope) else { continue }
            guard let first = findings.first else { return }
            throw StoreError(.damaged, "\(path) is damaged: \(first). Restore a copy")
        }
    }

    private static func gap(_ path: String, _ meta: MetaPages) throws -> Gap? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        let byteCount = UInt64(status.st_size)
        guard byteCount < meta.expectedByteCount else { return nil }
        let firstMissing = byteCount / UInt64(meta.pageSize)
        // More than this is never a tail of free pages, and would take long to check.
        guard meta.lastPage - firstMissing < 1 << 16, firstMissing >= 2 else { throw tooShort(path, byteCount) }
        guard truncate(path, off_t(meta.expectedByteCount)) == 0 else {
            throw StoreError(
                .cannotOpen, "\(path) cannot be lengthened: \(String(cString: strerror(errno))). Check rights and disk")
        }
        return Gap(firstMissing: firstMissing, last: meta.lastPage, byteCount: byteCount)
    }

    private static func tooShort(_ path: String, _ byteCount: UInt64) -> StoreError {
        StoreError(.damaged, "\(path) is damaged: it ends after \(byteCount) bytes, before the last page in use. Restore a copy")
    }
}

extension StoreError {
    /// As the general translation, where opening tells more.
    init(opening error: LMDBError, path: String) {
        switch error.code {
        case .system(ENOENT):
            self.init(.cannotOpen, "\(path) cannot be created: its folder does not exist. Create the folder")
        case .permission:
            self.init(.readOnly, "\(path) cannot be written, nor its lock file: \(error)")
        case .system(EAGAIN), .system(EBUSY):
            self.init(.inUseElsewhere, "\(path) is in use: \(error). Close it there")
        case .system:
            self.init(.cannotOpen, "\(path) cannot be opened: \(error)")
        default:
            self.init(error, path: path)
        }
    }
}
