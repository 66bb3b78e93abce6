import LMDB
internal import Platform
import StoreInterface
import StoreModel

/// Running a write transaction, and repeating it after repairable failures.
extension LMDBStore {
    /// Runs `body`, which writes. If LMDB refuses all transactions because an earlier write has failed, opens the file again and
    /// repeats `body`. LMDB must not open a file twice, so this waits a tenth of a second for snapshots of this process. The
    /// caller must have acquired the writing lock.
    /// - Throws: The error of `body`, also if snapshots are referenced for longer.
    func reopeningIfUnusable<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as StoreError where error.code == .mustReopen {
            guard try waitingForSnapshots(closeIfUnread) else { throw error }
            try reopen()
            return try body()
        }
    }

    /// Runs `body` in the write transaction. Large values that are too much for one transaction's memory are written before
    /// it. The caller must have acquired the writing lock.
    func writeBounded<R>(_ body: (LMDBTransaction) throws -> R) throws -> R {
        if counters.mayHaveUnreferenced.load(ordering: .relaxed) { collectUnreferenced() }
        var ahead: PrewrittenValues?
        defer { ahead?.finish() }
        while true {
            do {
                return try writeAlone(ahead: ahead, body)
            } catch let late as OversizedValues {
                let values = ahead ?? PrewrittenValues(self)
                ahead = values
                try values.write(late)
            }
        }
    }

    /// Runs `body` in one transaction, and again if the map has to grow. The caller must have acquired the writing lock.
    /// - Throws: ``OversizedValues`` if `body` has more large values than one transaction may write.
    func writeAlone<R>(ahead: PrewrittenValues?, _ body: (LMDBTransaction) throws -> R) throws -> R {
        while true {
            var cause: LMDBError?
            do {
                return try writeOnce(ahead, body: body, cause: &cause)
            } catch {
                guard let reason = cause ?? error as? LMDBError else { throw error }
                if reason.call == .commit { counters.hasFailedCommit.store(true, ordering: .relaxed) }
                switch reason.code {
                case .mapFull: guard try mappingErrors(grow) else { throw StoreError.full(self) }
                case .mapResized:
                    guard try mappingErrors(adoptSize) else { throw StoreError.outgrown(self) }
                default: throw error is LMDBError ? StoreError(reason, path: path) : error
                }
            }
        }
    }

    /// Runs `body` in one transaction, once. Checks the file's name before it, so that a save that is tried again and again costs
    /// little, and before the commit.
    /// - Parameter cause: Set to LMDB's error inside `body`, even if `body` catches it.
    private func writeOnce<R>(
        _ ahead: PrewrittenValues?, body: (LMDBTransaction) throws -> R, cause: inout LMDBError?
    ) throws -> R {
        var saved: Generation?
        var claimed = 0
        var isChanged = false
        try checkFileIdentity()
        let result = try environment.write { transaction in
            let opened = try LMDBTransaction(self, transaction, ahead: ahead)
            defer { cause = opened.large.late.isEmpty ? opened.failure as? LMDBError : nil }
            let before = opened.generation
            let outcome = Result { try body(opened) }
            // Any outcome is discarded: `body` ran without those values.
            if let late = opened.large.lateValues { throw late }
            let result = try outcome.get()
            try checkFileIdentity()
            // Part of a layer may have been written. It must not be committed, even if `body` caught the error.
            if let failure = opened.failure { throw failure }
            if opened.generation != before {
                saved = opened.generation
                // A caller that saves reads the new state next. Without a reader slot for that, nothing is saved.
                try environment.reserveReader()
            }
            claimed = opened.large.claimed
            if format > 1, transaction.isChanged { try MetaCheck.write(tables.meta, in: transaction) }
            isChanged = transaction.isChanged
            return result
        }
        if isChanged { counters.hasFailedCommit.store(false, ordering: .relaxed) }
        ahead?.didCommit(claimed: claimed)
        if let saved {
            noteNewest(saved)
            signal.send(saved)
        }
        return result
    }

    /// Checks that the file still has its name, because writes to a deleted or replaced file would be lost. One `stat`.
    /// - Throws: `StoreError` `.fileReplaced`.
    func checkFileIdentity() throws {
        let found = try? FileIdentity.of(path: path)
        guard found != file else { return }
        throw StoreError.fileReplaced(path, isGone: found == nil)
    }

    /// Doubles the map. Returns false if the map has its maximum size, or while snapshots of this process are referenced,
    /// because they use the map. Waits a tenth of a second for them.
    private func grow() throws -> Bool {
        let size = try environment.information().mapSize
        let largest = options.maximumMapSize ?? Int.max / 4
        guard size < largest else { return false }
        return try waitingForSnapshots { try environment.resizeMap(to: min(size * 2, largest)) }
    }

    /// Adopts the size that another process has given the file. Returns false like ``grow()``.
    private func adoptSize() throws -> Bool { try waitingForSnapshots { try environment.resizeMap(to: 0) } }

    private func waitingForSnapshots(_ body: () throws -> Bool) throws -> Bool {
        for _ in 0..<100 {
            if try body() { return true }
            CurrentThread.sleep(microseconds: 1000)
        }
        return false
    }
}
