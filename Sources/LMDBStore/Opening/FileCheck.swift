import LMDB
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// The checks of a file before LMDB, which trusts every byte, may map it.
enum FileCheck {
    /// Checks a file without changing it. Other processes may write meanwhile.
    /// - Parameter isWritten: Whether another process has the file open. It then has checked the file itself, and the file may have pages
    ///   that no commit has yet.
    static func beforeOpening(_ path: String, _ check: LMDBStore.Options.OpeningCheck, isWritten: Bool = false) throws {
        guard try FileIdentity.of(path: path) != nil else { return }
        try StoreFile.checkSingleName(path)
        guard try checkMetaPages(path) else { return }
        try checkTrees(path, check == .everything ? .everything : .roots, isWritten: isWritten)
        // A process that has the file open has made this check itself, and may be overwriting pages of the older commit.
        if !isWritten { try checkOlderCommit(path) }
    }

    /// Throws if the first two pages of a file are not those of a store. Returns false for an empty file.
    @discardableResult
    static func checkMetaPages(_ path: String) throws -> Bool {
        switch try MetaPages.read(path: path) {
        case .empty: return false
        case .notLMDB(let reason): throw StoreError(.notAStore, "\(path) is not a store of LMDB: \(reason). Check the path")
        case .damaged(let reason): throw StoreError(.damaged, "\(path) is damaged: \(reason). Restore a copy")
        case .otherVersion(let version):
            throw StoreError(
                .formatTooNew,
                "\(path) was written by a line of LMDB with file format \(version); this library uses \(MetaTable.libraryLine), "
                    + "which reads 1. Export it there and import it here")
        case .sound: return true
        }
    }

    /// Throws if the older meta page leads to the commit after the newest one. A flipped bit of that commit's number can make it the commit
    /// before the newest one, and the file would silently be opened without its last save.
    ///
    /// LMDB leaves the same page if the disk refuses to write a meta page, and then accepts its old number. That save was reported as failed.
    /// The two cases cannot be told apart if the file has the same length. In a longer file, only the second one is possible.
    private static func checkOlderCommit(_ path: String) throws {
        guard let older = try TreeSalvage(olderCommitOf: path) else { return }
        defer { older.close() }
        // A copy begins again with commit 1, and its row still has the number of the commit that was copied.
        guard older.transactionNumber > 1, let meta = older.trees[MetaTable.name] else { return }
        var written: UInt64?
        _ = try older.forEachEntry(of: meta) { key, value in
            if key.elementsEqual(MetaTable.Key.check.utf8) { written = MetaCheck.commit(of: value) }
        }
        guard let written, written == older.transactionNumber + 2, try older.isCurrent() else { return }
        throw StoreError(
            .damaged,
            "\(path) is damaged: a meta page leads to commit \(written), but says that it is commit \(older.transactionNumber). A bit of "
                + "that number is wrong, or the disk failed during that commit. Restore a copy, or keep the commit before it with "
                + "`strata repair`")
    }

    /// Checks the trees that opening reads. LMDB would crash on damage there.
    private static func checkTrees(_ path: String, _ scope: TreeCheck.Scope, isWritten: Bool) throws {
        // Other processes may write meanwhile. In that case, their commit is checked.
        for _ in 0..<8 {
            guard
                let findings = try TreeCheck.findings(
                    path: path, scope: scope, readAtOpening: MetaTable.name, isWritten: isWritten)
            else { continue }
            guard let first = findings.first else { return }
            throw StoreError(.damaged, "\(path) is damaged: \(first). Restore a copy")
        }
    }
}

extension StoreError {
    /// Converts an error of LMDB like the general conversion, with more detail for errors of opening.
    init(opening error: LMDBError, path: String) {
        switch error.code {
        case .system(SystemError.notFound.number):
            self.init(.cannotOpen, "\(path) cannot be created: its folder does not exist. Create the folder")
        case .permission:
            self =
                FilePermission.failure(path, companions: LMDBStore.companions, isReadOnly: false)
                ?? StoreError(
                    .readOnly,
                    "cannot open \(path) for writing: \(error). Check its permissions, or open it with readOnly: true")
        case .system(SystemError.tryAgain.number), .system(SystemError.busy.number):
            self.init(.inUseElsewhere, "\(path) is in use: \(error). Close it there")
        case .system:
            self.init(.cannotOpen, "\(path) cannot be opened: \(error)")
        default:
            self.init(error, path: path)
        }
    }
}
