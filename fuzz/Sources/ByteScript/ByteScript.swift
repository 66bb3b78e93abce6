#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface

/// Derives decisions from a fuzzer's bytes, and zeros when the bytes are used up.
public struct ByteScript {
    // Safe because the value is used only within the call that received the bytes.
    private let bytes: UnsafeBufferPointer<UInt8>
    private var place = 0

    public init(_ start: UnsafePointer<UInt8>?, _ count: Int) { bytes = UnsafeBufferPointer(start: start, count: count) }

    public var isDone: Bool { place >= bytes.count }

    public mutating func byte() -> UInt8 {
        guard place < bytes.count else { return 0 }
        defer { place += 1 }
        return bytes[place]
    }

    public mutating func number(below limit: Int) -> Int {
        var number = Int(byte())
        var range = 256
        while range < limit {
            number = number << 8 | Int(byte())
            range <<= 8
        }
        return number % max(limit, 1)
    }

    public mutating func word() -> UInt64 { (0..<8).reduce(0) { word, _ in word << 8 | UInt64(byte()) } }

    /// Returns at most `limit` bytes. Their count comes first in the script.
    public mutating func bytes(atMost limit: Int) -> [UInt8] {
        (0..<min(number(below: limit + 1), bytes.count - min(place, bytes.count))).map { _ in byte() }
    }

    public mutating func rest() -> [UInt8] {
        defer { place = bytes.count }
        return Array(bytes[min(place, bytes.count)...])
    }

    /// Returns the bytes with some of them changed. Reads places and new values until the script ends.
    public mutating func damaged(_ sound: [UInt8]) -> [UInt8] {
        var bytes = sound
        while !isDone, !bytes.isEmpty { bytes[number(below: bytes.count)] = byte() }
        return bytes
    }

    /// Returns a value that the column can store. One of eight values is null.
    public mutating func value(_ type: ColumnType) -> Value {
        if byte() & 7 == 0 { return .null }
        switch type {
        case .bool: return .bool(byte() & 1 != 0)
        case .int8: return .int(Int64(Int8(bitPattern: byte())))
        case .int16: return .int(Int64(Int16(truncatingIfNeeded: word())))
        case .int32: return .int(Int64(Int32(truncatingIfNeeded: word())))
        case .int64: return .int(Int64(bitPattern: word()))
        case .uint8: return .int(Int64(byte()))
        case .uint16: return .int(Int64(UInt16(truncatingIfNeeded: word())))
        case .uint32: return .int(Int64(UInt32(truncatingIfNeeded: word())))
        case .uint64: return .uint(word())
        case .float: return .double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: word()))))
        case .double, .date: return .double(Double(bitPattern: word()))
        case .string: return .string(String(decoding: text(), as: UTF8.self))
        case .data: return .data(Data(text()))
        case .uuid:
            let (a, b) = (word(), word())
            return .uuid(withUnsafeBytes(of: (a, b)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) })
        case .reference: return .reference(ObjectKey(rawValue: word()))
        }
    }

    /// Returns a short text, or one byte many times, so that keys reach their maximum length.
    private mutating func text() -> [UInt8] {
        let choice = byte()
        return choice < 200 ? bytes(atMost: 12) : Array(repeating: byte(), count: Int(choice - 200) * 11) + bytes(atMost: 3)
    }
}
