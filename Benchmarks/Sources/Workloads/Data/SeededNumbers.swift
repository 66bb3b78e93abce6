/// Random numbers that are the same for the same seed on every machine (SplitMix64).
public struct SeededNumbers: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which must be above zero. The bias is below one in 2^32.
    public mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    /// Returns a word of lowercase letters.
    public mutating func word(_ lengths: ClosedRange<Int>) -> String {
        let count = lengths.lowerBound + below(lengths.count)
        return String(decoding: (0..<count).map { _ in UInt8(97 + below(26)) }, as: UTF8.self)
    }

    /// Returns some words, each with a capital first letter.
    public mutating func title(words: ClosedRange<Int>) -> String {
        let count = words.lowerBound + below(words.count)
        return (0..<count).map { _ in word(2...9).capitalizedASCII }.joined(separator: " ")
    }
}

extension String {
    fileprivate var capitalizedASCII: String { prefix(1).uppercased() + dropFirst() }
}
