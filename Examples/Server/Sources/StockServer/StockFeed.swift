import AsyncAlgorithms
import Observation
import Strata

/// A live result for one client.
struct StockFeed: Sendable {
    let container: PersistentContainer
    let filter: ItemFilter

    /// Sends the selected items, and sends them again after each change, until the task is cancelled.
    ///
    /// A channel has no buffer: while the client has not received the last state, the live result goes on, and the next state that is
    /// sent is the newest. So a slow client skips states, and neither makes the server store them nor holds an old snapshot.
    ///
    /// - Throws: `StoreError` if the store cannot be read, or was closed.
    func send(to channel: AsyncChannel<EventPart>) async throws {
        let context = await container.makeBackgroundContext(name: "events")
        // The closure runs on the executor of the context, which may merge saves whenever the closure waits.
        try await context.perform { _, context in
            context.automaticallyMergesChanges = true
            // A save may have come between the creation of the context and the line above.
            context.refreshAllObjects()
            let items = try Results(filter.fetchRequest(limit: filter.limit), context: context)
            let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            change.yield()
            for await _ in changes {
                let (page, error) = withObservationTracking {
                    (items.map(ItemMessage.init), items.error)
                } onChange: {
                    change.yield()
                }
                if let error { throw error }
                await channel.send(.items(ItemPage(items: page)))
            }
        }
    }
}
