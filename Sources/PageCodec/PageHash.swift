/// A 64-bit hash against damage, not against forgers: four lanes, one multiplication a word.
///
/// Each step is a bijection of its lane, so one changed word always changes the result. Part of the file format.
enum PageHash {
    private static let factor: UInt64 = 0x9E37_79B9_7F4A_7C15

    @inline(__always)
    private static func step(_ lane: inout UInt64, _ word: UInt64) {
        let product = (lane ^ word) &* factor
        lane = product << 29 | product >> 35
    }

    /// Hashes bytes; a last part of less than a word is filled up with zeros and the count goes into the result.
    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        guard let base = bytes.baseAddress else { return finish(seed, seed, seed, seed, 0) }
        var a = seed
        var b = seed ^ 0x243F_6A88_85A3_08D3
        var c = seed ^ 0x1319_8A2E_0370_7344
        var d = seed ^ 0xA409_3822_299F_31D0
        let count = bytes.count
        var i = 0
        while i &+ 32 <= count {
            step(&a, base.number(UInt64.self, at: i))
            step(&b, base.number(UInt64.self, at: i &+ 8))
            step(&c, base.number(UInt64.self, at: i &+ 16))
            step(&d, base.number(UInt64.self, at: i &+ 24))
            i &+= 32
        }
        while i &+ 8 <= count {
            step(&a, base.number(UInt64.self, at: i))
            i &+= 8
        }
        if i < count {
            var word: UInt64 = 0
            for k in i..<count { word |= UInt64(bytes[k]) << UInt64((k - i) * 8) }
            step(&b, word)
        }
        return finish(a, b, c, d, UInt64(count))
    }

    private static func finish(_ a: UInt64, _ b: UInt64, _ c: UInt64, _ d: UInt64, _ count: UInt64) -> UInt64 {
        var result = count
        step(&result, a)
        step(&result, b)
        step(&result, c)
        step(&result, d)
        result ^= result >> 32
        result = result &* factor
        return result ^ result >> 29
    }

    /// The checksum of a page: all its bytes but the checksum itself. Precondition: at least a header.
    static func page(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let first = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
        let rest = UnsafeRawBufferPointer(rebasing: bytes[(PageFormat.checksumOffset + 8)...])
        return hash(rest, seed: UInt64(littleEndian: first))
    }
}
