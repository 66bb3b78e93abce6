import Datasets
import Figures
import Baselines

/// The work in C calls. After the work each file is reopened and checked.
extension IndexedWorkload {
    func runSQLite() throws -> [StorageOperation: Double] {
        let folder = try RunFolder()
        let path = folder.path("shelves.sqlite")
        let costs = try workSQLite(path)
        let database = try RawSQLite(path: path, access: .readWrite)
        let all = try database.prepare("SELECT id_key, number, shelf FROM Item")
        var sum = Checksum()
        while try all.step() { Self.add(Int(all.int(0)) - 1, number: all.int(1), shelf: Int(all.int(2)) - 1, to: &sum) }
        try sum.check("storage: items after deleting on raw SQLite", left)
        return costs
    }

    private func workSQLite(_ path: String) throws -> [StorageOperation: Double] {
        let database = try SQLiteBaseline(path: path, durability: durability).database
        try fill(database)
        var costs: [StorageOperation: Double] = [:]
        var found = 0
        let range = try database.prepare("SELECT id_key FROM Item WHERE number >= ? AND number < ?")
        try database.execute("BEGIN")
        costs[.range] = try cost(starts.count * Self.width) {
            for start in starts {
                range.bind(1, start)
                range.bind(2, start + Int64(Self.width))
                while try range.step() { found += range.int(0) > 0 ? 1 : 0 }
                range.reset()
            }
        }
        try check("indexed ranges on raw SQLite", found: found, expected: starts.count * Self.width)
        var sum = 0
        let walk = try database.prepare("SELECT number FROM Item WHERE shelf = ?")
        costs[.walk] = try cost(count) {
            for shelf in 1...(count / Self.width) {
                walk.bind(1, Int64(shelf))
                while try walk.step() { sum += Int(walk.int(0)) }
                walk.reset()
            }
        }
        try database.execute("COMMIT")
        try check("the walk on raw SQLite", found: sum, expected: self.sum)
        let delete = try database.prepare("DELETE FROM Item WHERE id_key = ?")
        costs[.delete] = try cost(deleted.count) {
            for first in stride(from: 0, to: deleted.count, by: saveEvery) {
                try database.execute("BEGIN IMMEDIATE")
                for item in deleted[first..<min(deleted.count, first + saveEvery)] {
                    delete.bind(1, Int64(item + 1))
                    try delete.run()
                }
                try database.execute("COMMIT")
            }
        }
        return costs
    }

    private func fill(_ database: RawSQLite) throws {
        try database.execute("BEGIN IMMEDIATE")
        try database.execute("CREATE TABLE Item (id_key INTEGER PRIMARY KEY, number INTEGER, shelf INTEGER)")
        try database.execute("CREATE INDEX Item_number ON Item (number)")
        try database.execute("CREATE INDEX Item_shelf ON Item (shelf)")
        let insert = try database.prepare("INSERT INTO Item VALUES (?, ?, ?)")
        for item in 0..<count {
            insert.bind(1, Int64(item + 1))
            insert.bind(2, numbers[item])
            insert.bind(3, Int64(item / Self.width + 1))
            try insert.run()
        }
        try database.execute("COMMIT")
    }

    func runLMDB() throws -> [StorageOperation: Double] {
        let folder = try RunFolder()
        let path = folder.path("shelves.lmdb")
        let costs = try IndexedWorkloadOnLMDB(path, self).work()
        try IndexedWorkloadOnLMDB(path, self).verify()
        return costs
    }
}

/// Rows of a number and a shelf, sixteen bytes, and two indexes of sorted keys, maintained by hand.
private struct IndexedWorkloadOnLMDB {
    private let shelves: IndexedWorkload
    private let environment: RawLMDB
    private let items: RawLMDB.Table
    private let byNumber: RawLMDB.Table
    private let byShelf: RawLMDB.Table

    init(_ path: String, _ shelves: IndexedWorkload) throws {
        self.shelves = shelves
        environment = try LMDBBaseline(path: path, durability: shelves.durability).environment
        try environment.begin(.writing)
        items = try environment.makeTable("Item")
        byNumber = try environment.makeIndex("Item.number")
        byShelf = try environment.makeIndex("Item.shelf")
        try environment.commit()
    }

