import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Values in unnamed temporary files, which end with the last copy.
struct SpilledValues: Sendable {
    /// A file of values, each a tag and its bytes.
    fileprivate struct Segment: Sendable {
        /// The position of its first value in the column.
        var first: Int
        /// The number of its values.
        var count: Int
        /// The bytes, which the system reads when they are needed.
        var bytes: Data
        /// The first bytes of the values whose positions in the segment are multiples of ``SpilledValues/step``.
        var offsets: [Int]
    }

    fileprivate static let step = 16

    fileprivate var segments: [Segment] = []
    fileprivate(set) var count = 0

    subscript(position: Int) -> Value {
        precondition(position >= 0 && position < count, "row \(position) is not in a column of \(count) rows")
        let segment = segments.last { $0.first <= position } ?? segments[0]
        let own = position - segment.first
        return segment.bytes.withUnsafeBytes { bytes in
            var reader = ValueReader(bytes: bytes, offset: segment.offsets[own / Self.step])
            for _ in 0..<own % Self.step { reader.skip() }
            return reader.next()
        }
    }
}

extension SpilledValues {
    /// The next value of an iteration: its file, the number of values before it there, and its first byte.
    struct Cursor {
        fileprivate var segment = 0
        fileprivate var row = 0
        fileprivate var offset = 0
    }

    /// Returns the value at a cursor, and moves the cursor to the next one; nil at the end.
    func next(_ cursor: inout Cursor) -> Value? {
        guard cursor.segment < segments.count else { return nil }
        let segment = segments[cursor.segment]
        let value = segment.bytes.withUnsafeBytes { bytes in
            var reader = ValueReader(bytes: bytes, offset: cursor.offset)
            defer { cursor.offset = reader.offset }
            return reader.next()
        }
        cursor.row += 1
        if cursor.row == segment.count { cursor = Cursor(segment: cursor.segment + 1) }
        return value
    }
}

/// Writes values to unnamed temporary files.
final class SpillWriter {
    /// The number of bytes that are written at once.
    private static let bufferSize = 1 << 18

    private let scratch: ScratchSpace
    private var result = SpilledValues()
    private var writer: LargeDataWriter?
    private var buffer = Data()
    private var offsets: [Int] = []
    private var countOfSegment = 0

    /// The number of bytes of the current segment.
    private var byteCount: Int { (writer?.byteCount ?? 0) + buffer.count }

    init(_ scratch: ScratchSpace) { self.scratch = scratch }

    /// - Throws: `StoreError` if there is no room.
    func append(_ value: Value) throws {
        if byteCount > scratch.bytesPerFile { try endSegment() }
        if countOfSegment.isMultiple(of: SpilledValues.step) { offsets.append(byteCount) }
        ValueReader.append(value, to: &buffer)
        countOfSegment += 1
        result.count += 1
        if buffer.count >= Self.bufferSize { try flush() }
    }

    /// - Throws: `StoreError` if there is no room.
    func finish() throws -> SpilledValues {
        try endSegment()
        return result
    }

    private func flush() throws {
        let file = try writer ?? LargeDataWriter(inFolder: scratch.folder)
        writer = file
        try file.append(buffer)
        buffer.removeAll(keepingCapacity: true)
    }

    private func endSegment() throws {
        guard countOfSegment > 0 else { return }
        try flush()
        result.segments.append(
            SpilledValues.Segment(
                first: result.count - countOfSegment, count: countOfSegment, bytes: try writer?.finish() ?? Data(),
                offsets: offsets
            ))
        writer = nil
        (offsets, countOfSegment) = ([], 0)
    }
}

/// The bytes of values in a temporary file of this process: a tag, then a number, or a length and bytes.
private struct ValueReader {
    private enum Tag: UInt8 { case null, no, yes, int, uint, double, string, data, uuid, reference }

    /// Valid while the reader exists, which is inside a call of `withUnsafeBytes`.
    let bytes: UnsafeRawBufferPointer
    var offset: Int

    static func append(_ value: Value, to bytes: inout Data) {
        func add(_ tag: Tag, _ number: some BitwiseCopyable) {
            bytes.append(tag.rawValue)
            withUnsafeBytes(of: number) { bytes.append(contentsOf: $0) }
        }
        switch value {
        case .null: bytes.append(Tag.null.rawValue)
        case .bool(let flag): bytes.append((flag ? Tag.yes : .no).rawValue)
        case .int(let number): add(.int, number)
        case .uint(let number): add(.uint, number)
        case .double(let number): add(.double, number)
        case .reference(let key): add(.reference, key)
        case .uuid(let uuid): add(.uuid, uuid.uuid)
        case .string(let text):
            add(.string, text.utf8.count)
            bytes.append(contentsOf: text.utf8)
        case .data(let data):
            add(.data, data.count)
            bytes.append(data)
        }
    }

    /// Returns the tag at the offset, and moves after it.
    private mutating func tag() -> Tag {
        defer { offset += 1 }
        guard let tag = Tag(rawValue: bytes[offset]) else {
            preconditionFailure("a temporary file was written by another program")
        }
        return tag
    }

    private mutating func number<Number: BitwiseCopyable>(_: Number.Type) -> Number {
        defer { offset += MemoryLayout<Number>.size }
        return bytes.loadUnaligned(fromByteOffset: offset, as: Number.self)
    }

    private mutating func content() -> UnsafeRawBufferPointer {
        let count = number(Int.self)
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }

    mutating func skip() {
        switch tag() {
        case .null, .no, .yes: break
        case .int, .uint, .double, .reference: offset += 8
        case .uuid: offset += 16
        case .string, .data: _ = content()
        }
    }

    mutating func next() -> Value {
        switch tag() {
        case .null: .null
        case .no: .bool(false)
        case .yes: .bool(true)
        case .int: .int(number(Int64.self))
        case .uint: .uint(number(UInt64.self))
        case .double: .double(number(Double.self))
        case .reference: .reference(number(ObjectKey.self))
        case .uuid: .uuid(UUID(uuid: number(uuid_t.self)))
        case .string: .string(String(decoding: content(), as: UTF8.self))
        case .data: .data(Data(content()))
        }
    }
}
