import ObjectGraph
import TestSupport
import Testing

@Suite struct CollectionKeyTests {
    /// Catches: a key that is repaired instead of refused, so that two keys look equal; a key that is read with other bytes than it has.
    @Test func bytesAreATextExactlyIfTheyAreValidUTF8() {
        print("bytesAreAText: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        let letters: [Character] = ["a", "~", "\0", "é", "ß", "漢", "🙂", "e\u{301}"]
        for _ in 0..<5_000 {
            let text = String(
                (0..<Int.random(in: 0..<30, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a" })
            var bytes: [UInt8] = []
            text.appendKey(to: &bytes, isLast: true)
            #expect(bytes == Array(text.utf8))
            if !bytes.isEmpty, Bool.random(using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            var rest = bytes[...]
            let read = String(readingKey: &rest, isLast: true)
            #expect(read.map { Array($0.utf8) } == String(validating: bytes, as: UTF8.self).map { Array($0.utf8) })
            #expect(rest.isEmpty)
        }
    }

    /// Catches: a part of a key that ends early at a zero, or runs into the next part.
    @Test func aTextInFrontOfAnotherPartIsReadWhole() {
        print("aTextInFront: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        for _ in 0..<2_000 {
            let letters: [Character] = ["a", "\0", "é"]
            let text = String(
                (0..<Int.random(in: 0..<12, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a" })
            let number = Int.random(in: .min ... .max, using: &random)
            var bytes: [UInt8] = []
            text.appendKey(to: &bytes, isLast: false)
            number.appendKey(to: &bytes, isLast: true)
            var rest = bytes[...]
            let readText = String(readingKey: &rest, isLast: false)
            let readNumber = Int(readingKey: &rest, isLast: true)
            #expect(readText == text && readNumber == number && rest.isEmpty)
        }
    }
}
