import ByteScript
import PageCodec
import StoreInterface

private let types = ColumnType.allCases

/// The first byte chooses the check. Either any bytes are the key of one value or an error, or keys of one or several values
/// have the order of the values.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzIndexKey(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    let mode = script.byte()
    if mode & 1 == 0 {
        decode(ColumnSchema(name: "c", type: types[Int(mode >> 1) % types.count]), script.rest())
    } else {
        let columns = (0...script.number(below: 3)).map { _ in
            ColumnSchema(name: "c", type: types[script.number(below: types.count)], isOptional: true)
        }
        compare(columns, columns.map { script.value($0.type) }, columns.map { script.value($0.type) })
    }
    return 0
}

private func decode(_ column: ColumnSchema, _ bytes: [UInt8]) {
    guard let value = bytes.withUnsafeBytes({ try? KeyCodec.decode($0, column: column) }) else { return }
    let again = try? KeyCodec.encode(value, column: column)
    let decoded = again?.bytes.withUnsafeBytes { try? KeyCodec.decode($0, column: column) }
    precondition(decoded?.order(value) == 0, "an index key does not come back as it was")
}

private func compare(_ columns: [ColumnSchema], _ a: [Value], _ b: [Value]) {
    var keys: [[UInt8]] = []
    var isCut = false
    for values in [a, b] {
        var key: [UInt8] = []
        do {
            if columns.count > 1 {
                isCut = try KeyCodec.append(values, columns: columns, to: &key) || isCut
            } else {
                isCut = try KeyCodec.append(values[0], column: columns[0], to: &key) || isCut
            }
        } catch { fatalError("a value of the column's type has no key: \(error)") }
        precondition(!key.isEmpty && key.count <= KeyCodec.maximumCount, "a key of \(key.count) bytes")
        keys.append(key)
    }
    var order = 0
    for (left, right) in zip(a, b) where order == 0 { order = left.order(right) }
    let found = keys[0] == keys[1] ? 0 : (keys[0].lexicographicallyPrecedes(keys[1]) ? -1 : 1)
    // Equal keys that were cut do not show the order of their values.
    precondition(found == order.signum() || (isCut && found == 0), "the keys of \(a) and \(b) are ordered \(found)")
    prefix(columns, a, keys[0])
}

/// Checks that the key of a string begins with the key of each of its prefixes.
private func prefix(_ columns: [ColumnSchema], _ values: [Value], _ key: [UInt8]) {
    guard columns.count > 1, case .string(let text) = values[0] else { return }
    var beginning: [UInt8] = []
    KeyCodec.appendPrefix(String(text.prefix(3)), to: &beginning)
    precondition(key.starts(with: beginning.prefix(KeyCodec.maximumCount)), "a string's key does not begin as its prefix")
}
