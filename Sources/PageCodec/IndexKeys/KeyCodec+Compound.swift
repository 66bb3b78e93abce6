import StoreInterface
import StoreModel

extension KeyCodec {
    /// Appends the key of several values, in the order of an index's columns. The keys' order as bytes is the order of the
    /// values, column by column.
    ///
    /// Each value is encoded as in a key for one value, with a difference for strings and data. They end with two zero bytes,
    /// and a zero byte in them is followed by 255, so that no value extends into the next. The whole key is cut at the
    /// maximum length.
    /// - Returns: Whether the key was cut.
    /// - Throws: ``PageError`` as for one value.
    public static func append(
        _ values: [Value], columns: [ColumnSchema], to bytes: inout [UInt8]
    ) throws(PageError) -> Bool {
        let start = bytes.count
        for (value, column) in zip(values, columns) {
            switch (column.type, value) {
            case (.string, .string(var text)): text.withUTF8 { putEscaped(UnsafeRawBufferPointer($0), &bytes) }
            case (.data, .data(let data)): data.withUnsafeBytes { putEscaped($0, &bytes) }
            default: _ = try append(value, column: column, to: &bytes)
            }
        }
        let isCut = bytes.count - start > maximumCount
        if isCut { bytes.removeLast(bytes.count - start - maximumCount) }
        return isCut
    }

    /// Appends the common beginning of the keys of all strings with a prefix. The result is not cut.
    public static func appendPrefix(_ prefix: String, to bytes: inout [UInt8]) {
        var prefix = prefix
        prefix.withUTF8 { putEscaped(UnsafeRawBufferPointer($0), &bytes) }
        bytes.removeLast(2)
    }

    private static func putEscaped(_ value: UnsafeRawBufferPointer, _ bytes: inout [UInt8]) {
        bytes.append(1)
        for byte in value.prefix(maximumCount) {
            bytes.append(byte)
            if byte == 0 { bytes.append(0xFF) }
        }
        bytes.append(0)
        bytes.append(0)
    }
}
