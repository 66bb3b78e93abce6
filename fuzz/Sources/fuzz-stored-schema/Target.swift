import ByteScript
@_spi(Fuzzing) import LMDBStore
import StoreInterface

private let first = StoreSchema(
    entities: [
        EntitySchema(
            name: "Thing",
            columns: [
                ColumnSchema(name: "number", type: .int32, index: .indexed),
                ColumnSchema(name: "text", type: .string, isOptional: true),
                ColumnSchema(name: "other", type: .reference, isOptional: true, destination: 1),
                ColumnSchema(name: "flag", type: .bool),
            ], indexes: [IndexSchema(columns: [0, 1], kind: .unique)]),
        EntitySchema(name: "Other", columns: [ColumnSchema(name: "amount", type: .float)]),
    ], links: [LinkSchema(name: "Thing.peers", source: 0, destination: 1)])

/// One column wider, one required, one added; an entity and a link removed.
private let second: StoreSchema = {
    var schema = first
    schema.entities[0].columns[0].type = .int64
    schema.entities[0].columns[1].isOptional = false
    schema.entities[0].columns[1].defaultValue = .string("none")
    schema.entities[0].columns.remove(at: 2)
    schema.entities[0].columns.append(ColumnSchema(name: "more", type: .double, defaultValue: .double(.nan)))
    schema.entities.remove(at: 1)
    schema.links = []
    schema.version = SchemaVersion(2)
    return schema
}()

// The change is lightweight.
private let sound = try! SchemaBytes.encoded([first, second])

private let history = ChangeSet(
    generation: 1,
    entities: [
        .init(entity: 0, pages: [.init(number: 1, inserted: 1, updated: 2, deleted: 4, columns: ColumnSet(first: 3))]),
        .init(entity: 1, pages: [.init(number: 1, inserted: 1, updated: 0, deleted: 0, columns: ColumnSet())]),
    ], links: [.init(link: 0, sources: [64], destinations: [65])],
    tombstones: [Tombstone(entity: 0, key: 66, values: [.init(column: 2, value: .int(5))])])

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// The first byte selects which version of a file's schema consists of any bytes, or is damaged. The versions are read or
/// refused, and a model follows.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzStoredSchema(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    let mode = script.byte()
    let place = Int(mode & 1)
    var versions = sound
    versions[place] = mode & 2 != 0 ? script.rest() : script.damaged(sound[place])
    if mode & 4 != 0 { versions.remove(at: 1 - place) }
    let isSchema = try? SchemaBytes.read(versions, then: mode & 8 != 0 ? first : second, history: history)
    precondition(count > 1 || mode & 2 != 0 || isSchema != false, "a sound schema is refused")
    return 0
}
