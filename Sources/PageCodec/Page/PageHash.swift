/// A 64-bit hash against damage, not against forgery: eight lanes, one multiplication per word.
///
/// Each step is a bijection of its lane, so one changed word always changes the result. Part of the file format.
enum PageHash {
    private static let factor: UInt64 = 0x9E37_79B9_7F4A_7C15

    @inline(__always)
    private static func step(_ lane: inout UInt64, _ word: UInt64) {
        let product = (lane ^ word) &* factor
        // Not a rotation, which the compiler would turn into a second multiplication.
        lane = product ^ product >> 32
    }

    /// Hashes bytes. A last part of less than a word is padded with zeros, and the byte count is hashed as well.
    static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        guard let base = bytes.baseAddress else { return seed }
        // The lanes begin with different numbers (digits of pi), so that equal words in different lanes have different
        // effects.
        var a = seed
        var b = seed ^ 0x243F_6A88_85A3_08D3
        var c = seed ^ 0x1319_8A2E_0370_7344
        var d = seed ^ 0xA409_3822_299F_31D0
        var e = seed ^ 0x082E_FA98_EC4E_6C89
        var f = seed ^ 0x4528_21E6_38D0_1377
        var g = seed ^ 0xBE54_66CF_34E9_0C6C
        var h = seed ^ 0xC0AC_29B7_C97C_50DD
        let count = bytes.count
        var i = 0
        while i &+ 64 <= count {
            step(&a, base.number(UInt64.self, at: i))
            step(&b, base.number(UInt64.self, at: i &+ 8))
            step(&c, base.number(UInt64.self, at: i &+ 16))
            step(&d, base.number(UInt64.self, at: i &+ 24))
            step(&e, base.number(UInt64.self, at: i &+ 32))
            step(&f, base.number(UInt64.self, at: i &+ 40))
            step(&g, base.number(UInt64.self, at: i &+ 48))
            step(&h, base.number(UInt64.self, at: i &+ 56))
            i &+= 64
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
        var result = UInt64(count)
        step(&result, a)
        step(&result, b)
        step(&result, c)
        step(&result, d)
        step(&result, e)
        step(&result, f)
        step(&result, g)
        step(&result, h)
        result ^= result >> 32
        result = result &* factor
        return result ^ result >> 29
    }
}
