import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

@Suite struct ManyStoresTests {
    /// If each store had the whole map, they would use up the address space. The thread sanitizer leaves few addresses and mappings, so the
    /// stores are fewer there, and their maps small.
    @Test func hundredsOfStoresAreOpenAtOnce() throws {
        let isSanitized = ProcessInfo.processInfo.environment["STRATA_THREAD_SANITIZER"] != nil
        var options = LMDBStore.Options()
        if isSanitized { options.mapSize = 1 << 28 }
        let scratch = try Scratch()
        let stores = try (0..<(isSanitized ? 40 : 150)).map { number in
            try LMDBStore.open(scratch.folder.appending(path: "store \(number)"), schema: Samples.schema, options: options)
        }
        for store in stores { try store.insertTracks(1) }
        for store in stores { #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 1) }
    }
}
