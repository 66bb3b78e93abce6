import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Limits and offsets of any size, on every store and stack.
@Suite struct WindowTests {
    /// Catches: a plan that ends the program, because the limit and the offset have no sum.
    @Test(arguments: Combination.all)
    func `S132, S135: requests with the greatest limit and offset are answered and explained`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await ValueFetchTests.fill(container)
        let whole = "; sorted in memory"
        let windows: [(limit: Int?, offset: Int, plan: String)] = [
            (5, .max, whole), (Int.max, 1, whole), (Int.max, .max, whole), (nil, .max, whole),
            (Int.max, 0, "; the first \(Int.max) kept while reading"), (2, 1, "; the first 3 kept while reading"),
        ]
        try await context.perform { context throws in
            for window in windows {
                for (includesPendingChanges, titles) in [(true, ["a", "b", "c", "d", "e"]), (false, ["a", "b", "c"])] {
                    var request = EntityFetchRequest(
                        "Track", sortBy: [AttributeSort("title")], limit: window.limit, offset: window.offset)
                    request.includesPendingChanges = includesPendingChanges
                    let expected = titles.dropFirst(window.offset).prefix(window.limit ?? .max).map { Value.string($0) }
                    #expect(try context.fetch(request).map { $0["title"] } == expected, "\(window)")
                    #expect(try context.count(request) == expected.count, "\(window)")
                    let plan = try context.explain(request)
                    #expect(combination.store == .lmdb ? plan.contains(window.plan) : !plan.isEmpty, "\(window): \(plan)")
                }
            }
        }
        try await container.close()
    }
}
