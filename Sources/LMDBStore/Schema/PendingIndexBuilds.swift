import LMDB
internal import Platform
import StoreInterface

/// The work that a migration has deferred: indexes to build over existing objects, and sub-databases to empty.
///
/// The file records the progress of each item (`build` and `drop` in `meta`), so that work continues after a crash, in any
/// process. This object contains only items that may be unfinished. An item is removed when a committed state no longer has
/// it.
final class PendingIndexBuilds: Sendable {
    struct Item: Sendable, Hashable {
        enum Kind: Hashable {
            /// An index of an entity, by its position among the entity's indexes.
            case build(entity: Int, index: Int)
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

    private let items: Mutex<[Item]>
    /// The number of items, read without the lock, because it is nearly always 0.
    private let count: Atomic<Int>

    init(_ items: [Item]) {
        self.items = Mutex(items)
        count = Atomic(items.count)
    }

    var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }
    var first: Item? { items.withLock { $0.first } }

    private var builds: [Item] {
        items.withLock { items in
            items.filter { if case .build = $0.kind { true } else { false } }
        }
    }

    /// Removes an item whose work is complete in a committed state.
    func remove(_ item: Item) {
        items.withLock { items in
            items.removeAll { $0 == item }
            count.store(items.count, ordering: .releasing)
        }
    }

    /// Returns the indexes that are not ready in a state. O(1) if no work is left.
    func names(of store: LMDBStore, in transaction: ReadTransaction) throws -> Set<Database> {
        if isEmpty { return [] }
        var unbuilt: Set<Database> = []
        for item in builds {
            if try transaction.metaNumber(item.key, store.tables.meta) == nil {
                remove(item)
            } else {
                unbuilt.insert(item.database)
            }
        }
        return unbuilt
    }

    /// Returns, per index that is not ready, the first page that it does not contain.
    func progress(of store: LMDBStore, in transaction: WriteTransaction) throws -> [Database: UInt64] {
        if isEmpty { return [:] }
        var progress: [Database: UInt64] = [:]
        for item in builds { progress[item.database] = try transaction.metaNumber(item.key, store.tables.meta) }
        return progress
    }
}
