import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Deletions that a merge policy drops, with what they would have deleted and cleared (S106).
@Suite struct KeptDeletionTests {
    /// Catches: an artist that is kept while its albums, its profile and the references to it are gone.
    @Test(arguments: StoreKind.allCases, PolicyKind.allCases)
    func `S106: a revived object has the objects of its cascade and the references to it`(
        _ kind: StoreKind, _ policy: PolicyKind
    ) async throws {
        guard policy != .error else { return }
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext(name: "ours")
        let other = container.coordinator.newBackgroundContext(name: "other")
        let id = try await ours.perform(andSave: .durable) { context in
            let artist = context.makeArtist("Ravel")
            for number in 0..<2 {
                let album = context.insert("Album")
                album["title"] = .string("\(number)")
                album.setRelatedObject("artist", to: artist)
            }
            artist.setRelatedObject("profile", to: context.insert("Profile"))
            context.makeArtist("pupil").setRelatedObject("mentor", to: artist)
            return artist.objectID
        }
        await other.perform { $0.refreshAllObjects() }
        try await ours.perform { context in
            context.mergePolicy = policy.mergePolicy
            context.delete(try context.existingObject(with: id))
        }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: id)["born"] = .int(1875) }
        try await ours.save()
        for context in [ours, container.coordinator.newBackgroundContext()] {
            let counts = try await context.perform { context in
                try ["Artist", "Album", "Profile"].map { try context.count(EntityFetchRequest($0)) }
            }
            #expect(counts == (policy.prefersStore ? [2, 2, 1] : [1, 0, 0]))
            guard policy.prefersStore else { continue }
            try await context.perform { context in
                let artist = try context.existingObject(with: id)
                #expect(artist["born"] == .int(1875))
                #expect(artist.relatedObjects("albums").count == 2)
                #expect(artist.relatedObjects("pupils").count == 1)
                #expect(artist.relatedObject("profile")?.relatedObject("artist") === artist)
            }
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S106: a revived object has its pairs again, and a custom policy revives in the same way`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext(name: "ours")
        let other = container.coordinator.newBackgroundContext(name: "other")
        let id = try await ours.perform(andSave: .durable) { context in
            let track = context.makeTrack("a")
            for _ in 0..<2 { context.insert("Playlist").add(track, to: "tracks") }
            return track.objectID
        }
        await other.perform { $0.refreshAllObjects() }
        try await ours.perform { context in
            context.mergePolicy = .custom { $0.reduce(into: [:]) { $0[$1.objectID] = .storeTrump } }
            context.delete(try context.existingObject(with: id))
        }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await ours.save()
        for context in [ours, container.coordinator.newBackgroundContext()] {
            let lists = try await context.perform { try $0.existingObject(with: id).relatedObjects("playlists").count }
            #expect(lists == 2)
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Catches: an album that stays deleted with the artist to whom it was moved, although the policy keeps the artist.
    @Test(arguments: StoreKind.allCases, [PolicyKind.storeTrump, .rollback, nil] as [PolicyKind?])
    func `S106: an object that was moved to a revived object before the deletion is back at its former place`(
        _ kind: StoreKind, _ policy: PolicyKind?
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext(name: "ours")
        let other = container.coordinator.newBackgroundContext(name: "other")
        let (former, artist, album, profile) = try await ours.perform(andSave: .durable) { context in
            let (former, artist) = (context.makeArtist("Satie"), context.makeArtist("Ravel"))
            let (album, profile) = (context.insert("Album"), context.insert("Profile"))
            album["title"] = .string("a")
            album.setRelatedObject("artist", to: former)
            return (former.objectID, artist.objectID, album.objectID, profile.objectID)
        }
        await other.perform { $0.refreshAllObjects() }
        let custom = MergePolicy.custom { $0.reduce(into: [:]) { $0[$1.objectID] = .storeTrump } }
        let chosen = policy?.mergePolicy ?? custom
        try await ours.perform { context in
            context.mergePolicy = chosen
            let owner = try context.existingObject(with: artist)
            try context.existingObject(with: album).setRelatedObject("artist", to: owner)
            owner.setRelatedObject("profile", to: try context.existingObject(with: profile))
            context.delete(owner)
            #expect(try context.count(EntityFetchRequest("Album")) == 0)
            #expect(try context.count(EntityFetchRequest("Profile")) == 0)
        }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: artist)["born"] = .int(1875) }
        try await ours.save()
        for context in [ours, container.coordinator.newBackgroundContext()] {
            try await context.perform { context throws in
                #expect(try context.existingObject(with: artist)["born"] == .int(1875))
                #expect(try context.existingObject(with: album).relatedObject("artist")?.objectID == former)
                #expect(try context.existingObject(with: profile).relatedObject("artist") == nil)
            }
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Catches: parts that stay deleted with the machine that refers to them, because only the base state is asked for its parts.
    @Test(arguments: StoreKind.allCases, [PolicyKind.storeTrump, .rollback])
    func `S106: an object to which a revived object was related before the deletion is kept`(
        _ kind: StoreKind, _ policy: PolicyKind
    ) async throws {
        let model = try Model([
            EntityDescription(
                name: "Machine",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    .relationship(.init(name: "motor", destination: "Motor", cardinality: .toOne, deleteRule: .cascade)),
                    .relationship(
                        .init(
                            name: "tools", destination: "Tool", inverse: "machines", cardinality: .toMany, deleteRule: .cascade)),
                ]),
            EntityDescription(name: "Motor", properties: [.attribute(.init(name: "title", type: .string))]),
            EntityDescription(
                name: "Tool",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    .relationship(.init(name: "machines", destination: "Machine", inverse: "tools", cardinality: .toMany)),
                ]),
        ])
        let bed = try TestBed(kind)
        let container = try await bed.container(model: model)
        let ours = container.coordinator.newBackgroundContext(name: "ours")
        let other = container.coordinator.newBackgroundContext(name: "other")
        let ids = try await ours.perform(andSave: .durable) { context in
            ["Machine", "Motor", "Tool"].map { entity in
                let object = context.insert(entity)
                object["title"] = .string("a")
                return object.objectID
            }
        }
        await other.perform { $0.refreshAllObjects() }
        try await ours.perform { context in
            context.mergePolicy = policy.mergePolicy
            let machine = try context.existingObject(with: ids[0])
            machine.setRelatedObject("motor", to: try context.existingObject(with: ids[1]))
            machine.add(try context.existingObject(with: ids[2]), to: "tools")
            context.delete(machine)
            let counts = try ["Motor", "Tool"].map { try context.count(EntityFetchRequest($0)) }
            #expect(counts == [0, 0], "the rule cascade deletes both")
        }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: ids[0])["title"] = .string("b") }
        try await ours.save()
        for context in [ours, container.coordinator.newBackgroundContext()] {
            let counts = try await context.perform { context in
                try ["Machine", "Motor", "Tool"].map { try context.count(EntityFetchRequest($0)) }
            }
            #expect(counts == [1, 1, 1])
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    // MARK: Random

    /// Nodes with a title and a parent, which deletes its children.
    private static let forest: Model = {
        do {
            return try Model([
                EntityDescription(
                    name: "Node",
                    properties: [
                        .attribute(.init(name: "title", type: .int64)),
                        .relationship(
                            .init(
                                name: "parent", destination: "Node", inverse: "children", cardinality: .toOne,
                                deleteRule: .nullify
                            )),
                        .relationship(
                            .init(
                                name: "children", destination: "Node", inverse: "parent", cardinality: .toMany,
                                deleteRule: .cascade
                            )),
                    ])
            ])
        } catch { preconditionFailure("the model is wrong: \(error)") }
    }()

    private enum Step {
        case title(Int, Int)
        case move(Int, under: Int?)
        case delete(Int)
    }

    /// A forest as a dictionary, and the changes that one context has made in it.
    private struct Forest {
        struct Node: Equatable {
            var title: Int
            var parent: Int?
        }

        var nodes: [Int: Node]
        /// The nodes whose title or parent was set, perhaps to the value from before.
        var titled: Set<Int> = []
        var moved: Set<Int> = []
        /// The parents of deleted nodes at their deletion.
        var lastParents: [Int: Int] = [:]

        /// Whether the nodes of the context, or of the store, have another version than in the base.
        func hasTouched(_ number: Int) -> Bool { nodes[number] == nil || titled.contains(number) || moved.contains(number) }

        mutating func delete(_ number: Int) {
            guard let deleted = nodes.removeValue(forKey: number) else { return }
            lastParents[number] = deleted.parent
            for (child, node) in nodes where node.parent == number { delete(child) }
        }

        func making(_ steps: [Step]) -> Forest {
            var forest = self
            steps.forEach { forest.make($0) }
            return forest
        }

        /// Makes a change that a context makes. An equal value is no change (S032).
        mutating func make(_ step: Step) {
            switch step {
            case .title(let number, let title):
                guard let node = nodes[number], node.title != title else { return }
                nodes[number]?.title = title
                titled.insert(number)
            case .move(let number, let parent):
                guard let node = nodes[number], node.parent != parent, parent.map({ nodes[$0] != nil }) ?? true else { return }
                nodes[number]?.parent = parent
                moved.insert(number)
            case .delete(let number): delete(number)
            }
        }
    }

    /// A save of one forest over another.
    private struct Merge {
        let base: Forest
        let theirs: Forest
        let policy: PolicyKind
        var titles: [Int: Int] = [:]
        var parents: [Int: Int?] = [:]
        /// The parents of objects that the save inserts again, or writes whole.
        var restored: [Int: Int?] = [:]
        var inserted: Set<Int> = []
        var deleted: Set<Int> = []

        /// Decides each object that `ours` has touched. Returns nil if the save must fail.
        init?(_ base: Forest, _ ours: Forest, _ theirs: Forest, _ policy: PolicyKind) {
            (self.base, self.theirs, self.policy) = (base, theirs, policy)
            var kept: [Int] = []
            for (number, before) in base.nodes where ours.hasTouched(number) {
                let (mine, stored) = (ours.nodes[number], theirs.nodes[number])
                let conflicts = theirs.hasTouched(number)
                if conflicts, policy == .error, mine != nil || stored != nil { return nil }
                guard let mine else {
                    if stored == nil { continue }
                    if conflicts, policy.prefersStore { kept.append(number) } else { deleted.insert(number) }
                    continue
                }
                if conflicts, policy == .rollback || stored == nil && policy.prefersStore { continue }
                let prefers = conflicts && policy == .storeTrump
                if ours.titled.contains(number), !(prefers && stored?.title != before.title) { titles[number] = mine.title }
                if ours.moved.contains(number), !(prefers && stored?.parent != before.parent) {
                    parents[number] = .some(mine.parent)
                }
                if stored == nil { inserted.insert(number) }
                if stored == nil || policy == .overwrite && conflicts {
                    if titles[number] == nil { titles[number] = before.title }
                    if parents[number] == nil { restored[number] = .some(before.parent) }
                }
            }
            // If an object is kept, so is all that its deletion had deleted, also what was moved to it before.
            while let number = kept.popLast() {
                for (child, node) in base.nodes where node.parent == number || ours.lastParents[child] == number {
                    if deleted.remove(child) != nil { kept.append(child) }
                }
            }
        }

        func parent(_ number: Int) -> Int? {
            if let own = parents[number] { return own }
            if let own = restored[number] { return own }
            return theirs.nodes[number]?.parent
        }

        func exists(_ number: Int) -> Bool {
            !deleted.contains(number) && (inserted.contains(number) || theirs.nodes[number] != nil)
        }

        /// Deletes what belongs to deleted objects, except objects that the save itself has put there.
        mutating func cascade() {
            var waiting = Array(deleted)
            while let number = waiting.popLast() {
                for child in base.nodes.keys where exists(child) && parents[child] == nil && parent(child) == number {
                    if inserted.remove(child) == nil {
                        deleted.insert(child)
                    } else {
                        (titles[child], restored[child]) = (nil, nil)
                    }
                    waiting.append(child)
                }
            }
        }

        /// Drops references to objects that do not exist. Returns whether there were none; nil if the save must fail.
        mutating func dropReferences() -> Bool? {
            var isSettled = true
            for child in base.nodes.keys where exists(child) {
                if let own = restored[child], let target = own, !exists(target) {
                    (restored[child], isSettled) = (.some(nil), false)
                }
                guard let own = parents[child], let target = own, !exists(target) else { continue }
                guard policy.prefersStore else { return nil }
                (parents[child], isSettled) = (nil, false)
            }
            return isSettled
        }

        var result: Forest {
            var result = Forest(nodes: [:])
            for number in base.nodes.keys where exists(number) {
                result.nodes[number] = .init(title: titles[number] ?? theirs.nodes[number]?.title ?? 0, parent: parent(number))
            }
            return result
        }
    }

    /// Returns the state after a save of `ours` over `theirs`; nil if it must fail.
    private static func merged(_ base: Forest, _ ours: Forest, _ theirs: Forest, _ policy: PolicyKind) -> Forest? {
        guard var merge = Merge(base, ours, theirs, policy) else { return nil }
        while true {
            merge.cascade()
            guard let isSettled = merge.dropReferences() else { return nil }
            if isSettled { return merge.result }
        }
    }

    private static func steps(_ count: Int, _ numbers: inout SeededGenerator) -> [Step] {
        (0..<count).map { _ in
            let number = numbers.below(8)
            switch numbers.below(6) {
            case 0, 1: return .title(number, numbers.below(100) + 1)
            // Only to a smaller number, so that no node is below itself.
            case 2, 3: return .move(number, under: number == 0 || numbers.chance(20) ? nil : numbers.below(number))
            default: return .delete(number)
            }
        }
    }

    private static func make(_ steps: [Step], _ ids: [ObjectID], _ context: ManagedObjectContext) {
        func node(_ number: Int) -> ManagedObject? { try? context.existingObject(with: ids[number]) }
        for step in steps {
            switch step {
            case .title(let number, let title): node(number)?["title"] = .int(Int64(title))
            case .move(let number, let parent):
                guard let child = node(number) else { continue }
                guard let parent else {
                    child.setRelatedObject("parent", to: nil)
                    continue
                }
                if let parent = node(parent) { child.setRelatedObject("parent", to: parent) }
            case .delete(let number):
                if let object = node(number) { context.delete(object) }
            }
        }
    }

    private static func forest(_ context: ManagedObjectContext, _ ids: [ObjectID]) -> Forest {
        var forest = Forest(nodes: [:])
        for (number, id) in ids.enumerated() {
            guard let node = try? context.existingObject(with: id), case .int(let title) = node["title"] else { continue }
            let parent = node.relatedObject("parent")?.objectID
            forest.nodes[number] = .init(title: Int(title), parent: parent.flatMap(ids.firstIndex))
        }
        return forest
    }

    /// Two roots change and delete the nodes of one forest. The second save is merged, and compared with a plain model.
    @Test(arguments: StoreKind.allCases)
    func `S051: random deletions and moves of two roots are merged as each policy promises`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.forest)
        for round in 0..<Rounds.of(60, long: 10_000) {
            let seed = Seed.value &+ UInt64(round)
            var numbers = SeededGenerator(seed: seed)
            let policy = PolicyKind.allCases[numbers.below(PolicyKind.allCases.count)]
            let ours = container.coordinator.newBackgroundContext(name: "ours")
            let other = container.coordinator.newBackgroundContext(name: "other")
            let parents = (0..<8).map { $0 == 0 || numbers.chance(20) ? nil : numbers.below($0) }
            let ids = try await other.perform(andSave: .deferred) { context in
                let nodes = parents.map { _ in context.insert("Node") }
                for (node, parent) in zip(nodes, parents) where parent != nil {
                    node.setRelatedObject("parent", to: parent.map { nodes[$0] })
                }
                return nodes.map(\.objectID)
            }
            let base = Forest(
                nodes: Dictionary(uniqueKeysWithValues: parents.enumerated().map { ($0, .init(title: 0, parent: $1)) }))
            let (first, second) = (Self.steps(1 + numbers.below(5), &numbers), Self.steps(1 + numbers.below(5), &numbers))
            let (theirs, mine) = (base.making(first), base.making(second))
            let durability: Durability = numbers.chance(50) ? .deferred : .durable
            let hasChanges = await ours.perform { context in
                context.refreshAllObjects()
                context.mergePolicy = policy.mergePolicy
                Self.make(second, ids, context)
                #expect(Self.forest(context, ids).nodes == mine.nodes)
                return context.hasChanges
            }
            try await other.perform(andSave: durability) { Self.make(first, ids, $0) }
            let expected = Self.merged(base, mine, theirs, policy)
            let comment = "\(kind), STRATA_SEED=\(seed), \(policy): ours \(second), theirs \(first)"
            do {
                try await ours.save(durability)
                #expect(expected != nil, "the save must fail: \(comment)")
            } catch let error as SaveError {
                #expect(expected == nil, "\(error): \(comment)")
            }
            let found = await container.coordinator.newBackgroundContext().perform { Self.forest($0, ids) }
            #expect(found.nodes == (expected ?? theirs).nodes, "\(comment)")
            let shown = await ours.perform { Self.forest($0, ids) }
            #expect(shown.nodes == (hasChanges ? expected ?? mine : mine).nodes, "S110: \(comment)")
        }
        #expect(try container.coordinator.store.verify() == [])
    }
}
