import Datasets
import Foundation
import StoreInterface
import Testing

@testable import Workloads

/// The shape of generated data. Also real data sets, if STRATA_CHINOOK and STRATA_FLIGHTS name their paths.
@Suite struct DatasetTests {
    @Test func theGeneratedLibraryHasTheUsualSizeAndIsTheSameForTheSameSeed() {
        let one = MusicLibrary.make(seed: 3)
        let two = MusicLibrary.make(seed: 3)
        #expect(one.objectCount == 6892)
        #expect(one.linkCount == 8715)
        #expect(one.tables.map(\.name) == two.tables.map(\.name))
        #expect(one.tables[4].attributes[0].values == two.tables[4].attributes[0].values)
        #expect(MusicLibrary.make(seed: 4).tables[4].attributes[0].values != one.tables[4].attributes[0].values)
    }

    @Test(arguments: [1, 100, 40_000])
    func theGeneratedLibraryScales(rows: Int) {
        let data = MusicLibrary.make(rows: rows)
        #expect(abs(data.rowCount - rows) <= max(40, rows / 100))
        #expect(Set(data.links[0].pairs).count == data.linkCount)
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["STRATA_CHINOOK"] != nil))
    func chinookHasTenEntitiesAndOneLink() throws {
        let data = try Dataset.read(ProcessInfo.processInfo.environment["STRATA_CHINOOK"] ?? "")
        #expect(data.tables.count == 10)
        #expect(data.objectCount == 6892)
        #expect(data.links.map(\.pairs.count) == [8715])
        #expect(data.lostReferences == 0)
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["STRATA_FLIGHTS"] != nil))
    func flightsReferToTheirParents() throws {
        let data = try Dataset.read(ProcessInfo.processInfo.environment["STRATA_FLIGHTS"] ?? "")
        #expect(data.rowCount == 367_687)
        let flights = try #require(data.tables.first { $0.name == "flights" })
        #expect(flights.references.map(\.name) == ["carrier", "tailnum", "origin", "dest"])
        print(data.notes.joined(separator: "\n"))
    }
}
