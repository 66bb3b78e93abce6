import Baselines
import Datasets
import Figures
import Foundation

/// The work in C calls: a table of texts and bytes. After the work each file is reopened and checked.
extension KeyedWorkload {
    func runSQLite() throws -> [StorageOperation: Double] {
        let folder = try RunFolder()
        let path = folder.path("values.sqlite")
        let costs = try workSQLite(path)
        let database = try RawSQLite(path: path, access: .readWrite)
        let all = try database.prepare("SELECT key, value FROM \(Self.name)")
        var found = Checksum()
        while try all.step() { found.add(Self.row(of: all.text(0)), column: 0, value: .data(all.blob(1))) }
        try found.check("storage: values on raw SQLite after deleting", left)
        return costs
    }

    private func workSQLite(_ path: String) throws -> [StorageOperation: Double] {
        let database = try SQLiteBaseline(path: path, durability: durability).database
        try database.execute("CREATE TABLE \(Self.name) (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
        var costs: [StorageOperation: Double] = [:]
        let put = try database.prepare("INSERT OR REPLACE INTO \(Self.name) VALUES (?, ?)")
        costs[operations.put] = try cost(keys.count) {
            try change(database, saves: putSaves) { row in
                put.bind(1, keys[row])
                put.bind(2, value(row))
                try put.run()
            }
        }
        costs.merge(try read(database)) { _, new in new }
        let remove = try database.prepare("DELETE FROM \(Self.name) WHERE key = ?")
        let removeSaves = removeSaves
        costs[operations.remove] = try cost(keys.count / 5) {
            try change(database, saves: removeSaves) { row in
                remove.bind(1, keys[row])
                try remove.run()
            }
        }
        return costs
    }

    private func change(_ database: RawSQLite, saves: [ArraySlice<Int>], _ body: (Int) throws -> Void) throws {
        for rows in saves {
            try database.execute("BEGIN IMMEDIATE")
            for row in rows { try body(row) }
            try database.execute("COMMIT")
        }
    }

    private func read(_ database: RawSQLite) throws -> [StorageOperation: Double] {
        let get = try database.prepare("SELECT value FROM \(Self.name) WHERE key = ?")
        let range = try database.prepare("SELECT key, value FROM \(Self.name) WHERE key >= ? AND key < ?")
        var costs: [StorageOperation: Double] = [:]
        var sum = 0
        func addRange(from lower: String, below upper: String) throws {
            range.bind(1, lower)
            range.bind(2, upper)
            // Collections return the keys too.
            while try range.step() { sum += range.text(0).isEmpty ? 0 : range.withBlob(1) { Int($0[0]) } }
            range.reset()
        }
        try database.execute("BEGIN")
        costs[operations.get] = try cost(picks.count) {
            for row in picks {
                get.bind(1, keys[row])
                if try get.step() { sum += get.withBlob(0) { Int($0[0]) } }
                get.reset()
            }
        }
        try check(.sqliteRaw, what: "random keys", found: sum, expected: pickedSum)
        sum = 0
        costs[operations.range] = try cost(starts.count * Self.width) {
            for start in starts { try addRange(from: keys[start], below: keys[start + Self.width]) }
        }
        try check(.sqliteRaw, what: "ranges", found: sum, expected: rangeSum)
        sum = 0
        costs[operations.prefix] = try cost(starts.count * Self.width) {
            // "0" is the character after "/", with which prefixes end.
            for start in starts { try addRange(from: prefix(of: start), below: prefix(of: start).dropLast() + "0") }
        }
        try check(.sqliteRaw, what: "prefixes", found: sum, expected: prefixSum)
        try database.execute("COMMIT")
        return costs
    }

    func runLMDB() throws -> [StorageOperation: Double] {
        let folder = try RunFolder()
        let path = folder.path("values.lmdb")
        let costs = try workLMDB(path)
        let (environment, table) = try openLMDB(path)
        try environment.begin(.reading)
        var found = Checksum()
        let cursor = try environment.cursor(table)
        var more = try cursor.first()
        while more {
            found.add(Self.row(of: String(decoding: cursor.keyBytes, as: UTF8.self)), column: 0, value: .data(Data(cursor.row)))
            more = try cursor.next()
        }
        try found.check("storage: values on raw LMDB after deleting", left)
        return costs
    }

    private func openLMDB(_ path: String) throws -> (RawLMDB, RawLMDB.Table) {
        let environment = try LMDBBaseline(path: path, durability: durability).environment
        try environment.begin(.writing)
        let table = try environment.makeTextTable(Self.name)
        try environment.commit()
        return (environment, table)
    }

    private func workLMDB(_ path: String) throws -> [StorageOperation: Double] {
        let (environment, table) = try openLMDB(path)
        var costs: [StorageOperation: Double] = [:]
        costs[operations.put] = try cost(keys.count) {
            for rows in putSaves {
                try environment.begin(.writing)
                for row in rows { try value(row).withUnsafeBytes { try environment.put(table, key: keys[row], $0) } }
                try environment.commit()
            }
        }
        costs.merge(try read(environment, table)) { _, new in new }
        let removeSaves = removeSaves
        costs[operations.remove] = try cost(keys.count / 5) {
            for rows in removeSaves {
                try environment.begin(.writing)
                for row in rows { try environment.remove(table, key: keys[row]) }
                try environment.commit()
            }
        }
        return costs
    }

    private func read(_ environment: RawLMDB, _ table: RawLMDB.Table) throws -> [StorageOperation: Double] {
        var costs: [StorageOperation: Double] = [:]
        var sum = 0
        try environment.begin(.reading)
        costs[operations.get] = try cost(picks.count) {
            for row in picks { sum += try environment.get(table, key: keys[row]) { Int($0[0]) } ?? 0 }
        }
        try check(.lmdbRaw, what: "random keys", found: sum, expected: pickedSum)
        do {
            let cursor = try environment.cursor(table)
            func addHundred(from key: String) throws {
                var more = try cursor.seek(from: key)
                var left = Self.width
                while more, left > 0 {
                    // Collections return the keys too.
                    sum += String(decoding: cursor.keyBytes, as: UTF8.self).isEmpty ? 0 : Int(cursor.row[0])
                    left -= 1
                    more = try left > 0 && cursor.next()
                }
            }
            sum = 0
            costs[operations.range] = try cost(starts.count * Self.width) {
                for start in starts { try addHundred(from: keys[start]) }
            }
            try check(.lmdbRaw, what: "ranges", found: sum, expected: rangeSum)
            sum = 0
            costs[operations.prefix] = try cost(starts.count * Self.width) {
                for start in starts { try addHundred(from: prefix(of: start)) }
            }
            try check(.lmdbRaw, what: "prefixes", found: sum, expected: prefixSum)
        }
        try environment.commit()
        return costs
    }
}
