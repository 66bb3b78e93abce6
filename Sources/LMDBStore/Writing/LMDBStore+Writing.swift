import LMDB
internal import Platform
import StoreInterface

/// Running a write transaction, and again what can be repaired.
extension LMDBStore {
    /// Runs `body` in the write transaction. Large values that are too much for one transaction's memory are written before it.
    /// Under the lock of writing.
    func writeBounded<R>(_ body: (LMDBTransaction) throws -> R) throws -> R {
        if mayHaveUnclaimed.load(ordering: .relaxed) { collectUnclaimed() }
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

    /// Runs `body` in one transaction, again when the map has to grow. Under the lock of writing.
    /// - Throws: ``OversizedValues`` when `body` has large values for which it was too small.
    func writeAlone<R>(ahead: PrewrittenValues?, _ body: (LMDBTransaction) throws -> R) throws -> R {
        while true {
            var cause: LMDBError?
            do {
                return try writeOnce(ahead, body, &cause)
            } catch {
                guard let reason = cause ?? error as? LMDBError else { throw error }
                switch reason.code {
                case .mapFull: guard try mappingErrors(grow) else { throw StoreError.full(self) }
                case .mapResized:
                    guard try mappingErrors(adoptSize) else { throw StoreError.outgrown(self) }
                default: throw error is LMDBError ? StoreError(reason, path: url.path) : error
                }
            }
        }
    }

    /// - Parameter cause: LMDB's error inside of the body, whatever the body made of it.
    private func writeOnce<R>(
        _ ahead: PrewrittenValues?, _ body: (LMDBTransaction) throws -> R, _ cause: inout LMDBError?
    ) throws -> R {
        var saved: Generation?
        var claimed = 0
        let result = try environment.write { transaction in
            let opened = try LMDBTransaction(self, transaction, ahead: ahead)
            defer { cause = opened.large.late.isEmpty ? opened.failure as? LMDBError : nil }
            let before = opened.generation
            let outcome = Result { try body(opened) }
            // Whatever came of it then: it went on without those values.
            if let late = opened.large.lateValues { throw late }
            let result = try outcome.get()
            try checkPlace()
            // Half a layer may be written: that is not to be committed, even when the body went on.
            if let failure = opened.failure { throw failure }
            if opened.generation != before {
                saved = opened.generation
                // Who saves reads the new state next; without a slot for that nothing is saved.
                try environment.reserveReader()
            }
            claimed = opened.large.claimed
            if format > 1, transaction.isChanged { try MetaCheck.write(tables.meta, in: transaction) }
            return result
        }
        ahead?.didCommit(claimed: claimed)
        if let saved { signal.send(saved) }
        return result
    }

    /// Checks that the file still has its name: writes to a deleted or replaced file would be lost. One `stat`.
    /// - Throws: `StoreError` `.fileReplaced`.
    func checkPlace() throws {
        let found = try? FileIdentity.of(path: url.path)
        guard found != file else { return }
        throw StoreError.fileReplaced(url.path, isGone: found == nil)
    }

    /// Doubles the map. False when it is as large as it may be, and while snapshots are held in this process, because they lie
    /// in the map; they get a tenth of a second to go.
    private func grow() throws -> Bool {
        let size = try environment.information().mapSize
        let largest = options.maximumMapSize ?? Int.max / 4
        guard size < largest else { return false }
        return try waitingForSnapshots { try environment.resizeMap(to: min(size * 2, largest)) }
    }

    /// Takes the size that another process has given the file. False as ``grow()``.
    private func adoptSize() throws -> Bool { try waitingForSnapshots { try environment.resizeMap(to: 0) } }

    private func waitingForSnapshots(_ resize: () throws -> Bool) throws -> Bool {
        for _ in 0..<100 {
            if try resize() { return true }
            usleep(1000)
        }
        return false
    }
}
