import StrataSwiftData
import Testing

@Model final class Sounding {
    var depth: Double
    var speed: Double?
    /// A computed property, by which the store cannot sort.
    var series: Int { 0 }
    var half: Double { depth / 2 }

    init(depth: Double, speed: Double?) {
        self.depth = depth
        self.speed = speed
    }
}

/// Sorts that are made in memory, because one of them is not by a stored property.
@Suite struct MemorySortTests {
    /// Catches: a sort by Swift's comparisons, for which NaN equals every number, so that other numbers are out of order.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S132: NaN and nil have the places that they have in sorts of the store`(
        _ store: TestStore, _ isSaved: Bool
    ) async throws {
        try await store.use(Sounding.self) { container in
            let context = ModelContext(container)
            let depths = [3, .nan, 1, .infinity, 0, .nan, -.infinity, -0.0, 2]
            let speeds: [Double?] = [nil, 3, .nan, 1, nil, .nan, 0, 2, -1]
            for (depth, speed) in zip(depths, speeds) { context.insert(Sounding(depth: depth, speed: speed)) }
            if isSaved { try context.save() }
            for order in [SortOrder.forward, .reverse] {
                let series = SortDescriptor(\Sounding.series)
                for sort in [SortDescriptor(\Sounding.depth, order: order), SortDescriptor(\Sounding.speed, order: order)] {
                    let expected = try context.fetchIdentifiers(FetchDescriptor<Sounding>(sortBy: [sort]))
                    let found = try context.fetchIdentifiers(FetchDescriptor<Sounding>(sortBy: [series, sort]))
                    #expect(found == expected, "\(sort)")
                }
                let depth = try context.fetch(FetchDescriptor<Sounding>(sortBy: [SortDescriptor(\.depth, order: order)]))
                let half = try context.fetch(FetchDescriptor<Sounding>(sortBy: [SortDescriptor(\.half, order: order)]))
                #expect(half.map(\.persistentModelID) == depth.map(\.persistentModelID))
            }
        }
    }
}
