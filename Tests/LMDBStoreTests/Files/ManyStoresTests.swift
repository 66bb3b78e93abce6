import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

@Suite struct ManyStoresTests {
    /// If each store had the whole map, they would use up the address space.
    @Test(
        .enabled(
            if: ProcessInfo.processInfo.environment["STRATA_THREAD_SANITIZER"] == nil,
            "the thread sanitizer leaves too few addresses"))
    func hundredsOfStoresAreOpenAtOnce() throws {
        let scratch = try Scratch()
        let stores = try (0..<150).map { number in
            try LMDBStore.open(scratch.folder.appending(path: "store \(number)"), schema: Samples.schema)
        }
        for store in stores { try store.insertTracks(1) }
        for store in stores { #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 1) }
    }
}
