import LMDB
import StoreInterface
import StoreModel

extension LMDBStore {
    /// Returns the size of each table in the newest state: the pages of its tree. O(tables).
    public func tableSizes() throws -> [TableSize] {
        let snapshot = try newestSnapshot()
        return try mappingErrors {
            var sizes: [TableSize] = []
            func add(_ name: String, content: TableSize.Content, databases: Database...) throws {
                var size = TableSize(name: name, content: content, entries: 0, bytes: 0)
                for database in databases {
                    let found = try snapshot.transaction.statistics(database)
                    size.entries = max(size.entries, found.entries)
                    size.bytes += (found.branchPages + found.leafPages + found.overflowPages) * found.pageSize
                }
                sizes.append(size)
            }
            for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) {
                try add(entity.name, content: .objects, databases: tables.pages[number])
                try add(entity.name, content: .largeValues, databases: tables.large[number])
                for index in tables.indexes[number] {
                    let columns = index.columns.map { entity.columns[$0].name }.joined(separator: ", ")
                    try add("\(entity.name)(\(columns))", content: .index, databases: index.database)
                }
            }
            for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
                try add(link.name, content: .link, databases: tables.links[number].forward, tables.links[number].backward)
            }
            try add("history", content: .history, databases: tables.history)
            try add("meta", content: .records, databases: tables.meta)
            try add("dictionaries", content: .records, databases: tables.dictionaries, tables.pageOverflow)
            return sizes
        }
    }
}
