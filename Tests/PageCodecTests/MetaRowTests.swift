import Foundation
import PageCodec
import StoreInterface
import StoreModel
import Testing

/// The byte layout of small records (free keys, incarnations, copy marks), and their behavior when damaged.
@Suite struct MetaRowTests {
    private static let id = UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
    private static let freeKeys = FreeKeys([67..<128, 140..<192])
    private static let incarnations = [
        StoreLineage.Incarnation(id: id, start: 7),
        .init(id: UUID(uuid: (9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)), start: 258),
    ]

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    @Test func `keys that were given back are written as the format says`() {
        let bytes = FreeKeysCodec.encode(Self.freeKeys)
        #expect(
            Self.hex(bytes) == "4300000000000000" + "8000000000000000" + "8c00000000000000" + "c000000000000000"
                + "72dc54268578677f")
        #expect(bytes.withUnsafeBytes(FreeKeysCodec.decode) == Self.freeKeys)
        #expect(FreeKeysCodec.encode(FreeKeys()).withUnsafeBytes(FreeKeysCodec.decode) == FreeKeys())
    }

    @Test func `incarnations are written as the format says`() throws {
        let bytes = LineageCodec.encode(Self.incarnations)
        #expect(
            Self.hex(bytes) == "000102030405060708090a0b0c0d0e0f" + "0700000000000000" + "09000000000000000000000000000001"
                + "0201000000000000")
        #expect(try bytes.withUnsafeBytes { try LineageCodec.decode($0) } == Self.incarnations)
    }

    @Test func `the mark of a copy is written as the format says`() {
        let stamp = CopyStamp(id: Self.id)
        #expect(Self.hex(stamp.bytes) == "535254434f505931" + "000102030405060708090a0b0c0d0e0f" + "4c58f79fac186357")
        #expect(stamp.bytes.withUnsafeBytes { CopyStamp($0) } == stamp)
    }

    /// Wrong keys would be assigned twice; a wrong mark would begin an unwanted incarnation.
    @Test func `no changed bit passes for keys that were given back, or for a mark`() {
        for (bytes, isRead) in [
            (FreeKeysCodec.encode(Self.freeKeys), { (bytes: UnsafeRawBufferPointer) in FreeKeysCodec.decode(bytes) != nil }),
            (CopyStamp(id: Self.id).bytes, { (bytes: UnsafeRawBufferPointer) in CopyStamp(bytes) != nil }),
        ] {
            for bit in 0..<bytes.count * 8 {
                var changed = bytes
                changed[bit / 8] ^= 1 << (bit % 8)
                #expect(!changed.withUnsafeBytes(isRead), "bit \(bit)")
            }
            for count in 0..<bytes.count { #expect(!bytes[..<count].withUnsafeBytes(isRead), "\(count) bytes") }
        }
    }

    @Test func `incarnations of a wrong length or order are refused`() {
        let bytes = LineageCodec.encode(Self.incarnations)
        for count in 0..<bytes.count where count % 24 != 0 {
            #expect(throws: PageError.self) { try bytes[..<count].withUnsafeBytes { try LineageCodec.decode($0) } }
        }
        let reversed = Array(bytes[24...]) + bytes[..<24]
        #expect(throws: PageError.self) { try reversed.withUnsafeBytes { try LineageCodec.decode($0) } }
    }

    @Test func `ranges with a right checksum that cannot be are no keys that were given back`() {
        for ranges in [[0..<3], [70..<70], [70..<200], [140..<150, 67..<70], [67..<80, 70..<90]] as [[Range<ObjectKey>]] {
            let bytes = FreeKeysCodec.encode(FreeKeys(ranges))
            #expect(bytes.withUnsafeBytes(FreeKeysCodec.decode) == nil, "\(ranges)")
        }
    }

    /// Catches: keys at the end of all numbers, whose following key or page overflows when they are leased or given back.
    @Test func `ranges behind the keys that are leased are no keys that were given back`() {
        let end = PageAddress.key(page: PageAddress.unleased.lowerBound, slot: 0)
        let last = FreeKeys([end.advanced(by: -3)..<end])
        #expect(FreeKeysCodec.encode(last).withUnsafeBytes(FreeKeysCodec.decode) == last)
        let highest = ObjectKey(rawValue: .max - 1)..<ObjectKey.max
        for range in [end..<end.advanced(by: 1), highest, ObjectKey(rawValue: .max - 63)..<ObjectKey.max] {
            let bytes = FreeKeysCodec.encode(FreeKeys([range]))
            #expect(bytes.withUnsafeBytes(FreeKeysCodec.decode) == nil, "\(range)")
        }
    }
}
