import LMDB
internal import Platform
import StoreInterface
import StoreModel

/// The work that a migration has deferred: indexes to build over existing objects, and sub-databases to empty.
///
/// The file records the progress of each item (`build` and `drop` in `meta`), so that work continues after a crash, in any
/// process. Whether an index is ready depends on the state that is read: a state from before the end of a build stays
/// without the index, also when it is read later.
final class PendingIndexBuilds: Sendable {
    struct Item: Sendable, Hashable {
        enum Kind: Hashable {
            /// An index of an entity, by its position among the entity's indexes.
            case build(entity: EntityIndex, index: Int)
            case drop
        }

        var name: String
        var database: Database
        var kind: Kind

        /// The name of the row in `meta` that records the progress.
        var key: String {
            switch kind {
            case .build: MetaTable.Key.build + name
            case .drop: MetaTable.Key.drop + name
            }
        }
    }

    /// The items that may be unfinished in the newest state.
    private let items: Mutex<[Item]>
    /// All indexes that were unfinished when the file was opened.
    private let builds: [Item]
    /// The number of a transaction in which every index was ready. They are ready in all later ones too, so that nothing is
    /// read there.
    private let allReadySince: Atomic<UInt64>

    init(_ items: [Item]) {
        self.items = Mutex(items)
        builds = items.filter { if case .build = $0.kind { true } else { false } }
        allReadySince = Atomic(builds.isEmpty ? 0 : .max)
    }

    var first: Item? { items.withLock { $0.first } }

    /// Removes an item whose work is complete in a committed state.
    func remove(_ item: Item) {
        items.withLock { $0.removeAll { $0 == item } }
    }

    /// Returns the indexes that are not ready in a state. O(1) if no work is left.
    func names(of store: LMDBStore, in transaction: ReadTransaction) throws -> Set<Database> {
        let number = transaction.transactionNumber
        let readySince = allReadySince.load(ordering: .acquiring)
        if number >= readySince { return [] }
        var unbuilt: Set<Database> = []
        for item in builds where try transaction.metaNumber(item.key, store.tables.meta) != nil { unbuilt.insert(item.database) }
        if unbuilt.isEmpty { allReadySince.min(number, ordering: .acquiringAndReleasing) }
        return unbuilt
    }

    /// Returns, per index that is not ready, the first page that it does not contain.
    func progress(of store: LMDBStore, in transaction: WriteTransaction) throws -> [Database: PageNumber] {
        // A write follows every committed state.
        if allReadySince.load(ordering: .acquiring) != .max { return [:] }
        var progress: [Database: PageNumber] = [:]
        for item in builds {
            progress[item.database] = try transaction.metaNumber(item.key, store.tables.meta).map(PageNumber.init(rawValue:))
        }
        return progress
    }
}
