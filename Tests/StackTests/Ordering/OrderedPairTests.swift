import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Ordered many-to-many relationships (S046, S107).
@Suite struct OrderedPairTests {
    @Test(arguments: Combination.all)
    func `S046: both ends of a many-to-many relationship keep their order, each its own`(_ combination: Combination) async throws
    {
        let bed = try TestBed(combination.store)
        let model = try Mixes.model(mixes: true)
        let container = try await bed.container(combination.stack, model: model)
        let worker = await container.newBackgroundContext()
        let mix = try await Mixes.make("abcd", in: worker)
        let song = try await worker.perform { context throws in
            let mix = try context.existingObject(with: mix)
            mix.songs = ["d", "b", "a", "c"].compactMap { title in mix.songs.first { $0.title == title } }
            #expect(mix.songTitles == "dbac")
            let others = ["y", "x"].map { title in
                let other = context.insert("Mix")
                other["title"] = .string(title)
                return other
            }
            let song = mix.songs[0]
            song.setRelatedObjects("mixes", to: [others[0], mix, others[1]])
            #expect(song.relatedObjects("mixes") == [others[0], mix, others[1]])
            #expect(mix.songTitles == "dbac" && others[1].songTitles == "d")
            return song.objectID
        }
        #expect(try await Mixes.titles(mix, in: worker.newBackgroundChild()) == "dbac")
        try await worker.save(through: .store)
        #expect(try await Mixes.titles(mix, in: worker) == "dbac")
        try await container.flush()
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
        guard combination.store != .memory else { return }
        try await bed.closed()
        let reopened = try await bed.container(combination.stack, model: model)
        try await reopened.read { context throws in
            #expect(try context.existingObject(with: mix).songTitles == "dbac")
            let mixes = try context.existingObject(with: song).relatedObjects("mixes")
            #expect(mixes.map(\.title) == ["y", "", "x"])
        }
        try await reopened.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S046: adding, removing and adding again appends, and removing removes the positions`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Mixes.model())
        let worker = container.coordinator.newBackgroundContext()
        let mix = try await Mixes.make("abc", in: worker)
        try await worker.perform { context throws in
            let mix = try context.existingObject(with: mix)
            let first = mix.songs[0]
            mix.remove(first, from: "songs")
            #expect(mix.songTitles == "bc" && context.updatedObjects.contains(mix))
            // From the other end.
            first.add(mix, to: "mixes")
            #expect(mix.songTitles == "bca")
            mix.add(context.makeSong("d"), to: "songs")
            mix.songs[1].remove(mix, from: "mixes")
            context.delete(mix.songs[0])
            #expect(mix.songTitles == "ad")
        }
        try await worker.save()
        #expect(try await Mixes.stored(mix, in: container) == "ad")
        #expect(try Mixes.positionCount(in: container) == 2)
        try await worker.perform { context throws in
            let mix = try context.existingObject(with: mix)
            context.delete(mix.songs[1])
        }
        try await worker.save()
        #expect(try Mixes.positionCount(in: container) == 1)
        try await container.coordinator.batchDelete(EntityFetchRequest("Mix"))
        #expect(try Mixes.positionCount(in: container) == 0, "a batch deletes the positions too")
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S007, S048, S055: a move changes the list only, and can be dropped`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Mixes.model())
        let worker = container.coordinator.newBackgroundContext()
        let mix = try await Mixes.make("abc", in: worker)
        for isRollback in [true, false] {
            try await Mixes.arrange(mix, "bca", in: worker)
            try await worker.perform { context throws in
                let mix = try context.existingObject(with: mix)
                #expect(context.updatedObjects == [mix] && context.insertedObjects.isEmpty && context.deletedObjects.isEmpty)
                if isRollback { context.rollback() } else { context.refresh(mix, mergeChanges: false) }
                #expect(mix.songTitles == "abc" && !context.hasChanges)
            }
        }
        try await worker.perform { context throws in
            let mix = try context.existingObject(with: mix)
            mix.songs = mix.songs
            #expect(!context.hasChanges, "S032: an equal order is no change")
        }
        try await container.close()
    }

    /// Catches: positions that still count as deleted, so that later moves in the list are lost.
    @Test(arguments: Combination.all)
    func `S046, S055: a mix whose deletion is dropped has its songs again, and they can be moved`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Mixes.model())
        let worker = await container.newBackgroundContext()
        let id = try await Mixes.make("abc", in: worker)
        try await worker.perform { context throws in
            let mix = try context.existingObject(with: id)
            context.delete(mix)
            context.refresh(mix, mergeChanges: false)
            #expect(!mix.isDeleted && mix.songTitles == "abc" && !context.hasChanges)
            mix.songs = mix.songs.reversed()
            #expect(mix.songTitles == "cba")
        }
        try await worker.save(through: .store)
        #expect(try await Mixes.stored(id, in: container) == "cba")
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S162: undo and redo restore the order of pairs`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Mixes.model())
        let worker = await container.newBackgroundContext()
        let mix = try await Mixes.make("abcd", in: worker)
        await worker.perform { $0.undoHistory = UndoHistory() }
        var states = ["abcd"]
        for order in ["dabc", "dac", "ebdac", "ca"] {
            try await Mixes.arrange(mix, order, in: worker)
            states.append(order)
            if order == "dac" { try await worker.save(through: .store) }
        }
        try await worker.perform { context throws in
            let mix = try context.existingObject(with: mix)
            context.delete(mix.songs[0])
        }
        states.append("a")
        for isRedo in [false, true, false] {
            for state in isRedo ? Array(states.dropFirst()) : states.dropLast().reversed() {
                try await worker.perform { _ = try isRedo ? $0.undoHistory?.redo() : $0.undoHistory?.undo() }
                #expect(try await Mixes.titles(mix, in: worker) == state)
            }
        }
        try await worker.save(through: .store)
        #expect(try await Mixes.stored(mix, in: container) == "abcd")
        #expect(try Mixes.positionCount(in: container) == 4)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a pair that a redo adds without a position, because the undo has left the position to the save.
    @Test(arguments: StoreKind.allCases)
    func `S162: redoing an addition whose undo has skipped the move of another context restores the place`(
        _ kind: StoreKind
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abcd", .error)
        try await Mixes.arrange(sides.mix, "abc", in: sides.ours)
        try await sides.ours.save()
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Mixes.arrange(sides.mix, "abcd", in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        try await Mixes.arrange(sides.mix, "dabc", in: sides.theirs)
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        try await sides.ours.perform { _ = try $0.undoHistory?.undo(onConflict: .skip) }
        try await sides.ours.save()
        #expect(try await Mixes.stored(sides.mix, in: sides.container) == "abc")
        try await sides.ours.perform { _ = try $0.undoHistory?.redo() }
        try await sides.ours.save()
        #expect(try await Mixes.stored(sides.mix, in: sides.container) == "dabc")
        #expect(try Mixes.positionCount(in: sides.container) == 4)
        #expect(try sides.container.coordinator.store.verify() == [])
        try await sides.container.close()
    }

    /// Catches: a pair without a position, because the undo leaves the position of the other context to the save.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S046, S162: redoing an addition restores the place that another context has given the pair`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abcd", .error)
        try await Mixes.arrange(sides.mix, "abc", in: sides.ours)
        try await sides.ours.save()
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Mixes.arrange(sides.mix, "abcd", in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        for songs in ["abc", "adbc"] { try await Mixes.arrange(sides.mix, songs, in: sides.theirs) }
        try await sides.theirs.save()
        for isRedo in [false, true, false, true] {
            try await sides.ours.perform { context throws in
                context.refreshAllObjects()
                let conflicts = try isRedo ? context.undoHistory?.redo() : context.undoHistory?.undo()
                #expect(conflicts == [] && (isSaved || context.hasChanges != isRedo))
            }
            if isSaved { try await sides.ours.save() }
            #expect(try await Mixes.titles(sides.mix, in: sides.ours) == (isRedo ? "adbc" : "abc"))
        }
        try await sides.ours.save()
        #expect(try await Mixes.stored(sides.mix, in: sides.container) == "adbc")
        #expect(try Mixes.positionCount(in: sides.container) == 4)
        #expect(try sides.container.coordinator.store.verify() == [])
        try await sides.container.close()
    }

    /// Catches: the same for a removal that is redone after the other context has replaced the position.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: undoing a redone removal restores the place that another context has given the pair`(
        _ kind: StoreKind
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Mixes.arrange(sides.mix, "ac", in: sides.ours)
        try await sides.ours.save()
        try await sides.ours.perform { _ = try $0.undoHistory?.undo() }
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        for songs in ["ac", "acb"] { try await Mixes.arrange(sides.mix, songs, in: sides.theirs) }
        try await sides.theirs.save()
        for isRedo in [true, false] {
            try await sides.ours.perform { context throws in
                context.refreshAllObjects()
                let conflicts = try isRedo ? context.undoHistory?.redo() : context.undoHistory?.undo()
                #expect(conflicts == [])
            }
            try await sides.ours.save()
            #expect(try await Mixes.stored(sides.mix, in: sides.container) == (isRedo ? "ac" : "acb"))
        }
        #expect(try Mixes.positionCount(in: sides.container) == 3)
        #expect(try sides.container.coordinator.store.verify() == [])
        try await sides.container.close()
    }

    /// Catches: a second position of a pair, which the undo brings back beside that of the other context.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `S162: undoing a removal leaves a member where another context has added it again`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        await sides.ours.perform { $0.undoHistory = UndoHistory() }
        try await Mixes.arrange(sides.mix, "bc", in: sides.ours)
        if isSaved {
            try await sides.ours.save()
            await sides.theirs.perform { $0.refreshAllObjects() }
        } else {
            try await Mixes.arrange(sides.mix, "bc", in: sides.theirs)
            try await sides.theirs.save()
        }
        try await Mixes.arrange(sides.mix, "bca", in: sides.theirs)
        try await sides.theirs.save()
        try await sides.ours.perform { context throws in
            context.refreshAllObjects()
            #expect(try context.undoHistory?.undo() == [])
            #expect(!isSaved || !context.hasChanges)
        }
        try await sides.ours.save()
        #expect(try await Mixes.stored(sides.mix, in: sides.container) == "bca")
        #expect(try Mixes.positionCount(in: sides.container) == 3)
        #expect(try sides.container.coordinator.store.verify() == [])
        try await sides.container.close()
    }

    /// Catches: a pair whose position is deleted although the pair stays, because another author may have made it.
    @Test(arguments: StoreKind.allCases)
    func `S046, S162: a pair that the undo of an author skips keeps its place`(_ kind: StoreKind) async throws {
        let sides = try await Sides(try TestBed(kind), "ab", .error)
        let second = try await Mixes.make("c", in: sides.ours)
        let before = try sides.container.coordinator.snapshot(owner: "before")
        await sides.ours.perform { $0.transactionAuthor = "adder" }
        try await Mixes.arrange(sides.mix, "abc", in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        // One save changes pairs of the mix and pairs of the song, so that it may have made the pair of both.
        try await Mixes.arrange(sides.mix, "abcd", in: sides.theirs)
        try await Mixes.arrange(second, "", in: sides.theirs)
        try await sides.theirs.save()
        let conflicts = try await sides.container.undoChanges(by: "adder", since: before, onConflict: .skip)
        #expect(conflicts.count == 1)
        #expect(try await Mixes.stored(sides.mix, in: sides.container) == "abcd")
        #expect(try Mixes.positionCount(in: sides.container) == 4)
        #expect(try sides.container.coordinator.store.verify() == [])
        try await sides.container.close()
    }

    /// Catches: "order of Mix.songs(id: 7).position in owner was changed since: it is data of 4 bytes".
    @Test(arguments: StoreKind.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func `S162, S172: a conflict of an undo names a place by its list and its member`(
        _ kind: StoreKind, _ form: (isByAuthor: Bool, isRemoved: Bool)
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "abcde", .error)
        let mix = sides.mix
        let song = try await sides.ours.perform { try $0.existingObject(with: mix).songs[0].objectID }
        let before = try sides.container.coordinator.snapshot(owner: "before")
        await sides.ours.perform { context in
            context.transactionAuthor = "ours"
            context.undoHistory = UndoHistory()
        }
        try await Mixes.arrange(mix, "bcade", in: sides.ours)
        try await sides.ours.save()
        await sides.theirs.perform { $0.refreshAllObjects() }
        try await Mixes.arrange(mix, form.isRemoved ? "bcde" : "bcdea", in: sides.theirs)
        try await sides.theirs.save()
        let conflicts = try await sides.container.conflicts(undoing: sides.ours, since: form.isByAuthor ? before : nil)
        let place = "the place of Song(id: \(song.key)) in Mix(id: \(mix.key)).songs"
        #expect(conflicts.map(\.description) == ["\(place) was \(form.isRemoved ? "deleted" : "changed") since"])
        #expect(conflicts.map(\.objectID) == [mix] && conflicts.map(\.entityName) == ["Mix"])
        #expect(conflicts.map(\.property) == ["songs"])
        try await sides.container.close()
    }

    /// Two root contexts that show the same mix.
    private struct Sides {
        let bed: TestBed
        var container: PersistentContainer
        var ours: BackgroundContext
        var theirs: BackgroundContext
        var mix: ObjectID

        init(_ bed: TestBed, _ songs: String, _ policy: MergePolicy) async throws {
            self.bed = bed
            container = try await bed.container(model: try Mixes.model())
            ours = container.coordinator.newBackgroundContext()
            theirs = container.coordinator.newBackgroundContext()
            await ours.perform { $0.mergePolicy = policy }
            mix = try await Mixes.make(songs, in: ours)
            await theirs.perform { $0.refreshAllObjects() }
        }

        /// Saves their order, then ours, and returns the titles that every context shows afterwards.
        func merge(theirs their: String, ours our: String) async throws -> String {
            try await Mixes.arrange(mix, their, in: theirs)
            try await Mixes.arrange(mix, our, in: ours)
            try await theirs.save()
            try await ours.save()
            for context in [ours, theirs] { await context.perform { $0.refreshAllObjects() } }
            let stored = try await Mixes.stored(mix, in: container)
            for context in [ours, theirs] { #expect(try await Mixes.titles(mix, in: context) == stored) }
            #expect(try container.coordinator.store.verify() == [])
            #expect(try Mixes.positionCount(in: container) == stored.count)
            return stored
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S107: merges of two orders of pairs keep both, whatever the policy`(_ kind: StoreKind) async throws {
        let policies: [MergePolicy] = [.error, .storeTrump, .objectTrump, .overwrite, .rollback, .custom { _ in [:] }]
        for (number, policy) in policies.enumerated() {
            let sides = try await Sides(try TestBed(kind), "abcdefgh", policy)
            #expect(try await sides.merge(theirs: "bcdefgha", ours: "habcdefg") == "hbcdefga", "policy \(number)")
            // One side removes what the other moves, in both directions.
            #expect(try await sides.merge(theirs: "hbdefga", ours: "hbdefgac") == "hbdefga", "policy \(number)")
            #expect(try await sides.merge(theirs: "bdefgah", ours: "bdefga") == "bdefga", "policy \(number)")
            try await sides.container.close()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S101, S102, S103: two moves of one member conflict, and a policy decides`(_ kind: StoreKind) async throws {
        let sides = try await Sides(try TestBed(kind), "abcd", .error)
        await #expect { try await sides.merge(theirs: "bcda", ours: "bcad") } throws: { error in
            guard case SaveError.conflicts(let conflicts) = error, conflicts.count == 1 else { return false }
            return conflicts[0].objectID == sides.mix && conflicts[0].entityName == "Mix"
                && conflicts[0].properties.map(\.name) == ["songs"]
                && conflicts[0].description.contains("(songs: Song(id: ")
                && conflicts[0].description.hasSuffix("), here moved, in the store moved)")
        }
        await sides.ours.perform { $0.rollback() }
        try await sides.container.close()
        for (policy, merged) in [
            (MergePolicy.storeTrump, "bcda"), (.objectTrump, "bcad"), (.overwrite, "bcad"), (.rollback, "bcda"),
        ] {
            let sides = try await Sides(try TestBed(kind), "abcd", policy)
            #expect(try await sides.merge(theirs: "bcda", ours: "bcad") == merged)
            try await sides.container.close()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S107: two contexts that add one song to a mix give it one place`(_ kind: StoreKind) async throws {
        let sides = try await Sides(try TestBed(kind), "abc", .error)
        await sides.theirs.perform { _ = $0.makeSong("x") }
        try await sides.theirs.save()
        await sides.ours.perform { $0.refreshAllObjects() }
        try await Mixes.arrange(sides.mix, "xabc", in: sides.theirs)
        try await Mixes.arrange(sides.mix, "abxc", in: sides.ours)
        try await sides.theirs.save()
        try await sides.ours.save()
        for context in [sides.ours, sides.theirs] { await context.perform { $0.refreshAllObjects() } }
        let stored = try await Mixes.stored(sides.mix, in: sides.container)
        #expect(["xabc", "abxc"].contains(stored))
        for context in [sides.ours, sides.theirs] { #expect(try await Mixes.titles(sides.mix, in: context) == stored) }
        for context in [sides.ours, sides.theirs] {
            try await Mixes.arrange(sides.mix, "cxab", in: context)
            try await context.save()
            #expect(try await Mixes.stored(sides.mix, in: sides.container) == "cxab")
            for context in [sides.ours, sides.theirs] { await context.perform { $0.refreshAllObjects() } }
        }
        try await Mixes.arrange(sides.mix, "cab", in: sides.ours)
        try await sides.ours.save()
        #expect(try Mixes.positionCount(in: sides.container) == 3, "the second position went with the first one")
        try await sides.container.close()
    }

    /// Catches: a position that stays when its pair is removed by a context that has not read it. If the pair is added again, it gets that
    /// old place.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S107: a removal takes a position along that another context has given the pair meanwhile`(
        _ kind: StoreKind, _ isChild: Bool
    ) async throws {
        let sides = try await Sides(try TestBed(kind), "ab", .error)
        let remover = isChild ? await sides.ours.newBackgroundChild() : sides.ours
        try await remover.perform { _ = try $0.existingObject(with: sides.mix).songs }
        try await sides.theirs.perform { context in
            let mix = try context.existingObject(with: sides.mix)
            let song = mix.songs[0]
            mix.remove(song, from: "songs")
            mix.add(song, to: "songs")
        }
        try await remover.perform { context in
            let mix = try context.existingObject(with: sides.mix)
            mix.remove(mix.songs[0], from: "songs")
        }
        try await sides.theirs.save()
        try await remover.save(through: .store)
        #expect(try await Mixes.stored(sides.mix, in: sides.container) == "b")
        #expect(try Mixes.positionCount(in: sides.container) == 1)
        #expect(try await sides.container.coordinator.verify() == [])
        try await sides.container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S163: a many-to-many relationship gains and loses its order and keeps its members`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        var mix: ObjectID?
        for (version, isOrdered) in [false, true, false, true].enumerated() {
            let container = try await bed.container(model: try Mixes.model(songs: isOrdered, version: version + 1))
            let worker = container.coordinator.newBackgroundContext()
            let id = if let mix { mix } else { try await Mixes.make("cab", in: worker) }
            mix = id
            #expect(try await Mixes.titles(id, in: worker) == "cab", "without positions, the order of keys")
            if isOrdered {
                try await Mixes.arrange(id, "bac", in: worker)
                try await worker.save()
                #expect(try await Mixes.stored(id, in: container) == "bac")
            }
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
            try await bed.closed()
        }
    }

    /// Catches: the history lists the hidden objects with the positions, or has no change for a list whose order changed.
    @Test(arguments: Combination.all)
    func `S160: the history lists a changed order as an update of the object with the list`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Mixes.model(mixes: true))
        let worker = await container.newBackgroundContext()
        let first = try await Mixes.make("abcdef", in: worker)
        let second = try await Mixes.make("xyz", in: worker)
        let songs = try await worker.perform { context throws in
            try context.existingObject(with: first).songs.reduce(into: [:]) { $0[$1.title] = $1.objectID }
        }
        func changes(_ entities: Set<String>? = nil) async throws -> [[ObjectID: Set<String>]] {
            let start = try await container.coordinator.history().first?.token
            let saves = try await container.coordinator.history(HistoryRequest(after: start, entities: entities))
            return saves.map { save in
                #expect(save.changes.allSatisfy { ["Mix", "Song"].contains($0.entityName) }, "\(save)")
                return Dictionary(uniqueKeysWithValues: save.changes.map { ($0.objectID, $0.updatedProperties) })
            }
        }
        let insertions = try await changes()
        #expect(insertions.count == 1 && insertions[0][second] == [], "an inserted object has no list of properties")

        try await Mixes.arrange(first, "fabcde", in: worker)
        try await worker.save(through: .store)
        #expect(try await changes().last == [first: ["songs"]])
        try await Mixes.arrange(first, "fbcde", in: worker)
        try await worker.save(through: .store)
        let (a, f) = (try #require(songs["a"]), try #require(songs["f"]))
        #expect(try await changes().last == [first: ["songs"], a: ["mixes"]])
        try await Mixes.arrange(second, "xzyf", in: worker)
        try await worker.save(through: .store)
        #expect(try await changes().last == [second: ["songs"], f: ["mixes"]])
        #expect(try await changes(["Mix"]) == [[second: []], [first: ["songs"]], [first: ["songs"]], [second: ["songs"]]])

        // The moved member is removed from the list, so that its move has no list any more.
        try await Mixes.arrange(first, "bcde", in: worker)
        try await worker.save(through: .store)
        #expect(try await changes()[1] == [:])
        #expect(try await changes(["Mix"]).count == 4, "without the save of the move")
        try await container.close()
    }

    /// A long list costs no more writes than a short one.
    @Test(arguments: [true, false])
    func `S046: moving one of many members writes one row`(_ isPair: Bool) async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container(model: try isPair ? Mixes.model() : Books.model())
        let worker = container.coordinator.newBackgroundContext()
        let count = Rounds.of(2000, long: 100_000)
        let (list, members) = isPair ? ("Mix", "songs") : ("Book", "chapters")
        let id = await worker.perform { context in
            let owner = context.insert(list)
            owner.setRelatedObjects(
                members, to: (0..<count).map { isPair ? context.makeSong("\($0)") : context.makeChapter("\($0)") })
            return owner.objectID
        }
        try await worker.save()
        for (from, to) in [(count - 1, 0), (0, count / 2), (count / 2, count - 1)] {
            try await worker.perform { context throws in
                let owner = try context.existingObject(with: id)
                var moved = owner.relatedObjects(members)
                moved.insert(moved.remove(at: from), at: to)
                owner.setRelatedObjects(members, to: moved)
                #expect(owner.relatedObjects(members) == moved)
            }
            let changes = await worker.previewSave().changes
            let keys = changes.entities.flatMap { $0.insertedKeys + $0.updatedKeys + $0.deletedKeys }
            #expect(keys.count == 1 && changes.links.isEmpty)
            try await worker.save()
        }
        try await container.close()
    }

    /// Catches: a move that a custom policy never sees, and that overwrites the other one.
    @Test(arguments: StoreKind.allCases)
    func `S107, S109: a custom policy decides about a member that both sides have moved`(_ kind: StoreKind) async throws {
        let none = try await Sides(try TestBed(kind), "abcd", .custom { _ in [:] })
        let error = await #expect(throws: SaveError.self) { try await none.merge(theirs: "bcda", ours: "bcad") }
        if case .conflicts(let conflicts)? = error { #expect(conflicts.map(\.objectID) == [none.mix]) }
        let answers: [(ConflictResolution, MergePolicy)] = [
            (.storeTrump, .storeTrump), (.objectTrump, .objectTrump), (.overwrite, .overwrite), (.rollback, .rollback),
            (.values([:]), .storeTrump),
        ]
        for (resolution, plain) in answers {
            // Keys of a dictionary of answers are unique: there is one conflict per list.
            let policy = MergePolicy.custom { conflicts in
                Dictionary(uniqueKeysWithValues: conflicts.map { ($0.objectID, resolution) })
            }
            let expected = try await Sides(try TestBed(kind), "abcd", plain).merge(theirs: "dcba", ours: "badc")
            let merged = try await Sides(try TestBed(kind), "abcd", policy).merge(theirs: "dcba", ours: "badc")
            #expect(merged == expected, "\(resolution)")
        }
    }

    /// Catches: an answer for all properties of a conflict that is refused, because one of them is a list.
    @Test(arguments: StoreKind.allCases)
    func `S109: a custom policy may answer for each property that a conflict names`(_ kind: StoreKind) async throws {
        let policy = MergePolicy.custom { conflicts in
            conflicts.reduce(into: [:]) { answers, conflict in
                let values = conflict.properties.map { ($0.name, $0.ours ?? .null) }
                answers[conflict.objectID] = .values(Dictionary(uniqueKeysWithValues: values))
            }
        }
        let sides = try await Sides(try TestBed(kind), "abcd", policy)
        let mix = sides.mix
        for (context, title) in [(sides.theirs, "theirs"), (sides.ours, "ours")] {
            await context.perform { $0.object(with: mix)["title"] = .string(title) }
        }
        _ = try await sides.merge(theirs: "bcda", ours: "bcad")
        #expect(try await sides.ours.perform { context throws in try context.existingObject(with: mix)["title"] } == "ours")
    }

    /// Catches: new places of a pair that was left out, with which the parent had changes without a changed object.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S007, S063: nothing is left of a pair with an object that the parent has rolled back`(
        _ kind: StoreKind, _ ownerIsNew: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Mixes.model(songs: true, mixes: true))
        let parent = container.coordinator.newBackgroundContext()
        func insert() async -> [ObjectID] {
            await parent.perform { [$0.insert("Mix").objectID, $0.insert("Song").objectID] }
        }
        let saved = await insert()
        try await parent.save()
        let new = await insert()
        let child = await parent.newBackgroundChild()
        let ids = ownerIsNew ? [new[0], saved[1]] : [saved[0], new[1]]
        try await child.perform { context throws in
            let (mix, song) = (try context.existingObject(with: ids[0]), try context.existingObject(with: ids[1]))
            mix.add(song, to: "songs")
            (ownerIsNew ? mix : song)["title"] = "n"
        }
        await parent.perform { $0.rollback() }
        try await child.save()
        #expect(await parent.perform { !$0.hasChanges })
    }
}
