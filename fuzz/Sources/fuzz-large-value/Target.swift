import ByteScript
@_spi(Fuzzing) import PageCodec

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// Any bytes are chunks of a large value or an error, also with a valid checksum. A value that is written is read back
/// unchanged.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLargeValue(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    if script.byte() & 1 == 0 { readAnything(&script) } else { roundTrip(&script) }
    return 0
}

private func readAnything(_ script: inout ByteScript) {
    let box = LargeValueBox()
    let mode = script.byte()
    let byteCount = mode & 1 != 0 ? script.number(below: 200_000) : Int(truncatingIfNeeded: script.word() & 0x3FFF_FFFF)
    let record = LargeValueRecord(number: 3, byteCount: max(byteCount, 1), hash: 0)
    for index in 0..<min(record.chunkCount, 4) {
        var chunk = script.bytes(atMost: 70_000)
        if mode & 2 != 0, chunk.count > 8 {
            // Sets a valid byte count and a known form, so that fuzzing reaches the frames.
            let count = UInt32(record.byteCount(ofChunk: index))
            for place in 0..<4 { chunk[place] = UInt8(truncatingIfNeeded: count >> UInt32(place * 8)) }
            chunk[4] &= 1
            for place in 5..<8 { chunk[place] = 0 }
        }
        let key = LargeChunk.key(3, index)
        if mode & 4 != 0 { ChecksumRepair.chunk(&chunk, key: key) }
        box.chunks[key] = chunk
    }
    let values = LargeValues(box, entity: 0)
    if let data = try? values.data(record) { precondition(data.count == record.byteCount, "a value of another byte count") }
    var seen = 0
    let isWhole =
        (try? values.eachChunk(of: record) { chunk in
            seen += chunk.count
            return true
        }) != nil
    precondition(!isWhole || seen == record.byteCount, "chunks of another byte count")
    _ = try? values.isText(record)
    withExtendedLifetime(box) {}
}

private func roundTrip(_ script: inout ByteScript) {
    let box = LargeValueBox()
    let form: LargeValueBox.Form = script.byte() & 1 == 0 ? .raw : .packed
    let count = 1 + script.number(below: 200_000)
    let pattern = script.bytes(atMost: 300)
    let bytes = (0..<count).map { pattern.isEmpty ? UInt8(truncatingIfNeeded: $0) : pattern[$0 % pattern.count] }
    // The chunk is written here, so reading it must succeed.
    let record = try! box.add(bytes, form)
    let values = LargeValues(box, entity: 0)
    let read = try! values.data(record)
    precondition(read.elementsEqual(bytes), "a value does not come back as it was")
    var hash = LargeValueHash()
    try! values.eachChunk(of: record) { chunk in
        hash.add(chunk)
        return true
    }
    precondition(hash.value == record.hash, "a value has another hash than its record")
    withExtendedLifetime(box) {}
}
