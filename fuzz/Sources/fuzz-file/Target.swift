import ByteScript
import LMDBStore
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
            ])
    ], links: [LinkSchema(name: "Thing.peers", source: 0, destination: 0)])

private let file = FileManager.default.temporaryDirectory.appendingPathComponent("strata-fuzz-\(UUID().uuidString)")

private let copy = file.appendingPathExtension("copy")

private let options: LMDBStore.Options = {
    var options = LMDBStore.Options()
    options.mapSize = 1 << 24
    options.maximumMapSize = 1 << 24
    options.openingCheck = .everything
    return options
}()

/// The bytes of a sound file: pages of objects, indexes with short and long lists, links, free pages, a history.
private let sound: [UInt8] = {
    do {
        defer { removeFile() }
        try fill()
        return Array(try Data(contentsOf: file))
    } catch { fatalError("the sound file cannot be made: \(error)") }
}()

private func removeFile() {
    for suffix in ["", "-lock", "-signal"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
}

private func fill() throws {
    let store = try LMDBStore.open(file, schema: schema, options: options)
    for round in 0..<6 {
        try store.write(.durable) { transaction in
            let builder = LayerBuilder(schema: schema)
            let keys = try transaction.allocateKeys(0, pages: 1)
            for key in keys {
                builder.insert(
                    [
                        .int(key.rawValue % 7 == 0 ? 1 : 0), key.rawValue % 5 == 0 ? .null : .string("thing \(key)"),
                        key.rawValue % 7 == 0 ? .reference(keys.lowerBound) : .null,
                    ], entity: 0, key: key)
                if key.rawValue % 2 == 0 { builder.setLink(0, from: key, to: keys.lowerBound, linked: true) }
            }
            if round == 4 {
                for key in 128..<192 as Range<ObjectKey> { builder.delete(entity: 0, key: key) }
            }
            let layer = builder.finish(as: transaction.generation.next)
            try transaction.apply(layer, changes: layer.changeSet())
        }
    }
}

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// Any bytes are a store or an error, and so is a sound file with some bytes changed, cut or repeated. The file is salvaged, opened with
/// a check of all its trees, verified, read and written.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFile(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    let mode = script.byte()
    let bytes: [UInt8]
    switch mode & 3 {
    case 0: bytes = script.rest()
    case 1: bytes = Array(script.damaged(sound).prefix(script.number(below: sound.count)))
    case 2: bytes = damagedInHeaders(&script)
    default: bytes = script.damaged(sound)
    }
    defer { removeFile() }
    do {
        try Data(bytes).write(to: file)
        try salvage()
        try use(isWriting: mode & 4 != 0)
    } catch is StoreError {
    } catch { fatalError("an error of another kind: \(error)") }
    return 0
}

/// Changes bytes that LMDB navigates by: the beginning of a page, or one of its entries.
private func damagedInHeaders(_ script: inout ByteScript) -> [UInt8] {
    var bytes = sound
    while !script.isDone {
        let page = script.number(below: sound.count / 4096) * 4096
        let place = Int(script.byte())
        bytes[page + (place < 192 ? place : 4095 - (place - 192) * 4)] = script.byte()
    }
    return bytes
}

/// Copies what whole pages lead to, which must not crash whatever the bytes are.
private func salvage() throws {
    defer { for suffix in ["", "-lock"] { try? FileManager.default.removeItem(atPath: copy.path + suffix) } }
    do { _ = try LMDBStore.salvage(file, to: copy) } catch is StoreError {}
}

private func use(isWriting: Bool) throws {
    let store = try LMDBStore.open(file, schema: schema, options: options)
    let findings = try store.verify()
    let snapshot = try store.snapshot()
    let keys = try? snapshot.keys(StoreQuery(entity: 0, predicate: .compare(0, .equal, to: .int(1))))
    _ = try? snapshot.count(StoreQuery(entity: 0, predicate: .keys(Set(1...300))))
    _ = try? store.retention(of: [snapshot])
    for key in keys?.prefix(50) ?? [] {
        for column in 0..<3 as Range<ColumnIndex> { _ = try? snapshot.value(0, key: key, column: column) }
    }
    guard isWriting else { return }
    try store.write(.durable) { transaction in
        let builder = LayerBuilder(schema: schema)
        let key = try transaction.allocateKeys(0, pages: 1).lowerBound
        builder.insert([.int(1), .string("new"), .null], entity: 0, key: key)
        let layer = builder.finish(as: transaction.generation.next)
        try transaction.apply(layer, changes: layer.changeSet())
    }
    let after = try store.verify()
    precondition(!findings.isEmpty || after.isEmpty, "a save has damaged a sound store: \(after)")
}
