import ByteScript
import LMDBStore
import MemoryStore
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
                ColumnSchema(name: "text", type: .string, isOptional: true, index: .indexed),
                ColumnSchema(name: "other", type: .reference, isOptional: true, destination: 0),
                ColumnSchema(name: "bytes", type: .data, isOptional: true),
            ])
    ], links: [LinkSchema(name: "Thing.peers", source: 0, destination: 0)])

/// Few keys, so that operations often concern the same object.
private let keys = (64..<214 as Range<ObjectKey>)

/// Ends a transaction like a process that ends before its commit.
private struct Crash: Error {}

extension ByteScript {
    fileprivate mutating func key() -> ObjectKey { keys.lowerBound.advanced(by: Int(byte()) % keys.count) }

    fileprivate mutating func value(_ column: ColumnIndex) -> Value {
        let choice = byte()
        switch column {
        case 0: return .int(Int64(Int8(bitPattern: choice)))
        case 1: return choice < 32 ? .null : .string(String(repeating: choice & 1 == 0 ? "a" : "é", count: Int(choice) * 3))
        case 2: return choice < 64 ? .null : .reference(keys.lowerBound.advanced(by: Int(choice) % keys.count))
        default: return choice < 32 ? .null : .data(Data(repeating: choice, count: Int(choice) * Int(choice & 7)))
        }
    }

    /// Makes some changes of present and absent objects and of pairs, as a context would pass them to the store. References and
    /// pairs lead to objects that exist after the save.
    fileprivate mutating func layer(over present: Set<ObjectKey>, as generation: Generation) -> Layer {
        let builder = LayerBuilder(schema: schema)
        var left = present
        for _ in 0..<Int(byte() & 31) {
            let key = key()
            switch byte() & 3 {
            case 0 where present.contains(key):
                builder.delete(entity: 0, key: key)
                left.remove(key)
            case 1 where left.contains(key):
                var values: [ColumnIndex: Value] = [:]
                for column in schema.entities[0].columnIndices where byte() & 1 != 0 { values[column] = value(column) }
                if !values.isEmpty { builder.update(values, entity: 0, key: key) }
            default:
                guard !present.contains(key) else { continue }
                builder.insert(schema.entities[0].columnIndices.map { value($0) }, entity: 0, key: key)
                left.insert(key)
            }
        }
        for _ in 0..<Int(byte() & 7) { builder.setLink(0, from: key(), to: key(), linked: byte() & 1 == 0) }
        return builder.finish(as: generation)
    }
}

/// A store on disk and a store in memory that must show the same.
private final class Pair {
    let url: URL
    var file: LMDBStore?
    let memory = MemoryStore(schema: schema)

    init(_ url: URL) throws {
        self.url = url
        let made = try LMDBStore.open(url, schema: schema)
        // The pages of the keys.
        let leased = try made.write(.durable) { try $0.allocateKeys(0, pages: 4) }
        precondition(leased.lowerBound <= keys.lowerBound && leased.upperBound >= keys.upperBound)
        file = made
    }

    func save(_ script: inout ByteScript, crashing: Bool) throws {
        let layer = try script.layer(over: present(), as: memory.snapshot().generation.next)
        do {
            try file?.write(.durable) { transaction in
                try transaction.apply(layer, changes: layer.changeSet())
                if crashing { throw Crash() }
            }
        } catch is Crash { return }
        try memory.write(.durable) { try $0.apply(layer, changes: layer.changeSet()) }
    }

    func reopen() throws {
        file = nil
        file = try LMDBStore.open(url, schema: schema)
    }

    func present() throws -> Set<ObjectKey> { Set(try memory.snapshot().keys(StoreQuery(entity: 0))) }

    func check(_ script: inout ByteScript) throws {
        guard let file else { return }
        let (left, right) = (try file.snapshot(), try memory.snapshot())
        precondition(left.generation == right.generation, "the saves that are there")
        let found = try left.keys(StoreQuery(entity: 0))
        let expected = try right.keys(StoreQuery(entity: 0))
        precondition(found == expected, "the objects that are there")
        for key in found {
            for column in schema.entities[0].columnIndices {
                let values = (try left.value(0, key: key, column: column), try right.value(0, key: key, column: column))
                precondition(values.0 == values.1, "a value")
            }
            let versions = (try left.version(0, key), try right.version(0, key))
            precondition(versions.0 == versions.1, "a version")
            let relation = Relation.link(0, .backward, destination: 0)
            let related = (try left.related(relation, to: key), try right.related(relation, to: key))
            precondition(related.0 == related.1, "a relationship")
        }
        for column in 0..<2 as Range<ColumnIndex> {
            let value = script.value(column)
            let query = StoreQuery(entity: 0, predicate: .compare(column, column == 0 ? .less : .equal, to: value))
            let keys = (Set(try left.keys(query)), Set(try right.keys(query)))
            precondition(keys.0 == keys.1, "an index")
        }
    }
}

/// The bytes are saves, saves that fail before their commit, and reopenings. Afterwards the file shows what a store
/// in memory shows. Verification finds nothing except references that the script left dangling.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzStore(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-fuzz-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    do {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let pair = try Pair(folder.appendingPathComponent("store"))
        var steps = 0
        while !script.isDone, steps < 40 {
            steps += 1
            switch script.byte() & 7 {
            case 0: try pair.reopen()
            case 1: try pair.save(&script, crashing: true)
            case 2: try pair.check(&script)
            default: try pair.save(&script, crashing: false)
            }
        }
        try pair.check(&script)
        try pair.reopen()
        try pair.check(&script)
        let findings = try pair.file?.verify().filter { !$0.description.contains(" refers to ") } ?? []
        // Unlike a precondition, this prints the reason in release builds too.
        if !findings.isEmpty { fatalError("\(findings)") }
    } catch {
        fatalError("\(error)")
    }
    return 0
}
