@_spi(Fuzzing) import PageCodec

/// Any bytes are a change set or an error, also with a valid checksum.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChangeSet(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    _ = try? ChangeSetCodec.decode(bytes)
    var repaired = Array(bytes)
    ChecksumRepair.changeSet(&repaired)
    if let set = try? repaired.withUnsafeBytes({ try ChangeSetCodec.decode($0) }) {
        let again = ChangeSetCodec.encode(set)
        let decoded = again.withUnsafeBytes { try? ChangeSetCodec.decode($0) }
        // Compares the bytes, because NaN in a tombstone equals nothing.
        precondition(decoded.map(ChangeSetCodec.encode) == again, "a change set does not come back as it was")
    }
    return 0
}
