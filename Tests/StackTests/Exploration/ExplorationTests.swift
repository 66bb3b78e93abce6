import TestSupport
import Testing

/// Short random sequences over roots, children, siblings, merge policies, undo, ordered relationships and live results, compared with a
/// model after every step. A failure prints the shortest failing sequence that was found, and its seed.
@Suite struct ExplorationTests {
    @Test(arguments: StoreKind.allCases)
    func `S090, S046, S141, S162: contexts and results show what the model says after every step of a random sequence`(
        _ kind: StoreKind
    ) async throws {
        for run in 0..<UInt64(Rounds.of(10, long: 2000)) {
            let seed = Seed.value &+ run
            var random = SeededGenerator(seed: seed)
            let steps = ContextStep.sequence(30, &random)
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "\(kind)") { steps in
                try await Exploration.run(steps, kind, seed: seed)
            }
            guard let failure else { continue }
            Issue.record("\(failure)")
            return
        }
    }

    /// Found by the exploration: the root moved to the newest state without a save or a request to move.
    @Test(arguments: StoreKind.allCases)
    func `S063: a save through parents with nothing to save leaves the root's snapshot`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (root, sibling) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let child = await root.perform { $0.newBackgroundChild() }
        await sibling.perform { _ = $0.makeTrack("of a sibling") }
        try await sibling.save()
        try await child.save(through: .store)
        #expect(try await root.perform { try $0.trackTitles() } == [])
        #expect(try await child.perform { try $0.trackTitles() } == [])
        await root.perform { $0.refreshAllObjects() }
        #expect(try await root.perform { try $0.trackTitles() } == ["of a sibling"])
    }

    /// Found by the exploration: the parent got an update of an object that neither it nor the store had.
    @Test(arguments: StoreKind.allCases)
    func `S106: a child's update is dropped if the parent rolled the object back before the child's refresh`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let root = container.coordinator.newBackgroundContext()
        let id = await root.perform { $0.makeTrack("never saved").objectID }
        let child = await root.perform { $0.newBackgroundChild() }
        try await child.perform { try $0.existingObject(with: id)["plays"] = .int(7) }
        await root.perform { $0.rollback() }
        try await child.refreshFromParent()
        try await child.save()
        #expect(await !root.perform { $0.hasChanges })
        try await root.save()
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Found by the exploration: the parent got the whole row, as the child had last seen it.
    @Test(arguments: StoreKind.allCases)
    func `S106: a child's update of an object that its parent deleted and rolled back carries only what the child changed`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let root = container.coordinator.newBackgroundContext()
        let id = await root.perform { $0.makeTrack("first").objectID }
        try await root.save()
        let sibling = container.coordinator.newBackgroundContext()
        let child = await root.perform { $0.newBackgroundChild() }
        try await child.perform { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await root.perform { $0.delete(try $0.existingObject(with: id)) }
        try await child.refreshFromParent()
        await root.perform { $0.rollback() }
        try await sibling.perform { try $0.existingObject(with: id)["title"] = .string("newer") }
        try await sibling.save()
        await root.perform { $0.refreshAllObjects() }
        try await child.save()
        #expect(try await root.perform { try $0.existingObject(with: id).changedValues } == ["plays": .int(7)])
        try await root.save()
        #expect(try await root.perform { try $0.existingObject(with: id)["title"] } == .string("newer"))
    }
}
