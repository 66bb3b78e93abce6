import ByteScript
@_spi(Fuzzing) import PageCodec
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One column of every type, so that the bytes can reach every reader.
private let entity = EntitySchema(
    name: "Thing",
    columns: ColumnType.allCases.enumerated().map { number, type in
        ColumnSchema(name: type.rawValue, type: type, isOptional: number % 2 == 0, destination: type == .reference ? 0 : nil)
    })
// The schema above is within the limits, so a layout can be made.
private let layout = try! PageLayout(entity, schemaNumber: 1)
private let masks = [
    StorePredicate.compare(1, .less, to: .int(3)), .compare(4, .greater, to: .int(-9)), .compare(8, .equal, to: .uint(3)),
    .compare(9, .less, to: .double(1)), .compare(10, .notEqual, to: .double(1)), .compare(12, .less, to: .string("m")),
    .compare(13, .equal, to: .data(.init())), .compare(15, .greater, to: .reference(9)), .isIn(3, [.int(1), .null]),
    .string(12, .contains, pattern: "é", sensitivity: .insensitive),
    .string(12, .hasSuffix, pattern: "a", sensitivity: .sensitive), .compareColumns(1, .less, to: 2),
].map { CompiledPredicate($0) }

/// An update of a number and of a string in slot 0.
private let changes: LayerPage? = {
    let changes = LayerBuilder(schema: StoreSchema(entities: [entity]))
    changes.update([4: .int(1 << 40), 12: .string("changed")], entity: 0, key: 0)
    return changes.finish(as: nil).entity(0)?.page(0)
}()

/// Out-of-line strings and data of the sound page.
// Safe because the fuzzer calls from one thread.
nonisolated(unsafe) private let box = LargeValueBox()
/// The length above which strings and data of pages made here are stored out of line.
private let limit = 8

/// A sound page of 20 objects, which the fuzzer damages.
private let soundPage: [UInt8] = {
    let changes = LayerBuilder(schema: StoreSchema(entities: [entity]))
    for slot in 0..<UInt64(20) {
        changes.insert(
            entity.columns.map { $0.isOptional && slot % 3 == 0 ? .null : value($0.type, slot) }, entity: 0,
            key: ObjectKey(rawValue: slot), generation: Generation(rawValue: slot * 300))
    }
    let layer = changes.finish(as: nil)
    // The rows fit the schema above.
    return try! box.merge(nil, layer.entity(0)!.page(0)!, layout, limit: limit)
}()

private func value(_ type: ColumnType, _ number: UInt64) -> Value {
    switch type {
    case .bool: .bool(number % 2 == 0)
    case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32: .int(Int64(number))
    case .uint64: .uint(number << 33)
    case .float, .double, .date: .double(Double(number))
    case .string: .string(number % 3 == 0 ? "text" : "text \(number) é")
    case .data: .data(.init([1, 2, UInt8(number)] + Array(repeating: 7, count: Int(number))))
    case .uuid: .uuid(.init(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number))))
    case .reference: .reference(ObjectKey(rawValue: number * 70_000))
    }
}

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers. The round
/// trip target keeps it.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// The first byte selects how the rest is checked, and whether it is a page or a list of changes to a sound page (place, place,
/// value). It also selects whether the checksum is corrected, so that fuzzing reaches the code after the check.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPageDecode(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    var bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let mode = bytes.removeFirst()
    if mode & 4 != 0 {
        var damaged = soundPage
        for i in stride(from: 0, to: bytes.count - 2, by: 3) {
            damaged[(Int(bytes[i]) << 8 | Int(bytes[i + 1])) % damaged.count] = bytes[i + 2]
        }
        bytes = damaged
    }
    if mode & 1 != 0 { ChecksumRepair.page(&bytes) }
    bytes.withUnsafeBytes { bytes in
        let check: ObjectPage.Check = mode & 2 != 0 ? .full : .header
        defer { box.takeBack() }
        let large = LargeValues(box, entity: 0)
        guard let page = try? ObjectPage(bytes, layout: layout, check: check, large: large) else { return }
        if check == .full { readAll(page, mustSucceed: true) } else { readAll(page, mustSucceed: false) }
        for mask in masks {
            if let found = try? mask.mask(of: page, number: 0) {
                precondition(found & ~page.presence == 0, "mask exceeds presence")
            }
        }
        let chunks = box.chunks
        defer { box.chunks = chunks }
        guard let changes, let merge = try? box.merge(page, changes, layout, limit: limit) else { return }
        guard check == .full else { return }
        merge.withUnsafeBytes { merged in
            // A merge of a sound page gives a sound page.
            let page = try! ObjectPage(merged, layout: layout, check: .full, large: large)
            readAll(page, mustSucceed: true)
        }
    }
    return 0
}

private func readAll(_ page: ObjectPage, mustSucceed: Bool) {
    for slot in SlotIterator(page.presence) {
        for column in entity.columnIndices {
            let value = try? page.value(slot, column)
            // A record may name a value that does not exist.
            let isOutside = (try? page.largeValue(slot, column)) ?? nil != nil
            precondition(value != nil || !mustSucceed || isOutside, "a checked page has a value that cannot be read")
        }
        let version = try? page.version(slot)
        precondition(version != nil || !mustSucceed, "a checked page has a version that cannot be read")
    }
}
