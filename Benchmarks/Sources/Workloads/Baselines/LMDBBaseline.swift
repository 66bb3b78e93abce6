import Datasets
import Baselines
import StoreInterface

/// The import in LMDB's C calls: one row per object under its key, an index for each reference, and one transaction per batch.
///
/// `deferred` is `MDB_NOSYNC`, which can lose more than the newest saves. It is a floor, not an alternative.
final class LMDBBaseline {
    let environment: RawLMDB
    private var tables: [RawLMDB.Table] = []
    private var indexes: [[RawLMDB.Table]] = []
    private var links: [(forward: RawLMDB.Table, backward: RawLMDB.Table)] = []
    private var row = RowBytes()

    init(path: String, durability: DurabilityKind) throws {
        environment = try RawLMDB(path: path, tables: 256, sync: durability == .durable ? .everyCommit : .never)
    }

    /// Creates or opens the tables. A store creates its own tables when it opens, so this is not measured.
    func makeTables(_ dataset: Dataset) throws {
        try environment.begin(.writing)
        for table in dataset.tables {
            tables.append(try environment.makeTable(table.name))
            indexes.append(try table.references.map { try environment.makeIndex("\(table.name).\($0.name)") })
        }
        for number in dataset.links.indices {
            links.append((try environment.makeIndex("link\(number)"), try environment.makeIndex("link\(number) back")))
        }
        try environment.commit()
    }

    /// Imports objects, then references, then links. A row's key is its number plus one.
    func run(_ data: PreparedDataset, saveEvery: Int) throws {
        for (number, rows) in data.rows.enumerated() {
            let table = tables[number]
            // References make rows longer later, for which full pages would have to be split.
            let order: RawLMDB.KeyOrder = data.dataset.tables[number].references.isEmpty ? .ascending : .any
            try transactions(rows.count, size: saveEvery) { index in
                row.removeAll()
                for value in rows[index] { row.append(value) }
                try row.withBytes { try environment.put(table, key: UInt64(index + 1), order: order, $0) }
            }
        }
        for (number, table) in data.dataset.tables.enumerated() where !table.references.isEmpty {
            try relate(number, rows: data.rows[number], references: table.references.map(\.rows), saveEvery: saveEvery)
        }
        for (number, link) in data.dataset.links.enumerated() {
            let (pairs, tables) = (link.pairs, links[number])
            try transactions(pairs.count, size: saveEvery) { index in
                let pair = pairs[index]
                try environment.putIndex(tables.forward, value: UInt64(pair.source + 1), key: UInt64(pair.destination + 1))
                try environment.putIndex(tables.backward, value: UInt64(pair.destination + 1), key: UInt64(pair.source + 1))
            }
        }
    }

    /// Writes the rows of a table again, now with their references, and adds the references to the indexes.
    private func relate(_ number: Int, rows: [[Value]], references: [[Int32]], saveEvery: Int) throws {
        let (table, indexes) = (tables[number], indexes[number])
        try transactions(rows.count, size: saveEvery) { index in
            let key = UInt64(index + 1)
            row.removeAll()
            for value in rows[index].dropLast(references.count) { row.append(value) }
            for place in references.indices {
                let far = references[place][index]
                row.append(far >= 0 ? .int(Int64(far + 1)) : .null)
                if far >= 0 { try environment.putIndex(indexes[place], value: UInt64(far + 1), key: key) }
            }
            try row.withBytes { try environment.put(table, key: key, $0) }
        }
    }

    private func transactions(_ count: Int, size: Int, _ body: (Int) throws -> Void) throws {
        for start in stride(from: 0, to: count, by: size) {
            try environment.begin(.writing)
            for index in start..<min(count, start + size) { try body(index) }
            try environment.commit()
        }
    }

    /// Reopens a file, and throws unless it has all values, references and links of the data set, in both directions, and
    /// nothing else.
    static func verify(_ path: String, _ dataset: Dataset) throws {
        let baseline = try LMDBBaseline(path: path, durability: .durable)
        try baseline.makeTables(dataset)
        try baseline.environment.begin(.reading)
        for (number, table) in dataset.tables.enumerated() {
            try checksum(baseline.environment, rows: baseline.tables[number], table: table).check(
                "raw LMDB: \(table.name)", Checksum(table))
            for (place, reference) in table.references.enumerated() {
                let rows = reference.rows.enumerated().filter { $0.element >= 0 }.map { ($0.offset, Int($0.element)) }
                try baseline.check(
                    baseline.indexes[number][place], name: "index of \(table.name).\(reference.name)",
                    expected: rows.map { ($1, $0) })
            }
        }
        for (number, link) in dataset.links.enumerated() {
            let pairs = link.pairs.map { (Int($0.source), Int($0.destination)) }
            try baseline.check(baseline.links[number].forward, name: "link \(number)", expected: pairs)
            try baseline.check(
                baseline.links[number].backward, name: "link \(number), backward", expected: pairs.map { ($1, $0) })
        }
        try baseline.environment.commit()
    }

    /// Returns the checksum of all rows of a table. Requires a transaction.
    static func checksum(_ environment: RawLMDB, rows: RawLMDB.Table, table: Table) throws -> Checksum {
        var sum = Checksum()
        let types = table.attributes.map(\.type) + table.references.map { _ in .int64 }
        try environment.forEach(rows) { key, bytes in
            var row = RowReader(bytes)
            for (column, type) in types.enumerated() { sum.add(Int(key) - 1, column: column, value: row.next(type)) }
        }
        return sum
    }

    private func check(_ index: RawLMDB.Table, name: String, expected: [(Int, Int)]) throws {
        var found = Checksum()
        try environment.forEach(index) { key, bytes in
            found.add(Int(key) - 1, column: 0, value: .int(bytes.loadUnaligned(as: Int64.self) - 1))
        }
        var wanted = Checksum()
        for (row, far) in expected { wanted.add(row, column: 0, value: .int(Int64(far))) }
        try found.check("raw LMDB: \(name)", wanted)
    }

    var firstTable: RawLMDB.Table { tables[0] }
}
