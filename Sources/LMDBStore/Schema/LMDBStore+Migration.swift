import LMDB
import PageCodec
import StoreInterface
import StoreModel

extension LMDBStore {
    /// The number of pages of an index that one small transaction builds, and the number of keys that it deletes.
    private static let pagesAtOnce = 64
    private static let keysAtOnce = 2048

    /// Builds a part of an index, or deletes a part of a table that is no longer used: 64 pages or 2,048 keys, then a durable
    /// commit.
    public func continueMigration() throws -> MigrationProgress? {
        guard !isReadOnly, let item = unfinished.first else { return nil }
        let (progress, isDone) = try write(.durable) { transaction -> (MigrationProgress, Bool) in
            guard let transaction = transaction as? LMDBTransaction else {
                throw StoreError(.internalInconsistency, "a transaction of another store; report this as a bug")
            }
            switch item.kind {
            case .build(let entity, let index):
                return try transaction.build(
                    item, entity: entity, position: index, pages: Self.pagesAtOnce, keys: Self.keysAtOnce)
            case .drop: return try transaction.drop(item, Self.keysAtOnce)
            }
        }
        if isDone { unfinished.remove(item) }
        return progress
    }
}

extension LMDBTransaction {
    fileprivate func build(
        _ item: PendingIndexBuilds.Item, entity: EntityIndex, position: Int, pages: Int, keys: Int
    ) throws -> (MigrationProgress, Bool) {
        try recordingFailure {
            let index = store.tables.indexes[entity][position]
            let schema = store.schema.entities[entity]
            let name = "\(schema.name).\(index.columns.map { schema.columns[$0].name }.joined(separator: "+"))"
            let total = try transaction.statistics(store.tables.pages[entity]).entries
            // Another process may have finished the work.
            guard let next = try transaction.metaNumber(item.key, store.tables.meta) else {
                return (MigrationProgress(activity: "index on \(name)", completed: total, total: total), true)
            }
            if next == 0 {
                let isEmpty = try emptySome(of: index.database, keys)
                if isEmpty { try MetaTable.put(1, key: item.key, meta: store.tables.meta, in: transaction) }
                return (MigrationProgress(activity: "index on \(name)", completed: 0, total: total), false)
            }
            try checkSpace(pages: try mostPages(index, rows: pages * PageAddress.slots) + 16)
            var changes = IndexChanges(index, schema)
            var last: PageNumber?
            var count = 0
            try transaction.withCursor(store.tables.pages[entity]) { cursor in
                var entry = try cursor.seek(next)
                while let found = entry, count < pages {
                    try gather(found, entity: entity, index: index, changes: &changes)
                    last = found.pageNumber
                    count += 1
                    entry = try cursor.move(.next)
                }
                if entry == nil { last = nil }
            }
            try changes.write(in: transaction)
            guard let last else {
                try MetaTable.remove(item.key, store.tables.meta, in: transaction)
                return (MigrationProgress(activity: "index on \(name)", completed: total, total: total), true)
            }
            guard last < PageAddress.end else {
                throw StoreError.damaged(store, "\(schema.name) has a page \(last), which no key belongs to")
            }
            try MetaTable.put(last.next.rawValue, key: item.key, meta: store.tables.meta, in: transaction)
            let first = try transaction.withCursor(store.tables.pages[entity]) { try $0.move(.first)?.pageNumber } ?? 1
            // Page numbers are nearly dense, so their distance is about the number of completed pages.
            let completed = min(total, first.distance(to: last.next))
            return (MigrationProgress(activity: "index on \(name)", completed: completed, total: total), false)
        }
    }

    private func gather(
        _ found: Cursor.Entry, entity: EntityIndex, index: Tables.Index, changes: inout IndexChanges
    ) throws {
        try store.withPage(found.value, entity: entity, number: found.pageNumber, for: .scanning, check: .checksum, in: self) {
            page in
            for slot in SlotIterator(page.presence) {
                let key = PageAddress.key(page: found.pageNumber, slot: slot)
                if index.isCompound {
                    try changes.add(try index.columns.map { try page.value(slot, $0) }, key)
                } else {
                    try changes.add(try page.value(slot, index.column), key)
                }
            }
        }
    }

    fileprivate func drop(_ item: PendingIndexBuilds.Item, _ keys: Int) throws -> (MigrationProgress, Bool) {
        try recordingFailure {
            // The rests and dictionaries first: they are found by the name of the table that refers to them.
            let isEmpty = try dropSomeRests(of: item, keys) && emptySome(of: item.database, keys)
            if isEmpty { try MetaTable.remove(item.key, store.tables.meta, in: transaction) }
            let left = try transaction.statistics(item.database).entries
            return (MigrationProgress(activity: "removing \(item.name)", completed: 0, total: left), isEmpty)
        }
    }

    /// Deletes some rests and dictionaries of packed pages, if the item is the table of an entity's pages.
    /// - Returns: Whether none is left.
    private func dropSomeRests(of item: PendingIndexBuilds.Item, _ keys: Int) throws -> Bool {
        guard let number = StoredTables.entityNumber(ofPages: item.name) else { return true }
        return try store.pageOverflow.removeSome(ofEntity: number, keys, in: transaction)
            && store.dictionaries.removeSome(ofEntity: number, keys, in: transaction)
    }

    /// Deletes some keys of a table.
    /// - Returns: Whether the table is empty.
    private func emptySome(of database: Database, _ keys: Int) throws -> Bool {
        guard try transaction.statistics(database).entries > keys else {
            try transaction.empty(database)
            return true
        }
        try transaction.withCursor(database) { cursor in
            for _ in 0..<keys {
                guard try cursor.move(.first) != nil else { return }
                try cursor.deleteKey()
            }
        }
        return try transaction.statistics(database).entries == 0
    }
}
