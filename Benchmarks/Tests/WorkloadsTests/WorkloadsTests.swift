import Datasets
import Figures
import ObjectGraph
import StoreInterface
import Testing

@testable import Workloads

/// Workloads end with the right data in every configuration, and throw an error if they do not. Timings are not tested here.
@Suite(.serialized) struct WorkloadsTests {
    static let settings = BenchmarkConfiguration.all(
        stacks: ContextStack.allCases, stores: StoreKind.allCases, routings: Routing.allCases)

    @Test func theRoutingOfAncestorsExistsOnSQLiteOnly() {
        #expect(Self.settings.count == 5 * 4)
        #expect(Self.settings.filter { $0.routing == .ancestors }.allSatisfy { $0.store == .sqlite })
    }

    @Test(arguments: settings)
    func anImportIsWholeInEverySetting(setting: BenchmarkConfiguration) async throws {
        let data = MusicLibrary.make(rows: 600)
        let figures = try await Shootout(data, savePoints: .every(100), durability: .durable).run(setting)
        #expect(figures.saves >= 6)
    }

    @Test func anImportMaySaveOncePerEntity() async throws {
        let data = MusicLibrary.make(rows: 600)
        let setting = BenchmarkConfiguration(stack: .siblings, store: .lmdb, routing: .snapshot)
        let figures = try await Shootout(data, savePoints: .perEntity, durability: .deferred).run(setting)
        #expect(figures.saves == 10 + 6 + 1)
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func aChatIsWhole(store: StoreKind) async throws {
        let data = ChatData.make(objects: 500, seed: 1)
        let figures = try await Chat(data, saveEvery: 5, durability: .durable)
            .run(BenchmarkConfiguration(stack: .siblings, store: store, routing: .snapshot))
        #expect(figures.saves == 100)
    }

    @Test func aChatOfRealDataTakesTheMostReferredToRowsAsGroups() throws {
        let data = try ChatData.make(from: MusicLibrary.make(rows: 2_000))
        #expect(data.tables[1].name == "Track")
        #expect(data.tables[0].rowCount == ChatData.groups || data.tables[0].rowCount < 50)
        #expect(data.tables[1].references[0].rows == data.tables[1].references[0].rows.sorted())
    }
}
