import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Deferred saves are folded in memory and written while further saves are accepted. Neither may be visible.
@Suite struct DeferredSaveTests {
    private static let saves = 30
    private static let tracksPerSave = 100

    @Test(arguments: StoreKind.allCases, [Duration.seconds(600), .milliseconds(3)])
    func S066_manyDeferredSavesAreThereAtOnceAndAfterAReopen(_ store: StoreKind, _ bound: Duration) async throws {
        let bed = try TestBed(store)
        do {
            let container = try await bed.container()
            let worker = await container.newBackgroundContext()
            let oldest = EntityFetchRequest("Track", limit: 50)
            for save in 0..<Self.saves {
                await worker.perform { context in
                    // Rows of older saves change too, whether they are in memory, on disk, or being written.
                    for track in (try? context.fetch(oldest)) ?? [] { track["plays"] = .int(Int64(save)) }
                    for number in 0..<Self.tracksPerSave { context.makeTrack("\(save)/\(number)", plays: save) }
                }
                try await worker.save(.deferred(within: bound))
                let seen = try await container.newBackgroundContext().perform { try $0.count(EntityFetchRequest("Track")) }
                try #require(seen == (save + 1) * Self.tracksPerSave, "visible at once, after save \(save)")
            }
            try await container.flush()
            // A store in memory is freed with its container.
            if store == .memory { return try await check(bed) }
        }
        try await check(bed)
    }

    /// Checks the state of the last save in a new container, and that the history has every save.
    private func check(_ bed: TestBed) async throws {
        let container = try await bed.container()
        #expect(try container.coordinator.store.verify().isEmpty)
        let changes = try #require(try container.coordinator.store.changes(after: 0))
        #expect(changes.map(\.generation) == (1...Self.saves).map { Generation(rawValue: UInt64($0)) })
        let reader = await container.newBackgroundContext()
        let (count, changed) = try await reader.perform { context in
            let tracks = try context.objects("Track")
            return (tracks.count, tracks.count { $0["plays"] == .int(Int64(Self.saves - 1)) })
        }
        #expect(count == Self.saves * Self.tracksPerSave)
        #expect(changed == Self.tracksPerSave + 50)
    }

    @Test func S066_aDurableSaveWritesTheDeferredOnesBeforeIt() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        for number in 0..<20 {
            await worker.perform { _ = $0.makeTrack("\(number)", plays: number) }
            try await worker.save(.deferred(within: .seconds(600)))
        }
        #expect(try container.coordinator.store.changes(after: 0)?.count == 0)
        await worker.perform { _ = $0.makeTrack("last", plays: 20) }
        try await worker.save(.durable)
        #expect(try container.coordinator.store.changes(after: 0)?.count == 21)
    }
}
