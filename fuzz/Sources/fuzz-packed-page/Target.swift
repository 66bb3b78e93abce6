@_spi(Fuzzing) import PageCodec
import StoreInterface

private let entity = EntitySchema(
    name: "Thing", columns: [ColumnSchema(name: "name", type: .string), ColumnSchema(name: "count", type: .int32)])
// The schema above is within the limits, so a layout can be made.
private let layout = try! PageLayout(entity, schemaNumber: 1)
// A short text is a valid dictionary.
private let dictionary = try! PageDictionary(Array("object number object name thing".utf8))

/// A sound page of 20 objects.
private let soundPage: [UInt8] = {
    let changes = LayerBuilder(schema: StoreSchema(entities: [entity]))
    for slot in 0..<UInt64(20) {
        changes.insert(
            [.string("object number \(slot)"), .int(Int64(slot * slot))], entity: 0, key: ObjectKey(rawValue: slot),
            generation: Generation(rawValue: slot))
    }
    let layer = changes.finish(as: nil)
    // The rows fit the schema above.
    return try! PageMerge(old: nil, changes: layer.entity(0)!.page(0)!, layout: layout).withBytes { Array($0) }
}()

// The page is sound, so it can be packed.
private let packedPage = try! soundPage.withUnsafeBytes {
    try PagePacker(dictionary: dictionary, number: 1, level: 3).pack($0)!
}

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// The first byte selects the meaning of the rest: a packed page, a list of changes to a sound page (place, place, value), a
/// raw page to be packed, or a dictionary.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPackedPage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    var bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let mode = bytes.removeFirst()
    switch mode & 3 {
    case 0: read(bytes, mode & 4 != 0 ? dictionary : nil)
    case 1:
        var damaged = packedPage
        for i in stride(from: 0, to: bytes.count - 2, by: 3) {
            damaged[(Int(bytes[i]) << 8 | Int(bytes[i + 1])) % damaged.count] = bytes[i + 2]
        }
        read(damaged, dictionary)
    case 2: pack(bytes)
    default:
        if let other = try? PageDictionary(bytes) {
            read(packedPage, other)
            // A dictionary may be refused. Pages that it packs must be readable.
            guard let packer = try? PagePacker(dictionary: other, number: 1, level: 1),
                let packed = try? soundPage.withUnsafeBytes({ try packer.pack($0) })
            else { return 0 }
            let again = try? packed.withUnsafeBytes { try PackedPage($0).unpacked(other) }
            precondition(again == soundPage, "a page does not come back as it was")
        }
    }
    return 0
}

private func read(_ bytes: [UInt8], _ dictionary: PageDictionary?) {
    bytes.withUnsafeBytes { bytes in
        guard let packed = try? PackedPage(bytes) else { return }
        precondition(packed.unpackedByteCount <= 40 + (bytes.count / 4 + 1) << 17, "a page claims more than its bytes can hold")
        guard let raw = try? packed.unpacked(dictionary) else { return }
        raw.withUnsafeBytes { raw in
            guard let page = try? ObjectPage(raw, layout: layout, check: .full) else { return }
            precondition(page.presence == packed.presence, "presence differs")
            for slot in SlotIterator(page.presence) {
                precondition((try? page.value(slot, 0)) != nil, "a checked page has a value that cannot be read")
            }
        }
    }
}

private func pack(_ bytes: [UInt8]) {
    var bytes = bytes
    ChecksumRepair.page(&bytes)
    // The packer is made in its memory pool once per run, so small inputs are cheap.
    guard let packer = try? PagePacker(dictionary: dictionary, number: 1, level: 1),
        let packed = try? bytes.withUnsafeBytes({ try packer.pack($0) })
    else { return }
    let again = packed.withUnsafeBytes { try? PackedPage($0).unpacked(dictionary) }
    // A page without objects is not valid, so it is not unpacked.
    precondition(again == nil || again == bytes, "a page does not come back as it was")
}
