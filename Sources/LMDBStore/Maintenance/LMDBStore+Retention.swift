import LMDB
import StoreInterface
import StoreModel

extension LMDBStore {
    /// Computes the retention from LMDB's list of free pages, whose keys are the commits that freed the pages.
    ///
    /// A page freed by a commit after a reader's state is used by the reader, or by a state between. It is not reused before
    /// the reader ends. Pages that the next commit will free are not counted. O(entries of the list after the oldest reader).
    public func retention(of snapshots: [any StoreSnapshot]) throws -> Retention {
        try beginUse()
        return try mappingErrors {
            let numbers = snapshots.map { ($0 as? LMDBSnapshot)?.transactionNumber }
            let external = try environment.activeReaders().filter { $0.processID != SaveMetadata.thisProcess }
            let newest = try environment.information().lastTransaction
            let all = numbers.compactMap { $0 } + external.map(\.transactionNumber)
            guard let oldest = all.min() else { return Retention(bytes: numbers.map { _ in nil }) }
            let freed = try freedPages(after: oldest)
            func bytes(_ number: UInt64) -> Int {
                freed.reduce(0) { $1.commit > number ? $0 + $1.pages : $0 } * pageSize
            }
            return Retention(
                bytes: numbers.map { $0.map(bytes) },
                external: external.map {
                    .init(
                        processID: $0.processID, bytes: bytes($0.transactionNumber), isNewest: $0.transactionNumber >= newest)
                })
        }
    }

    private struct Freed {
        var commit: UInt64
        var pages: Int
    }

    /// Returns the freed pages per commit, ascending.
    private func freedPages(after oldest: UInt64) throws -> [Freed] {
        try reading { try ReadTransaction(environment) }.withCursor(.free) { cursor in
            var freed: [Freed] = []
            var entry = try cursor.seek(oldest + 1)
            while let found = entry {
                freed.append(Freed(commit: found.number, pages: found.freedPages))
                entry = try cursor.move(.next)
            }
            return freed
        }
    }
}
