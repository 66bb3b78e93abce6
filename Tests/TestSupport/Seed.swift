import Foundation

/// A random generator whose sequence depends only on its seed (splitmix64).
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    public let seed: UInt64
    private var state: UInt64

    public init(seed: UInt64) { (self.seed, state) = (seed, seed) }

    /// Begins with the seed of this run, and prints it with the name of the test, so that a failure can be repeated.
    public init(test: String = #function) {
        self.init(seed: Seed.value)
        print("\(test): STRATA_SEED=\(seed)")
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    public mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    public mutating func chance(_ one: Int, in many: Int) -> Bool { below(many) < one }
}

public enum Seed {
    /// The seed of this run: STRATA_SEED, or a new seed. Print it with each failure.
    public static let value: UInt64 = {
        let given = ProcessInfo.processInfo.environment["STRATA_SEED"].flatMap(UInt64.init)
        return given ?? UInt64.random(in: 0...UInt64.max)
    }()
}

/// The number of rounds of random tests.
public enum Rounds {
    /// Returns `short` in `make test`, and `long` with STRATA_LONG=1 (`make test-long`).
    public static func of(_ short: Int, long: Int) -> Int {
        ProcessInfo.processInfo.environment["STRATA_LONG"] == "1" ? long : short
    }
}
