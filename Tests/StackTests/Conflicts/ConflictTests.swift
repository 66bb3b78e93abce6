import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ConflictTests {
    /// Creates two root contexts that have both changed one track. `other` changed title and plays and saved. The returned
    /// context changed plays and rating and has not saved.
    private func collision(
        _ container: PersistentContainer, _ policy: MergePolicy
    ) async throws -> (ours: BackgroundContext, id: ObjectID) {
        let (ours, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { $0.makeTrack("base", plays: 1).objectID }
        try await ours.save()
        await other.perform { $0.refreshAllObjects() }
        try await other.perform { context in
            let track = try context.existingObject(with: id)
            track["title"] = .string("theirs")
            track["plays"] = .int(20)
        }
        try await ours.perform { context in
            let track = try context.existingObject(with: id)
            track["plays"] = .int(10)
            track["rating"] = .double(5)
            context.mergePolicy = policy
        }
        try await other.save()
        return (ours, id)
    }

    private func values(_ context: BackgroundContext, _ id: ObjectID) async throws -> [Value] {
        try await context.perform { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"], track["rating"]]
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S101_theErrorNamesBaseOursAndTheirs(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, .error)
        let generation = try container.coordinator.snapshot().generation
        let error = try #require(await #expect(throws: SaveError.self) { try await ours.save() })
        guard case .conflicts(let conflicts) = error else {
            Issue.record("not a conflict: \(error)")
            return
        }
        #expect(conflicts.map(\.objectID) == [id])
        let plays = try #require(conflicts[0].properties.first { $0.name == "plays" })
        #expect(plays.base == .int(1) && plays.ours == .int(10) && plays.theirs == .int(20))
        #expect(Set(conflicts[0].properties.map(\.name)) == ["title", "plays", "rating"])
        #expect(try container.coordinator.snapshot().generation == generation, "nothing is written")
        #expect(await ours.perform { $0.hasChanges })
    }

    @Test(arguments: StoreKind.allCases)
    func S102_storeTrumpTakesTheStoresValueOfWhatBothChanged(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, .storeTrump)
        try await ours.save()
        #expect(try await values(ours, id) == [.string("theirs"), .int(20), .double(5)], "S110: the context shows it")
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await values(reader, id) == [.string("theirs"), .int(20), .double(5)])
    }

    @Test(arguments: StoreKind.allCases)
    func S103_objectTrumpTakesOurValueOfWhatBothChanged(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, .objectTrump)
        try await ours.save()
        #expect(try await values(ours, id) == [.string("theirs"), .int(10), .double(5)], "S110")
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await values(reader, id) == [.string("theirs"), .int(10), .double(5)])
    }

    @Test(arguments: StoreKind.allCases)
    func S104_overwriteWritesOurWholeObject(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, .overwrite)
        try await ours.save()
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await values(reader, id) == [.string("base"), .int(10), .double(5)])
    }

    @Test(arguments: StoreKind.allCases)
    func S105_rollbackDropsOurChangesToWhatConflicts(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, .rollback)
        await ours.perform { context in _ = context.makeTrack("new") }
        try await ours.save()
        #expect(try await values(ours, id) == [.string("theirs"), .int(20), .double(2.5)])
        #expect(try await ours.perform { try $0.trackTitles() } == ["new", "theirs"], "the rest of the save goes on")
    }

    @Test(arguments: StoreKind.allCases)
    func S106_updatedHereDeletedThere(_ kind: StoreKind) async throws {
        for (policy, survives) in [(MergePolicy.objectTrump, true), (.overwrite, true), (.storeTrump, false), (.rollback, false)]
        {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, id) = try await collision(container, policy)
            let killer = container.coordinator.newBackgroundContext()
            try await killer.perform { $0.delete(try $0.existingObject(with: id)) }
            try await killer.save()
            try await ours.save()
            let reader = container.coordinator.newBackgroundContext()
            let title = try? await reader.perform { try $0.existingObject(with: id)["title"] }
            #expect((title != nil) == survives, "\(policy)")
            if survives { #expect(title == .string("base"), "our whole object, under the same id") }
            #expect(try container.coordinator.store.verify().isEmpty)
        }
    }

    /// Catches: an update of an object whose deletion was merged first, which caused no conflict and was never written.
    @Test(arguments: StoreKind.allCases)
    func S106_aDeletionThatWasMergedIsMetByTheNextSaveAllTheSame(_ kind: StoreKind) async throws {
        for (policy, survives) in [
            (MergePolicy.error, false), (.objectTrump, true), (.overwrite, true), (.storeTrump, false), (.rollback, false),
        ] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, id) = try await collision(container, policy)
            let killer = container.coordinator.newBackgroundContext()
            try await killer.perform { $0.delete(try $0.existingObject(with: id)) }
            try await killer.save()
            try await ours.perform { context throws in
                context.refreshAllObjects()
                #expect(try context.trackTitles() == [], "S091: what is deleted is gone, whatever was changed here")
                #expect(try context.count(EntityFetchRequest("Track")) == 0)
                #expect(context.hasChanges, "the changes stay")
            }
            if case .error = policy {
                let error = await #expect(throws: SaveError.self) { try await ours.save() }
                guard case .conflicts(let conflicts)? = error else { continue }
                #expect(conflicts.map(\.objectID) == [id] && conflicts[0].isDeletedInStore)
            } else {
                try await ours.save()
            }
            let reader = container.coordinator.newBackgroundContext()
            let title = try? await reader.perform { try $0.existingObject(with: id)["title"] }
            #expect(title == (survives ? .string("base") : nil), "\(policy)")
            let shown = try await ours.perform { context throws in try context.trackTitles() }
            #expect(shown == (survives ? ["base"] : []), "\(policy)")
            #expect(try container.coordinator.store.verify().isEmpty)
        }
    }

    /// Catches: a child's update of an object that its parent never saved and has rolled back.
    @Test(arguments: Combination.parented, ["error", "objectTrump", "overwrite"])
    func S106_aChildsUpdateOfWhatItsParentLetGoOfIsLeftOut(_ combination: Combination, _ policy: String) async throws {
        let policies: [String: MergePolicy] = ["error": .error, "objectTrump": .objectTrump, "overwrite": .overwrite]
        let chosen = try #require(policies[policy])
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let id = await MainActor.run {
            container.mainContext.mergePolicy = chosen
            return container.mainContext.makeTrack("never saved").objectID
        }
        let child = await MainActor.run { container.mainContext.newBackgroundChild() }
        try await child.perform { context in
            context.mergePolicy = chosen
            try context.existingObject(with: id)["plays"] = .int(7)
        }
        await MainActor.run { container.mainContext.rollback() }
        try await child.save(through: .store)
        let reader = await container.newBackgroundContext()
        #expect(try await reader.perform { try $0.count(EntityFetchRequest("Track")) } == 0)
        #expect(await MainActor.run { try? container.mainContext.trackTitles() } == [])
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func S100_detectConflictsChecksUnchangedObjectsToo(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, .error)
        try await ours.perform { context in
            context.rollback()
            context.detectConflicts(for: try context.existingObject(with: id))
            context.makeTrack("unrelated")
        }
        await #expect(throws: SaveError.self) { try await ours.save() }
    }

    @Test(arguments: StoreKind.allCases)
    func `S100: a policy that resolves conflicts has none to resolve in an object that is only checked`(
        _ kind: StoreKind
    ) async throws {
        for policy in [MergePolicy.storeTrump, .objectTrump, .overwrite, .rollback] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, id) = try await collision(container, policy)
            try await ours.perform { context in
                context.rollback()
                context.detectConflicts(for: try context.existingObject(with: id))
                context.makeTrack("unrelated")
            }
            try await ours.save()
            #expect(try await ours.perform { try $0.trackTitles() } == ["theirs", "unrelated"])
        }
    }

    @Test(arguments: StoreKind.allCases, [SaveTarget?.none, .store])
    func `S100: an unchanged object that a child checks is checked when the root saves`(
        _ kind: StoreKind, _ target: SaveTarget?
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.nested)
        let id = await MainActor.run { container.mainContext.makeTrack("base").objectID }
        try await container.saveMain()
        let child = await container.newBackgroundContext()
        let other = container.newBatchOperationContext()
        try await other.perform(andSave: .durable) { $0.object(with: id)["title"] = .string("theirs") }
        try await child.perform { context in
            context.detectConflicts(for: try context.existingObject(with: id))
            context.makeTrack("unrelated")
        }
        await #expect(throws: SaveError.self) {
            if let target {
                try await child.save(through: target)
            } else {
                try await child.save()
                try await container.saveMain()
            }
        }
        await MainActor.run { container.mainContext.refreshAllObjects() }
        // The child has decided by the older state, so that it must merge too.
        try await child.refreshFromParent()
        try await child.save(through: .store)
        #expect(try await container.read { try $0.trackTitles() } == ["theirs", "unrelated"])
    }

    /// Catches: a check of a child that has no effect, because the parent has merged or made the save that the child has not read.
    @MainActor @Test(arguments: StoreKind.allCases, [SaveTarget?.none, .store])
    func `S100: a child's check finds a save that its parent has merged or made`(_ kind: StoreKind, _ target: SaveTarget?)
        async throws
    {
        let stacks: [ContextStack] = target == nil ? [.siblings, .nested] : ContextStack.allCases
        for (stack, isOwn) in stacks.flatMap({ [($0, false), ($0, true)] }) {
            let bed = try TestBed(kind)
            let container = try await bed.container(stack)
            let main = container.mainContext
            let track = main.makeTrack("base")
            try await container.saveMain()
            let sheet = main.newChild(name: "sheet")
            let draft = try sheet.existingObject(with: track.objectID)
            #expect(draft["title"] == .string("base"))
            sheet.detectConflicts(for: draft)
            sheet.makeTrack("unrelated")
            if isOwn {
                track["title"] = .string("theirs")
                try await container.saveMain()
            } else {
                let other = container.newBatchOperationContext()
                try await other.perform(andSave: .durable) { [id = track.objectID] context in
                    try context.existingObject(with: id)["title"] = .string("theirs")
                }
                try await until("main has merged the save") {
                    main.refreshAllObjects()
                    return track["title"] == .string("theirs")
                }
            }
            #expect(draft["title"] == .string("base"), "\(stack)")
            let error = await #expect(throws: SaveError.self, "\(stack), \(isOwn)") {
                if target == nil {
                    try await sheet.save()
                    try await container.saveMain()
                } else {
                    try await sheet.save(through: .store)
                }
            }
            if case .conflicts(let conflicts)? = error {
                #expect(conflicts.map(\.objectID) == [track.objectID], "\(stack)")
                let title = conflicts.first?.properties.first { $0.name == "title" }
                #expect(title?.base == .string("base") && title?.theirs == .string("theirs"), "\(stack)")
            } else {
                Issue.record("not a conflict: \(error as Any), \(stack)")
            }
            main.refreshAllObjects()
            try await sheet.refreshFromParent()
            try await sheet.save(through: .store)
            #expect(try await container.read { try $0.trackTitles() } == ["theirs", "unrelated"], "\(stack)")
            try await container.close()
        }
    }

    /// Catches: a check that counts what the child has read of its parent's unsaved changes, once the parent has saved them.
    @MainActor @Test(arguments: Combination.all)
    func `S100: a child's check finds no conflict in changes that the child has read`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("base")
        try await container.saveMain()
        track["title"] = .string("changed")
        let added = main.makeTrack("added")
        let sheet = main.newChild(name: "sheet")
        for (object, title) in [(track, "changed"), (added, "added")] {
            let draft = try sheet.existingObject(with: object.objectID)
            #expect(draft["title"] == .string(title))
            sheet.detectConflicts(for: draft)
        }
        sheet.makeTrack("unrelated")
        try await container.saveMain()
        try await sheet.save(through: .store)
        #expect(try await container.read { try $0.trackTitles() } == ["added", "changed", "unrelated"])
        try await container.close()
    }

    /// Catches: a child's note about an object that is taken for a conflict of the parent's own change, which the policy then drops.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S100, S102: a child's check does not concern what its parent changes after it`(_ kind: StoreKind) async throws {
        for policy in [MergePolicy.error, .storeTrump, .rollback] {
            let bed = try TestBed(kind)
            let container = try await bed.container(.siblings)
            let main = container.mainContext
            main.mergePolicy = policy
            let track = main.makeTrack("base")
            try await main.save()
            let sheet = main.newChild(name: "sheet")
            sheet.detectConflicts(for: try sheet.existingObject(with: track.objectID))
            sheet.makeTrack("unrelated")
            let other = container.newBatchOperationContext()
            try await other.perform(andSave: .durable) { [id = track.objectID] context in
                try context.existingObject(with: id)["title"] = .string("theirs")
            }
            try await until("main has merged the save") {
                main.refreshAllObjects()
                return track["title"] == .string("theirs")
            }
            try await sheet.save()
            track["title"] = .string("mine")
            try await main.save()
            #expect(try await container.read { try $0.trackTitles() } == ["mine", "unrelated"], "\(policy)")
            try await container.close()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S100_concurrentIncrementsWithErrorPolicyNeverLoseOne(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let setUp = container.coordinator.newBackgroundContext()
        let id = await setUp.perform { $0.makeTrack("counter", plays: 0).objectID }
        try await setUp.save()
        let wins = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                let context = container.coordinator.newBackgroundContext()
                group.addTask {
                    var won = 0
                    for _ in 0..<25 {
                        do {
                            try await context.perform { context in
                                context.rollback()
                                context.refreshAllObjects()
                                let track = try context.existingObject(with: id)
                                guard case .int(let plays) = track["plays"] else { return }
                                track["plays"] = .int(plays + 1)
                            }
                            try await context.save(.deferred)
                            won += 1
                        } catch {}
                    }
                    return won
                }
            }
            return await group.reduce(0, +)
        }
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(Int64(wins)))
        #expect(wins > 0)
    }
}
