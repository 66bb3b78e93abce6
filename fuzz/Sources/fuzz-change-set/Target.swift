@_spi(Fuzzing) import PageCodec
import StoreInterface

/// Any bytes are a change set or an error, also behind a right checksum; and, by type, an index key or an error.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChangeSet(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    _ = try? ChangeSetCodec.decode(bytes)
    var repaired = Array(bytes)
    ChecksumRepair.changeSet(&repaired)
    if let set = try? repaired.withUnsafeBytes({ try ChangeSetCodec.decode($0) }) {
        let again = ChangeSetCodec.encode(set)
        let decoded = again.withUnsafeBytes { try? ChangeSetCodec.decode($0) }
        // By bytes: NaN in a tombstone equals nothing.
        precondition(decoded.map(ChangeSetCodec.encode) == again, "a change set does not come back as it was")
    }
    guard count > 0 else { return 0 }
    let types = ColumnType.allCases
    let column = ColumnSchema(name: "c", type: types[Int(bytes[0]) % types.count])
    let key = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
    if let value = try? KeyCodec.decode(key, column: column) {
        let again = try? KeyCodec.encode(value, column: column)
        let decoded = again?.bytes.withUnsafeBytes { try? KeyCodec.decode($0, column: column) }
        precondition(decoded?.order(value) == 0, "an index key does not come back as it was")
    }
    return 0
}
