@_spi(Fuzzing) import PageCodec

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

/// Any bytes are the record of a dictionary or an error, also with a valid checksum. A record that decodes is encoded to the
/// same bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDictionaryRecord(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    _ = try? DictionaryRecord(bytes).dictionary()
    var repaired = Array(bytes)
    ChecksumRepair.dictionary(&repaired)
    guard let record = repaired.withUnsafeBytes({ try? DictionaryRecord($0) }) else { return 0 }
    precondition(record.pageCount >= 0, "an entity with \(record.pageCount) pages")
    let again = record.encoded().withUnsafeBytes { try? DictionaryRecord($0) }
    precondition(again?.encoded() == record.encoded(), "a record does not come back as it was")
    guard let dictionary = try? record.dictionary() else { return 0 }
    precondition(dictionary.bytes.count == repaired.count - 24, "a dictionary of other bytes than the record's")
    return 0
}
