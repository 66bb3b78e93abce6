import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Iterations of requests that a suspension or the end of a container interrupts.
@Suite struct SuspendedStreamTests {
    private static let requests = [
        EntityFetchRequest("Track"), EntityFetchRequest("Track", sortBy: [AttributeSort("plays", .descending)]),
    ]

    /// Catches: a sorted iteration that goes on with the keys that it has, in the order of another state.
    @Test(arguments: StoreKind.allCases, [0, 1])
    func `S167: an iteration that was suspended throws, with a sort and without`(_ kind: StoreKind, _ number: Int) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await context.perform(andSave: .durable) { context in
            for number in 0..<300 { context.makeTrack("\(number)", plays: number) }
        }
        var request = Self.requests[number]
        request.fetchBatchSize = 64
        var values = context.stream(request) { $0["title"] }.makeAsyncIterator()
        #expect(try await values.next() != nil)
        try await container.suspend()
        await container.resume()
        var rest = 0
        do {
            while try await values.next() != nil { rest += 1 }
            Issue.record("the iteration went on with \(rest) objects")
        } catch let error as StoreError { #expect(error.code == .suspended) }
        #expect(rest == 63)
        try await container.close()
    }
}
