import ByteScript
@_spi(Fuzzing) import Datasets
import SQLiteStore
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private let schema = StoreSchema(
    entities: [
        EntitySchema(
            name: "Thing",
            columns: [
                ColumnSchema(name: "number", type: .int32, index: .indexed),
                ColumnSchema(name: "text", type: .string, isOptional: true, index: .unique),
                ColumnSchema(name: "amount", type: .double, isOptional: true),
                ColumnSchema(name: "other", type: .reference, isOptional: true, destination: 0),
            ])
    ], links: [LinkSchema(name: "Thing.peers", source: 0, destination: 0)])

private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-fuzz-\(UUID().uuidString)")

/// The bytes of a sound database: a table with values of several types, a join table, and indexes.
private let sound: [UInt8] = {
    do {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("sound")
        let store = try SQLiteStore(url: file, schema: schema)
        try store.write(.durable) { transaction in
            let builder = LayerBuilder(schema: schema)
            let keys = try transaction.allocateKeys(0, pages: 1)
            for key in keys {
                let number = key.rawValue
                builder.insert(
                    [
                        .int(Int64(number % 7)), number % 5 == 0 ? .null : .string("thing \(number)"),
                        number % 3 == 0 ? .double(0.5) : .null, number % 2 == 0 ? .reference(keys.lowerBound) : .null,
                    ], entity: 0, key: key)
                if number % 2 == 0 { builder.setLink(0, from: key, to: keys.lowerBound, linked: true) }
            }
            let layer = builder.finish(as: transaction.generation.next)
            try transaction.apply(layer, changes: layer.changeSet())
        }
        try store.shutDown()
        return Array(try Data(contentsOf: file))
    } catch { fatalError("the sound database cannot be made: \(error)") }
}()

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// Any bytes are CSV files, a database, a model of Core Data, or an error. The values of a data set fit its columns, and its references and
/// pairs lead to rows.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDataset(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    switch script.byte() % 6 {
    case 0: readRecords(script.rest())
    case 1:
        let first = script.bytes(atMost: 4096)
        read(["first.csv": first, "second.tsv": script.rest()], nil)
    case 2: read(["database": script.rest()], "database")
    case 3: read(["database": script.damaged(sound)], "database")
    case 4: _ = ModelBytes.isModel(script.rest())
    default: _ = ModelBytes.isModel(stored(archive(&script)))
    }
    return 0
}

private func readRecords(_ bytes: [UInt8]) {
    var parser = CSVParser(bytes, file: "first.csv")
    var line = 0
    while let record = try? parser.next() {
        precondition(!record.fields.isEmpty, "a record without fields")
        precondition(record.line > line, "a record before the one that it follows")
        line = record.line
    }
}

/// Reads a folder of files, or one of them.
private func read(_ files: [String: [UInt8]], _ name: String?) {
    // Made before the folder, which it removes.
    _ = sound
    do {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, bytes) in files { try Data(bytes).write(to: folder.appendingPathComponent(name)) }
        let data = try Dataset.read(name.map { folder.appendingPathComponent($0).path } ?? folder.path)
        check(data)
        _ = try? data.model()
    } catch is DatasetError {
    } catch { fatalError("an error of another kind: \(error)") }
}

private func check(_ data: Dataset) {
    for table in data.tables {
        for attribute in table.attributes {
            precondition(attribute.values.count == table.rowCount, "a column of another length than its table")
            for value in attribute.values {
                precondition(attribute.type.accepts(value, isOptional: true), "a value of another type than its column")
            }
        }
        for reference in table.references {
            precondition(reference.rows.count == table.rowCount, "references of more or fewer rows than there are")
            let known = TableReference.nobody..<Int32(data.tables[reference.destination].rowCount)
            precondition(reference.rows.allSatisfy(known.contains), "a reference to no row")
        }
    }
    for link in data.links {
        let (sources, destinations) = (data.tables[link.source].rowCount, data.tables[link.destination].rowCount)
        for pair in link.pairs {
            precondition((0..<sources).contains(Int(pair.source)), "a pair of no source")
            precondition((0..<destinations).contains(Int(pair.destination)), "a pair of no destination")
        }
    }
}

/// Returns a keyed archive of at most 5 KiB, whose objects the script makes.
private func archive(_ script: inout ByteScript) -> [UInt8] {
    var objects: [[UInt8]] = [[0xD1, 1, 2], [0x58] + Array("$objects".utf8), []]
    while !script.isDone, objects.count < 200 { objects.append(script.bytes(atMost: 24)) }
    let members = (3..<objects.count).map { UInt8($0) }
    objects[2] = [0xAF, 0x10, UInt8(members.count)] + members
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
        offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)]
        bytes += object
    }
    let table = bytes.count
    bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1]
    for number in [objects.count, 0, table] { bytes += [0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 0xFF)] }
    return bytes
}

/// Returns bytes as deflated data that is not compressed.
private func stored(_ bytes: [UInt8]) -> [UInt8] {
    [1, UInt8(bytes.count & 0xFF), UInt8(bytes.count >> 8), 0, 0] + bytes
}
