import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct KeySortingTests {
    /// Catches: a digit that is left out, one pass too many, or a result in the wrong half of the buffer.
    @Test func keysAreSortedAsNumbersWhateverTheirBitsAndCount() {
        print("keysAreSortedAsNumbers: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        for count in [0, 1, 2, 23, 24, 100, 1023, 1024, 5000] {
            for bits in 1...64 {
                let mask = UInt64.max >> UInt64(64 - bits)
                let common = random.next()
                var keys = (0..<count).map { _ in ObjectKey(rawValue: random.next() & mask | common & ~mask) }
                let expected = keys.sorted()
                keys.sortKeys()
                #expect(keys == expected, "\(count) keys that differ in \(bits) bits")
                keys.reverse()
                keys.sortKeys()
                #expect(keys == expected, "\(count) keys in descending order")
                keys.sortKeys()
                #expect(keys == expected, "\(count) sorted keys")
            }
        }
    }

    /// Catches: a key that is lost or doubled at the end of a page or of the range, whether the keys lie close together or far apart.
    @Test func unitedKeysAreAscendingAndEachThereOnce() {
        print("unitedKeys: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        for (arrays, count) in [(0, 0), (1, 0), (1, 1), (1, 90), (2, 1), (3, 40), (20, 400)] {
            for bits in 1...64 {
                let mask = UInt64.max >> UInt64(64 - bits)
                let common = random.next()
                let keys = (0..<arrays).map { _ in
                    (0..<count).map { _ in ObjectKey(rawValue: random.next() & mask | common & ~mask) }
                }
                let expected = Set(keys.joined()).sorted()
                #expect([ObjectKey](uniting: keys) == expected, "\(arrays) arrays of \(count) keys that differ in \(bits) bits")
            }
        }
    }
}