    func work() throws -> [StorageOperation: Double] {
        try fill()
        var costs: [StorageOperation: Double] = [:]
        var found = 0
        let width = UInt64(IndexedWorkload.width)
        try environment.begin(.reading)
        costs[.range] = try cost(shelves.starts.count * IndexedWorkload.width) {
            let cursor = try environment.cursor(byNumber)
            for start in shelves.starts {
                let end = UInt64(start) + width
                var more = try cursor.seek(from: UInt64(start))
                while more, cursor.key < end {
                    found += cursor.partner > 0 ? 1 : 0
                    more = try cursor.next()
                }
            }
        }
        try shelves.check("indexed ranges on raw LMDB", found: found, expected: shelves.starts.count * IndexedWorkload.width)
        var sum = 0
        costs[.walk] = try cost(shelves.count) { try walk { item, number, shelf in sum += Int(number) } }
        try environment.commit()
        try shelves.check("the walk on raw LMDB", found: sum, expected: shelves.sum)
        costs[.delete] = try cost(shelves.deleted.count) {
            for first in stride(from: 0, to: shelves.deleted.count, by: shelves.saveEvery) {
                try environment.begin(.writing)
                for item in shelves.deleted[first..<min(shelves.deleted.count, first + shelves.saveEvery)] {
                    try delete(UInt64(item + 1))
                }
                try environment.commit()
            }
        }
        return costs
    }

    private func fill() throws {
        try environment.begin(.writing)
        for item in 0..<shelves.count {
            let key = UInt64(item + 1)
            let row = (UInt64(shelves.numbers[item]), UInt64(item / IndexedWorkload.width + 1))
            try withUnsafeBytes(of: row) { try environment.put(items, key: key, $0) }
            try environment.putIndex(byNumber, value: row.0, key: key)
            try environment.putIndex(byShelf, value: row.1, key: key)
        }
        try environment.commit()
    }

    /// Calls `body` with each item's key, number and shelf, shelf by shelf.
    private func walk(_ body: (UInt64, UInt64, UInt64) throws -> Void) throws {
        let members = try environment.cursor(byShelf)
        let rows = try environment.cursor(items)
        for shelf in 1...UInt64(shelves.count / IndexedWorkload.width) {
            var more = try members.seek(shelf)
            while more {
                guard try rows.seek(members.partner) else { throw VerificationError("raw LMDB: an index names a missing row") }
                try body(rows.key, rows.row.loadUnaligned(as: UInt64.self), shelf)
                more = try members.nextOfKey()
            }
        }
    }

    private func delete(_ key: UInt64) throws {
        let row = try environment.get(items, key: key) { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        guard let row else { throw VerificationError("raw LMDB: no item \(key) to delete") }
        try environment.remove(items, key: key)
        try environment.removeIndex(byNumber, value: row.0, key: key)
        try environment.removeIndex(byShelf, value: row.1, key: key)
    }

    /// Throws unless the remaining items have their values, in a scan, through the index of numbers and from their shelves.
    func verify() throws {
        var scanned = Checksum()
        try environment.begin(.reading)
        try environment.forEach(items) { key, bytes in
            add(
                key, number: bytes.loadUnaligned(as: UInt64.self), shelf: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
                to: &scanned)
        }
        try scanned.check("storage: items after deleting on raw LMDB", shelves.left)
        var walked = Checksum()
        try walk { item, number, shelf in add(item, number: number, shelf: shelf, to: &walked) }
        try walked.check("storage: shelves after deleting on raw LMDB", shelves.left)
        var indexed = Checksum()
        try environment.forEach(byNumber) { number, bytes in
            let key = bytes.loadUnaligned(as: UInt64.self)
            add(key, number: number, shelf: (key - 1) / UInt64(IndexedWorkload.width) + 1, to: &indexed)
        }
        try indexed.check("storage: the index of numbers after deleting on raw LMDB", shelves.left)
        try environment.commit()
    }

    private func add(_ item: UInt64, number: UInt64, shelf: UInt64, to sum: inout Checksum) {
        IndexedWorkload.add(Int(item) - 1, number: Int64(number), shelf: Int(shelf) - 1, to: &sum)
    }
}
