import LMDB
internal import Platform
import StoreInterface

/// What a migration has left for later: indexes to be built on objects that were there before, and sub-databases to be emptied.
///
/// The file says how far each has come (`build` and `drop` in `meta`), so that work goes on after a crash, and in whichever process.
/// Here is only what may still be unfinished; an entry goes when a committed state no longer has it.
final class PendingIndexBuilds: Sendable {
    struct Item: Sendable, Hashable {
        enum Kind: Hashable {
            /// An index of an entity, by position among its tables.
            case build(entity: Int, index: Int)
            case drop
        }

        var name: String
        var database: Database
        var kind: Kind

        /// The name in `meta` of what tells how far the work has come.
        var key: String {
            switch kind {
            case .build: MetaTable.Key.build + name
            case .drop: MetaTable.Key.drop + name
            }
        }
    }

    private let items: Mutex<[Item]>
    /// How many items there are; read without the lock, because nearly always it is 0.
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

    /// The work is done in a committed state.
    func remove(_ item: Item) {
        items.withLock { items in
            items.removeAll { $0 == item }
            count.store(items.count, ordering: .releasing)
        }
    }

    /// The indexes that are not ready in a state. O(1) when no work is left.
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

    /// By index that is not ready: the first page that it does not have.
    func progress(of store: LMDBStore, in transaction: WriteTransaction) throws -> [Database: UInt64] {
        if isEmpty { return [:] }
        var progress: [Database: UInt64] = [:]
        for item in builds { progress[item.database] = try transaction.metaNumber(item.key, store.tables.meta) }
        return progress
    }
}
