internal import Platform
import StoreInterface
import StoreModel

/// The saves that the writers of this process have committed to one file without a sync. A power failure could take them away.
///
/// Each container of an SQLite file has its own writer, which commits deferred saves at once and syncs them later. All containers read
/// such a save after its commit, so their tokens must come before it until it is synced (S160).
final class UnsyncedCommits: Sendable {
    /// The unsynced saves of one writer.
    private struct Entry {
        /// The writer; nil if it was released without a sync.
        weak var writer: StoreWriter?
        /// The newest save on disk before them.
        var synced: Generation
        /// The newest of them.
        var newest: Generation
    }

    /// One entry per writer that has such saves.
    private let entries = Mutex<[Entry]>([])

    /// The newest save that is on disk while later ones are not; `.max` if all are.
    var newestSynced: Generation { entries.withLock { entries in entries.map { $0.synced }.min() ?? .max } }

    /// The writers that have such saves.
    var writers: [StoreWriter] { entries.withLock { entries in entries.compactMap { $0.writer } } }

    /// Returns whether a writer has such saves.
    func isOwed(by writer: StoreWriter) -> Bool { entries.withLock { entries in entries.contains { $0.writer === writer } } }

    /// The newest unsynced save of a writer; nil if it has none.
    func newest(by writer: StoreWriter) -> Generation? {
        entries.withLock { entries in entries.first { $0.writer === writer }?.newest }
    }

    /// Records a commit without a sync before it is made.
    ///
    /// - Parameters:
    ///   - older: The newest save before the commit.
    ///   - newest: The newest save of the commit.
    func willCommit(by writer: StoreWriter, after older: Generation, through newest: Generation) {
        entries.withLock { entries in
            if let place = entries.firstIndex(where: { $0.writer === writer }) {
                entries[place].newest = newest
            } else {
                entries.append(Entry(writer: writer, synced: older, newest: newest))
            }
        }
    }

    /// Takes back what ``willCommit(by:after:through:)`` has recorded, because the commit has failed.
    ///
    /// - Parameter newest: What ``newest(by:)`` was before it.
    func didFail(by writer: StoreWriter, before newest: Generation?) {
        entries.withLock { entries in
            guard let place = entries.firstIndex(where: { $0.writer === writer }) else { return }
            if let newest { entries[place].newest = newest } else { entries.remove(at: place) }
        }
    }

    /// Records that all saves of a writer are on disk.
    ///
    /// A commit with a sync takes all earlier commits of the file with it, also those of other writers.
    /// - Parameter newest: The newest save of the commit; nil if it has written none, and so may have synced nothing of other writers.
    func didSync(by writer: StoreWriter, through newest: Generation?) {
        entries.withLock { entries in
            entries.removeAll { entry in entry.writer === writer || newest.map { entry.newest <= $0 } ?? false }
            guard let newest else { return }
            for place in entries.indices { entries[place].synced = max(entries[place].synced, newest) }
        }
    }

    /// Records that all saves of the file up to one are on disk, whichever writer has committed them. Later ones may not be.
    func didSync(through newest: Generation) {
        entries.withLock { entries in
            entries.removeAll { $0.newest <= newest }
            for place in entries.indices { entries[place].synced = max(entries[place].synced, newest) }
        }
    }

    // MARK: Files

    /// The file of a store.
    private struct File: Hashable {
        let store: StoreIdentity
        let name: String
    }

    private struct Known {
        weak var commits: UnsyncedCommits?
    }

    private static let known = Mutex<[File: Known]>([:])

    /// Returns the object that all writers of this process on the file of a store share.
    static func shared(by store: any ObjectStore) -> UnsyncedCommits {
        let file = File(store: store.identity, name: store.name)
        return known.withLock { known in
            if let commits = known[file]?.commits { return commits }
            known = known.filter { $0.value.commits != nil }
            let made = UnsyncedCommits()
            known[file] = Known(commits: made)
            return made
        }
    }
}
