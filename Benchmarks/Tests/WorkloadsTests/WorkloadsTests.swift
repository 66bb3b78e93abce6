import CoreDataRouting
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

    @Test(arguments: settings)
    func `only the routing ancestors sends requests to parents`(setting: BenchmarkConfiguration) async throws {
        let data = MusicLibrary.make(rows: 600)
        let figures = try await Shootout(data, savePoints: .every(100), durability: .deferred).run(setting)
        let hasParent = setting.stack == .nested || setting.stack == .masterMainWorker
        if setting.routing == .ancestors, hasParent {
            #expect(figures.hops["save 1"] == figures.saves)
            #expect(figures.hops["save 2"] == (setting.stack == .nested ? nil : figures.saves))
            // The importer reads each object at most once, to relate it. Its parents kept the row when it was saved.
            let level = setting.stack == .nested ? 1 : 2
            #expect(try #require(figures.hops["fault \(level)"]) <= data.objectCount)
        } else if setting.routing == .snapshot {
            #expect(figures.hops.isEmpty)
        }
    }

    @Test func `the parse cost is derived from the siblings of the same store and routing`() async throws {
        let data = MusicLibrary.make(rows: 600)
        var workload = try Shootout(data, savePoints: .every(100), durability: .deferred)
        let settings = BenchmarkConfiguration.all(stacks: [.nested], stores: [.sqlite], routings: Routing.allCases)
        #expect(try await workload.run(settings[0]).extra.isEmpty)
        workload.parseTimes = try await ParseTimes.published(
            workload, settings, repeats: 1, progress: ProgressBar(steps: 1, style: .silent))
        #expect(workload.parseTimes.notes.count == 2)
        for setting in settings {
            let figures = try await workload.run(setting)
            let parsing = try #require(figures.extra["parsing"])
            let below = try #require(figures.extra["below the importer"])
            #expect(parsing > 0)
            #expect(abs(parsing + below - figures.totalSeconds * 1000) < 1e-6)
        }
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

    /// Catches: an operation that leaves other objects or notices than expected, or a row that is missing.
    @Test(arguments: StoreKind.allCases)
    func `undo and observation check their results, and have a row per operation`(store: StoreKind) async throws {
        func progress() -> ProgressBar { ProgressBar(steps: 2, style: .silent) }
        let undone = try await Undoing(objects: 100, seed: 1).rows([store], repeats: 2, progress: progress())
        let observed = try await Observing(objects: 100, seed: 1).rows([store], repeats: 2, progress: progress())
        #expect(undone.count == 3 * 4 && observed.count == 2 * 5 + 4)
        #expect((undone + observed).allSatisfy { $0.verified && $0.objects == 100 && $0.nanosecondsPerObject != nil })
        #expect(Set(observed.compactMap(\.operation)).count == observed.count)
    }

    @Test func aChatOfRealDataTakesTheMostReferredToRowsAsGroups() throws {
        let data = try ChatData.make(from: MusicLibrary.make(rows: 2_000))
        #expect(data.tables[1].name == "Track")
        #expect(data.tables[0].rowCount == ChatData.groups || data.tables[0].rowCount < 50)
        #expect(data.tables[1].references[0].rows == data.tables[1].references[0].rows.sorted())
    }
}
