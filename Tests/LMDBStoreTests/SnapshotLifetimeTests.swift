import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

@Suite struct SnapshotLifetimeTests {
    /// The transaction of a snapshot belongs to the environment that the store closes.
    @Test func theFileClosesWithTheLastSnapshotAndOpensAgain() throws {
        let scratch = try Scratch()
        for _ in 0..<3 {
            var store: LMDBStore? = try scratch.store()
            var snapshot = try store?.snapshot()
            store = nil
            let pages = try snapshot?.pageNumbers(Samples.track)
            #expect(pages == [], "a snapshot keeps its store")
            snapshot = nil
        }
        #expect(try scratch.store().verify().isEmpty)
    }
}
