import ByteScript
import PageCodec
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Random values of any size, often small.
extension ByteScript {
    fileprivate mutating func integer() -> Int64 {
        let width = byte()
        if width < 128 { return Int64(width) - 64 }
        return (0..<Int(width & 7) + 1).reduce(0) { number, _ in number << 8 | Int64(byte()) }
    }

    fileprivate mutating func letters() -> String {
        let letters: [Character] = ["a", "é", "😀", "\0"]
        let length = byte()
        return String(repeating: letters[Int(length & 3)], count: Int(length >> 2) * (length > 250 ? 40 : 1))
    }

    fileprivate mutating func value(_ column: ColumnSchema) -> Value {
        if column.isOptional, byte() < 64 { return .null }
        switch column.type {
        case .bool: return .bool(byte() & 1 != 0)
        case .int8: return .int(Int64(Int8(truncatingIfNeeded: integer())))
        case .int16: return .int(Int64(Int16(truncatingIfNeeded: integer())))
        case .int32: return .int(Int64(Int32(truncatingIfNeeded: integer())))
        case .int64: return .int(integer())
        case .uint8: return .int(Int64(UInt8(truncatingIfNeeded: integer())))
        case .uint16: return .int(Int64(UInt16(truncatingIfNeeded: integer())))
        case .uint32: return .int(Int64(UInt32(truncatingIfNeeded: integer())))
        case .uint64: return .uint(UInt64(bitPattern: integer()))
        case .reference: return .reference(ObjectKey(rawValue: UInt64(bitPattern: integer())))
        case .float: return .double(Double(Float(integer())))
        case .double, .date: return .double(Double(integer()))
        case .string: return .string(letters())
        case .data: return .data(Data(letters().utf8))
        case .uuid: return .uuid(UUID(uuid: (byte(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte())))
        }
    }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRoundTrip(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    let columns = (0..<Int(script.byte() & 7)).map { number in
        let choice = script.byte()
        let type = ColumnType.allCases[Int(choice) % ColumnType.allCases.count]
        return ColumnSchema(name: "c\(number)", type: type, isOptional: choice >= 128, destination: type == .reference ? 0 : nil)
    }
    let entity = EntitySchema(name: "Thing", columns: columns)
    // The schema is within the limits, so a layout can be made.
    let layout = try! PageLayout(entity, schemaNumber: 1)
    var objects: [Int: ([Value], Generation)] = [:]
    var bytes: [UInt8] = []
    let box = LargeValueBox()
    let large = LargeValues(box, entity: 0)
    while !script.isDone {
        let builder = LayerBuilder(schema: StoreSchema(entities: [entity]))
        var changed: Set<Int> = []
        for _ in 0..<Int(script.byte() & 15) + 1 { change(&script, entity, builder, &changed, &objects) }
        guard let changes = builder.finish(as: nil).entity(0)?.page(0) else { continue }
        // The limit of out-of-line strings and data changes from merge to merge.
        let limit = [Int.max, 0, 5, 60][Int(script.byte() & 3)]
        // The page is sound and the values fit. An error here is a bug and stops the fuzzer.
        bytes = try! bytes.withUnsafeBytes { old in
            let page = old.isEmpty ? nil : try ObjectPage(old, layout: layout, check: .checksum, large: large)
            return try box.merge(page, changes, layout, limit: limit)
        }
        compare(bytes, layout, objects, large)
        box.takeBack()
    }
    return 0
}

private func change(
    _ script: inout ByteScript, _ entity: EntitySchema, _ builder: borrowing LayerBuilder, _ changed: inout Set<Int>,
    _ objects: inout [Int: ([Value], Generation)]
) {
    let choice = script.byte()
    let slot = Int(choice & 63)
    let kind: RowKind = choice < 80 ? .insert : (choice < 220 ? .update : .delete)
    let generation = Generation(rawValue: UInt64(bitPattern: script.integer()) & (1 << 62 - 1))
    let wanted = script.byte()
    var row: [ColumnIndex: Value] = [:]
    for column in entity.columnIndices
    where kind == .insert || kind == .update && wanted >> (column.rawValue & 7) & 1 != 0 {
        row[column] = script.value(entity.columns[column])
    }
    // Each slot is set once per merge, because the layer has one row per slot.
    guard changed.insert(slot).inserted else { return }
    let key = ObjectKey(page: 0, slot: slot)
    var values = objects[slot]?.0 ?? entity.columns.map { _ in .null }
    for (column, value) in row { values[column] = value }
    switch kind {
    case .delete:
        builder.delete(entity: 0, key: key, generation: generation)
        objects[slot] = nil
    case .insert:
        builder.insert(values, entity: 0, key: key, generation: generation)
        objects[slot] = (values, generation)
    case .update:
        builder.update(row, entity: 0, key: key, generation: generation)
        guard objects[slot] != nil || row.count == entity.columns.count else { return }
        objects[slot] = (values, generation)
    }
}

private func compare(_ bytes: [UInt8], _ layout: PageLayout, _ objects: [Int: ([Value], Generation)], _ large: LargeValues) {
    precondition(bytes.isEmpty == objects.isEmpty, "a page without objects, or objects without a page")
    guard !bytes.isEmpty else { return }
    bytes.withUnsafeBytes { bytes in
        // The codec wrote the page, so the check must pass.
        let page = try! ObjectPage(bytes, layout: layout, check: .full, large: large)
        precondition(page.presence.nonzeroBitCount == objects.count, "presence differs")
        for (slot, (values, version)) in objects {
            precondition(page.presence >> UInt64(slot) & 1 != 0, "slot \(slot) is missing")
            precondition(try! page.version(slot) == version, "version of slot \(slot) differs")
            for column in 0..<ColumnIndex(rawValue: values.count) {
                precondition(try! page.value(slot, column) == values[column], "slot \(slot), column \(column) differs")
            }
        }
    }
}
