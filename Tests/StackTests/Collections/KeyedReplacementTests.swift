import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Keys that a context sets or removes again after it has merged the removal of an entry that it had changed.
@Suite struct KeyedReplacementTests {
    private static func set(_ value: String?, _ key: String = "k", in context: BackgroundContext) async throws {
        try await context.perform { try $0.collection("names", of: String.self).setValue(value, forKey: key) }
    }

    private static func shown(_ context: BackgroundContext) async throws -> [String] {
        try await context.perform { context throws in
            try context.collection("names", of: String.self).all.entries().map { "\($0.key)=\($0.value)" }
        }
    }

    /// Returns two roots. `ours` has changed an entry that `theirs` has removed, and has merged the removal.
    ///
    /// - Parameter oursIsFirst: Whether the keys of new objects of `ours` are lower than that of the entry.
    private static func merged(
        _ container: PersistentContainer, oursIsFirst: Bool
    ) async throws -> (ours: BackgroundContext, theirs: BackgroundContext) {
        let ours = container.coordinator.newBackgroundContext(name: "ours")
        let theirs = container.coordinator.newBackgroundContext(name: "theirs")
        let order = oursIsFirst ? [ours, theirs] : [theirs, ours]
        try await set("x", "first", in: order[0])
        try await order[0].save()
        await order[1].perform { $0.refreshAllObjects() }
        try await set("y", "second", in: order[1])
        try await order[1].save()
        await theirs.perform { $0.refreshAllObjects() }
        try await set("base", in: theirs)
        try await theirs.save()
        await ours.perform { $0.refreshAllObjects() }
        try await set("old", in: ours)
        try await set(nil, in: theirs)
        try await theirs.save()
        await ours.perform { $0.refreshAllObjects() }
        let shown = try await shown(ours)
        #expect(shown == ["first=x", "second=y"])
        return (ours, theirs)
    }

    /// Catches: the older value, or two entries with one key.
    @Test(arguments: StoreKind.allCases, PolicyKind.allCases)
    func `S191, S192: a key that is set or removed again after a merged removal has the last value`(
        _ kind: StoreKind, _ policy: PolicyKind
    ) async throws {
        for (value, oursIsFirst, hasUndo) in [
            ("new", true, false), ("new", false, true), (nil, true, true), (nil, false, false),
        ] as [(String?, Bool, Bool)] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, _) = try await Self.merged(container, oursIsFirst: oursIsFirst)
            await ours.perform { context in
                context.mergePolicy = policy.mergePolicy
                if hasUndo { context.undoHistory = UndoHistory() }
            }
            try await Self.set(value, in: ours)
            let expected = ["first=x"] + (value.map { ["k=\($0)"] } ?? []) + ["second=y"]
            #expect(try await Self.shown(ours) == expected)
            try await ours.save()
            #expect(try await Self.shown(ours) == expected)
            #expect(try await Self.shown(container.coordinator.newBackgroundContext()) == expected, "\(policy)")
            #expect(try await container.coordinator.verify().isEmpty)
        }
    }

    /// Catches: a range that is removed, of which an entry comes back by the next save.
    @Test(arguments: StoreKind.allCases)
    func `S191, S106: a range that is removed again stays removed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, _) = try await Self.merged(container, oursIsFirst: true)
        try await ours.perform { context throws in
            context.mergePolicy = .overwrite
            try context.collection("names", of: String.self)["k"..<"l"].removeAll()
            #expect(!context.hasChanges)
        }
        try await ours.save()
        #expect(try await Self.shown(container.coordinator.newBackgroundContext()) == ["first=x", "second=y"])
    }

    /// Catches: two entries with one key after others have set the key meanwhile, too.
    @Test(arguments: StoreKind.allCases)
    func `S192: the value that is set last is an update of the entry that others have set`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = try await Self.merged(container, oursIsFirst: true)
        try await Self.set("new", in: ours)
        try await Self.set("third", in: theirs)
        try await theirs.save()
        await ours.perform { $0.refreshAllObjects() }
        #expect(try await Self.shown(ours) == ["first=x", "k=new", "second=y"])
        try await ours.save()
        #expect(try await Self.shown(container.coordinator.newBackgroundContext()) == ["first=x", "k=new", "second=y"])
    }

    /// Catches: two entries with one key in the parent, whose save then fails for a unique value.
    @Test(arguments: StoreKind.allCases)
    func `S075, S192: a child's key is one entry in a parent that has removed and set it meanwhile`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        try await Self.set("0", in: parent)
        try await parent.save()
        let child = await parent.newBackgroundChild()
        try await Self.set("1", in: child)
        try await Self.set(nil, in: parent)
        try await child.refreshFromParent()
        #expect(try await Self.shown(child) == [])
        try await Self.set("2", in: child)
        try await Self.set("3", in: parent)
        try await child.save()
        #expect(try await Self.shown(parent) == ["k=2"])
        try await parent.save()
        #expect(try await Self.shown(container.coordinator.newBackgroundContext()) == ["k=2"])
    }

    /// Catches: the parent's older value, which its save wrote over that of the child.
    @Test(arguments: StoreKind.allCases, PolicyKind.allCases)
    func `S192: a child's value replaces the parent's change of a removed entry`(_ kind: StoreKind, _ policy: PolicyKind)
        async throws
    {
        for (oursIsFirst, savesThrough) in [(false, false), (false, true), (true, false), (true, true)] {
            try await Self.replaceInChild(kind, policy, oursIsFirst: oursIsFirst, savesThrough: savesThrough)
        }
    }

    private static func replaceInChild(
        _ kind: StoreKind, _ policy: PolicyKind, oursIsFirst: Bool, savesThrough: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, _) = try await merged(container, oursIsFirst: oursIsFirst)
        await ours.perform { $0.mergePolicy = policy.mergePolicy }
        let child = await ours.newBackgroundChild()
        try await set("child", in: child)
        if savesThrough {
            try await child.save(through: .store)
        } else {
            try await child.save()
            #expect(try await shown(ours) == ["first=x", "k=child", "second=y"])
            try await ours.save()
        }
        #expect(try await shown(ours) == ["first=x", "k=child", "second=y"])
        #expect(try await shown(container.coordinator.newBackgroundContext()) == ["first=x", "k=child", "second=y"])
    }

    @Test(arguments: StoreKind.allCases)
    func `S151: reading an older state keeps the removal of a key that it lacks`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext()
        let snapshot = try container.coordinator.snapshot()
        let other = container.coordinator.newBackgroundContext()
        try await Self.set("1", in: other)
        try await other.save()
        await ours.perform { $0.refreshAllObjects() }
        try await Self.set(nil, in: ours)
        await ours.perform { context in
            context.read(from: snapshot)
            context.refreshAllObjects()
            #expect(context.hasChanges)
        }
        #expect(try await Self.shown(ours) == [])
        try await ours.save()
        #expect(try await Self.shown(container.coordinator.newBackgroundContext()) == [])
    }
}
