import Datasets
import Floors
import StoreInterface

/// The import in LMDB's C calls: one row an object under its key, an index for each reference, one transaction a batch.
///
/// `deferred` is `MDB_NOSYNC`, which can lose more than the newest saves: a floor, not an alternative.
final class LMDBFloor {
    let environment: RawLMDB
    private var tables: [RawLMDB.Table] = []
    private var indexes: [[RawLMDB.Table]] = []
    private var links: [(forward: RawLMDB.Table, backward: RawLMDB.Table)] = []
    private var row = RowBytes()

    init(path: String, durability: DurabilityKind) throws {
        environment = try RawLMDB(path: path, tables: 256, sync: durability == .durable ? .everyCommit : .never)
    }

    /// Makes tables, imports objects, then references, then links. A row's key is its number plus one.
    func run(_ dataset: Dataset, saveEvery: Int) throws {
        try environment.begin(.writing)
        for table in dataset.tables {
            tables.append(try environment.makeTable(table.name))
            indexes.append(try table.references.map { try environment.makeIndex("\(table.name).\($0.name)") })
        }
        for number in dataset.links.indices {
            links.append((try environment.makeIndex("link\(number)"), try environment.makeIndex("link\(number) back")))
        }
        try environment.commit()
        for (number, table) in dataset.tables.enumerated() {
            try transactions(table.rowCount, saveEvery) { index in try put(table, number, index, .withoutReferences) }
        }
        for (number, table) in dataset.tables.enumerated() where !table.references.isEmpty {
            try transactions(table.rowCount, saveEvery) { index in
                try put(table, number, index, .withReferences)
                for (place, reference) in table.references.enumerated() where reference.rows[index] >= 0 {
                    try environment.putIndex(
                        indexes[number][place], value: UInt64(reference.rows[index] + 1), key: UInt64(index + 1))
                }
            }
        }
        for (number, link) in dataset.links.enumerated() {
            try transactions(link.pairs.count, saveEvery) { index in
                let pair = link.pairs[index]
                try environment.putIndex(links[number].forward, value: UInt64(pair.source + 1), key: UInt64(pair.destination + 1))
                try environment.putIndex(
                    links[number].backward, value: UInt64(pair.destination + 1), key: UInt64(pair.source + 1))
            }
        }
    }

    private enum Contents { case withoutReferences, withReferences }

    private func put(_ table: Table, _ number: Int, _ index: Int, _ contents: Contents) throws {
        row.removeAll()
        for attribute in table.attributes { row.append(attribute.values[index]) }
        for reference in table.references {
            row.append(contents == .withReferences && reference.rows[index] >= 0 ? .int(Int64(reference.rows[index] + 1)) : .null)
        }
        try row.withBytes { try environment.put(tables[number], key: UInt64(index + 1), $0) }
    }

    private func transactions(_ count: Int, _ size: Int, _ body: (Int) throws -> Void) throws {
        for start in stride(from: 0, to: count, by: size) {
            try environment.begin(.writing)
            for index in start..<min(count, start + size) { try body(index) }
            try environment.commit()
        }
    }

    /// Throws unless the file holds as many rows as were imported.
    func verify(_ dataset: Dataset) throws {
        try environment.begin(.reading)
        for (number, table) in dataset.tables.enumerated() {
            var count = 0
            try environment.forEach(tables[number]) { _ in count += 1 }
            guard count == table.rowCount else {
                throw VerificationError("raw LMDB: \(table.name) holds \(count) rows, expected \(table.rowCount)")
            }
        }
        for (number, link) in dataset.links.enumerated() {
            var count = 0
            try environment.forEach(links[number].forward) { _ in count += 1 }
            guard count == link.pairs.count else {
                throw VerificationError("raw LMDB: link \(number) holds \(count) pairs, expected \(link.pairs.count)")
            }
        }
        try environment.commit()
    }

    /// Gives the rows' third values, which are numbers, new ones.
    func updateAmounts(_ rows: [Int], _ saveEvery: Int) throws {
        var copy: [UInt8] = []
        try transactions(rows.count, saveEvery) { index in
            let key = UInt64(rows[index] + 1)
            let found: Void? = try environment.get(tables[0], key: key) { copy = Array($0) }
            guard found != nil else { return }
            // Two numbers lie before it, each with a byte that says whether there is one.
            copy.withUnsafeMutableBytes { $0.storeBytes(of: Double(index).bitPattern, toByteOffset: 19, as: UInt64.self) }
            try copy.withUnsafeBytes { try environment.put(tables[0], key: key, $0) }
        }
    }

    var firstTable: RawLMDB.Table { tables[0] }
}

/// A row as one would lay it out by hand: a byte for null or not, numbers as they are, strings with their length.
struct RowBytes {
    private var bytes: [UInt8] = []

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    mutating func append(_ value: Value) {
        bytes.append(value.isNull ? 0 : 1)
        switch value {
        case .null: break
        case .bool(let flag): bytes.append(flag ? 1 : 0)
        case .int(let number): appendNumber(number)
        case .uint(let number): appendNumber(number)
        case .double(let number): appendNumber(number.bitPattern)
        case .reference(let key): appendNumber(key)
        case .string(let text):
            appendNumber(UInt32(text.utf8.count))
            bytes.append(contentsOf: text.utf8)
        case .data(let data):
            appendNumber(UInt32(data.count))
            bytes.append(contentsOf: data)
        case .uuid(let uuid): withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
        }
    }

    private mutating func appendNumber<T: FixedWidthInteger>(_ number: T) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { try bytes.withUnsafeBytes(body) }
}
