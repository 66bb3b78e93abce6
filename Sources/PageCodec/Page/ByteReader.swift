#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A reader of variable-length numbers and strings, which checks every read.
struct ByteReader {
    // Right because the reader does not outlive the call that passed the bytes.
    private let bytes: UnsafeRawBufferPointer
    private(set) var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var rest: Int { bytes.count - offset }

    mutating func byte(_ field: String) throws(PageError) -> UInt8 {
        guard offset < bytes.count else { throw ended(field) }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func word(_ field: String) throws(PageError) -> UInt64 {
        guard rest >= 8 else { throw ended(field) }
        defer { offset += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Reads a number of seven bits per byte, lowest bits first. The highest bit of a byte indicates that another byte
    /// follows.
    mutating func number(_ field: String) throws(PageError) -> UInt64 {
        var result: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try byte(field)
            let bits = UInt64(next & 0x7F)
            guard shift < 63 || (shift == 63 && bits <= 1) else {
                throw PageError(offset: offset - 1, field: field, reason: "exceeds 64 bits")
            }
            result |= bits << shift
            if next & 0x80 == 0 { return result }
            shift += 7
        }
    }

    mutating func integer(_ field: String) throws(PageError) -> Int {
        let start = offset
        guard let result = Int(exactly: try number(field)) else {
            throw PageError(offset: start, field: field, reason: "is too large")
        }
        return result
    }

    /// Reads the number of elements that follow, each of at least `size` bytes. It is never more than the bytes can contain.
    mutating func count(_ field: String, size: Int) throws(PageError) -> Int {
        let start = offset
        let result = try integer(field)
        guard result <= rest / size else {
            throw PageError(offset: start, field: field, reason: "counts \(result) elements, more than the bytes can hold")
        }
        return result
    }

    mutating func string(_ field: String) throws(PageError) -> String {
        let count = try count(field, size: 1)
        let span = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
        guard let text = String(checkedUTF8: span) else {
            throw PageError(offset: offset, field: field, reason: "is not UTF-8")
        }
        offset += count
        return text
    }

    mutating func data(_ field: String) throws(PageError) -> Data {
        let count = try count(field, size: 1)
        defer { offset += count }
        return Data(bytes[offset..<offset + count])
    }

    mutating func uuid(_ field: String) throws(PageError) -> UUID {
        guard rest >= 16 else { throw ended(field) }
        defer { offset += 16 }
        return UUID(uuid: bytes.loadUnaligned(fromByteOffset: offset, as: uuid_t.self))
    }

    private func ended(_ field: String) -> PageError {
        PageError(offset: bytes.count, field: field, reason: "is missing: the bytes end too early")
    }
}

extension [UInt8] {
    mutating func putNumber(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    mutating func putWord(_ word: UInt64) {
        Swift.withUnsafeBytes(of: word.littleEndian) { append(contentsOf: $0) }
    }

    mutating func putString(_ text: String) {
        putNumber(UInt64(text.utf8.count))
        append(contentsOf: text.utf8)
    }
}
