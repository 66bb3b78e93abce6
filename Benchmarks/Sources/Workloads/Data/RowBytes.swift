import Datasets
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A row in a simple layout: a byte for null or not, numbers as they are, and strings with their length.
struct RowBytes {
    private var bytes: [UInt8] = []

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    mutating func append(_ value: Value) {
        bytes.append(value.isNull ? 0 : 1)
        switch value {
        case .null: break
        case .bool(let flag): bytes.append(flag ? 1 : 0)
        case .int(let number): appendNumber(number)
        case .uint(let number): appendNumber(number)
        case .double(let number): appendNumber(number.bitPattern)
        case .reference(let key): appendNumber(key.rawValue)
        case .string(let text):
            appendNumber(UInt32(text.utf8.count))
            bytes.append(contentsOf: text.utf8)
        case .data(let data):
            appendNumber(UInt32(data.count))
            bytes.append(contentsOf: data)
        case .uuid(let uuid): withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
        }
    }

    private mutating func appendNumber<T: FixedWidthInteger>(_ number: T) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { try bytes.withUnsafeBytes(body) }
}

/// Reads the values of ``RowBytes`` in order. The bytes are those of a row that was just written, so none is missing.
struct RowReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func next(_ type: ColumnType) -> Value {
        guard number(UInt8.self) != 0 else { return .null }
        switch type {
        case .bool: return .bool(number(UInt8.self) != 0)
        case .double, .float, .date: return .double(Double(bitPattern: number(UInt64.self)))
        case .string: return .string(String(decoding: rest(Int(number(UInt32.self))), as: UTF8.self))
        case .data: return .data(Data(rest(Int(number(UInt32.self)))))
        case .uuid: return .uuid(UUID(uuid: number(uuid_t.self)))
        default: return .int(number(Int64.self))
        }
    }

    private mutating func number<T: BitwiseCopyable>(_ type: T.Type) -> T {
        defer { offset += MemoryLayout<T>.size }
        return bytes.loadUnaligned(fromByteOffset: offset, as: type)
    }

    private mutating func rest(_ count: Int) -> UnsafeRawBufferPointer {
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }
}
