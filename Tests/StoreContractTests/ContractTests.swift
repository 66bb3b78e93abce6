import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Testing

/// Every check of the contract on every store. A failure prints the check, the obligation and the seed.
@Suite struct ContractTests {
    /// A check on one of the stores; the name of a test case in the output.
    struct Case: Sendable, CustomTestStringConvertible {
        var kind: StoreKind
        var check: StoreContract.Check

        var testDescription: String { "\(kind.rawValue): \(check.name)" }
    }

    /// Snapshots of a store that routes requests as Core Data does show the newest state.
    private static let checksOfIsolation: Set = [
        "S150: a snapshot never changes", "S153: a reader does not wait for a running write",
        "many snapshots are held and released", "a snapshot keeps a large value that was replaced",
    ]

    static let cases: [Case] = StoreKind.allCases.flatMap { kind in
        StoreContract.checks.filter { check in
            if kind == .sqliteSharedConnection, checksOfIsolation.contains(check.name) { return false }
            return !check.needsPersistence || StoreKind.persistent.contains(kind)
        }.map { Case(kind: kind, check: $0) }
    }

    @Test(arguments: cases)
    func `every store passes every check of the contract`(_ test: Case) throws {
        var subject = test.kind.subject
        if ProcessInfo.processInfo.environment["STRATA_LONG"] != nil { subject.randomSaves = 1000 }
        try test.check.run(on: subject, seed: givenSeed)
    }

    @Test func `names of checks are unique, and the exceptions exist`() {
        let names = StoreContract.checks.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Self.checksOfIsolation.isSubset(of: names))
        #expect(StoreContract.checks.allSatisfy { !$0.obligation.isEmpty })
    }
}
