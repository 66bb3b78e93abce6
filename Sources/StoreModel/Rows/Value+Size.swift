extension Value {
    /// The maximum size of a string or data value: 1 GiB.
    package static let maximumByteCount = 1 << 30

    /// The size of a string or data value in bytes; otherwise 0. O(1) for native strings.
    fileprivate var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .data(let data): data.count
        default: 0
        }
    }

    /// Whether no store takes the value, because it has more than ``maximumByteCount`` bytes.
    package var isTooLarge: Bool { byteCount > Self.maximumByteCount }
}

extension StoreError {
    /// Returns the error of a value that no store takes; nil if the value is not too large.
    package static func tooLarge(_ value: Value, in schema: EntitySchema, _ column: ColumnIndex) -> StoreError? {
        guard value.isTooLarge else { return nil }
        return StoreError(
            .valueTooLarge,
            "\(schema.name).\(schema.columns[column].name) was set to \(value.byteCount) bytes; a value has at most 1 GiB. "
                + "Divide it among several objects, or keep it in a file of its own")
    }
}
