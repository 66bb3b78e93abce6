import Foundation
import StoreContract

/// The seed of random tests: given by STRATA_SEED, else random.
let givenSeed: UInt64? = ProcessInfo.processInfo.environment["STRATA_SEED"].flatMap { UInt64($0) }

extension SeededRandom {
    /// Prints the seed, with which the test can be repeated.
    init(_ test: String) {
        let seed = givenSeed ?? UInt64.random(in: 1...999_999)
        self.init(seed: seed)
        print("\(test): STRATA_SEED=\(seed)")
    }
}
