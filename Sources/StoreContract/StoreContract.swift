#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

import StoreInterface
import StoreModel

/// The suite that every store passes, for authors of other stores.
///
/// The suite needs no test framework. In Swift Testing a test of a store in memory is one function:
///
///     @Test(arguments: StoreContract.checks)
///     func `the store keeps the contract`(_ check: StoreContract.Check) throws {
///         try check.run { schema in DictionaryStore(schema) }
///     }
///
/// In XCTest, loop over ``checks`` and call the same method. A store that outlives its object gets a location for each new store:
///
///     try check.run(on: .persistent { schema, url in try FileStore(url, schema) })
///
/// Checks are independent of each other and may run in parallel. Together they take some seconds on a store in memory.
public enum StoreContract {
    /// All checks, grouped by subject.
    public static let checks: [Check] = [
        WritingChecks.all, RelationChecks.all, SnapshotChecks.all, ValueChecks.all, LargeValueChecks.all, LeaseChecks.all,
        HistoryChecks.all, PredicateChecks.all, PredicateDepthChecks.all, IndexChecks.all, CompoundIndexChecks.all,
        OrderedDataChecks.all,
        AggregateChecks.all, ExtremeArgumentChecks.all, RandomSaveChecks.all,
    ].flatMap { $0 }

    /// The store that a check is run on: a way to make one.
    public struct Subject: Sendable {
        /// The number of saves of the check that compares many random saves with dictionaries.
        public var randomSaves = 60
        let isPersistent: Bool
        let open: @Sendable (StoreSchema, URL) throws -> any ObjectStore

        /// A store whose contents end with its object.
        /// - Parameter make: returns a new, empty store at each call.
        public static func volatile(_ make: @escaping @Sendable (StoreSchema) throws -> any ObjectStore) -> Subject {
            Subject(isPersistent: false) { schema, _ in try make(schema) }
        }

        /// A store whose contents outlive its object.
        /// - Parameter open: opens the store at a location, or creates it if the location is new. The location is a file URL in an
        ///   empty folder, which is removed when the check ends. A remote store can use the URL as a name. A check may open a location
        ///   again while the first object is in use. `open` may return the first object then.
        public static func persistent(
            _ open: @escaping @Sendable (_ schema: StoreSchema, _ location: URL) throws -> any ObjectStore
        ) -> Subject {
            Subject(isPersistent: true, open: open)
        }
    }

    /// One check: what a store must do, and the obligation that says so.
    public struct Check: Sendable, CustomStringConvertible {
        /// A sentence that is true of a store that passes. Unique among ``StoreContract/checks``.
        public let name: String
        /// The requirement of `StoreInterface` that a store breaks if it fails the check.
        public let obligation: String
        /// Whether the check opens a store again, so that it has nothing to do for a store that ends with its object.
        public let needsPersistence: Bool
        private let body: @Sendable (Trial) throws -> Void

        init(
            _ name: String, obligation: String, needsPersistence: Bool = false,
            _ body: @escaping @Sendable (Trial) throws -> Void
        ) {
            self.name = name
            self.obligation = obligation
            self.needsPersistence = needsPersistence
            self.body = body
        }

        /// The name of the check.
        public var description: String { name }

        /// Runs the check on new stores that end with their objects.
        ///
        /// Blocks the calling thread, and starts threads of its own where the check is about concurrency.
        /// - Parameters:
        ///   - seed: repeats a run of a random check. nil: a random seed, which a violation names.
        ///   - make: returns a new, empty store at each call.
        /// - Throws: ``ContractViolation``.
        public func run(seed: UInt64? = nil, _ make: @escaping @Sendable (StoreSchema) throws -> any ObjectStore) throws {
            try run(on: .volatile(make), seed: seed)
        }

        /// Runs the check on new stores of a kind. Returns at once if the check needs persistence and the subject has none.
        /// - Throws: ``ContractViolation``.
        public func run(on subject: Subject, seed: UInt64? = nil) throws {
            if needsPersistence && !subject.isPersistent { return }
            let trial = Trial(subject: subject, seed: seed ?? .random(in: 1...999_999))
            do {
                try body(trial)
            } catch let failure as FailedExpectation {
                throw ContractViolation(
                    check: name, obligation: obligation, expected: failure.expected, found: failure.found, seed: trial.seed,
                    location: failure.location)
            } catch {
                throw ContractViolation(
                    check: name, obligation: obligation, expected: "no error", found: "the error: \(error)", seed: trial.seed,
                    location: nil)
            }
        }
    }
}

/// One run of a check.
struct Trial: Sendable {
    let subject: StoreContract.Subject
    let seed: UInt64

    /// A generator that starts anew from the seed of the run.
    var random: SeededRandom { SeededRandom(seed: seed) }

    func newStore() throws -> StoreUnderTest { try StoreUnderTest(subject) }
}

typealias Check = StoreContract.Check
