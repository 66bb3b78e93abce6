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
}
