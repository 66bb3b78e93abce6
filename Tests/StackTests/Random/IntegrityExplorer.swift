import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random short sequences of changes, undos and refreshes by roots, children and batches, also in two processes. After each step the
/// committed state is checked (S050 … S053, S108), and the state of the context that took the step. Batch updates, imports and orders are
/// compared with the result of a plain model (S046, S137). A failure prints the shortest failing
/// sequence that was found, and its seed.
@Suite struct IntegrityExplorer {
    /// The values of the unique attribute.
    static let codes = ["A", "B", "C", "D"]

    /// Checks a new context, and records the first fault.
    static func check(_ context: ManagedObjectContext, _ comment: String) throws {
        if let fault = try fault(in: context) { Issue.record("\(comment): \(fault)") }
    }

    /// Returns a fault of the state that a new context shows, in words, or nil. References lead to objects, one-to-one ends agree,
    /// properties and predicates agree, and no two objects have the same unique value.
    @Sendable static func fault(in context: ManagedObjectContext) throws -> String? {
        try relationshipFault(in: context) ?? uniqueFault(in: context)
    }

    /// Returns a fault of what a context with unsaved changes shows, in words, or nil. Both ends of its relationships agree, and it lists
    /// no changed object if it has no changes (S007).
    static func contextFault(in context: ManagedObjectContext) throws -> String? {
        if let fault = try relationshipFault(in: context) { return "the context itself: \(fault)" }
        let changed = context.unsavedIDs
        return context.hasChanges || changed.isEmpty ? nil : "hasChanges is false with \(changed.map(\.key))"
    }

    private static func relationshipFault(in context: ManagedObjectContext) throws -> String? {
        for entity in Music.model.entities {
            let objects = try context.objects(entity.name)
            for relationship in entity.relationships {
                guard case .toOne(let column) = relationship.kind else { continue }
                let isNil = Set(try context.keys(matching: Music.query(entity.name, .compare(column, .equal, to: .null))))
                for object in objects {
                    let fault = self.fault(of: relationship, of: object, isNil: isNil.contains(object.objectID.key), in: context)
                    if let fault { return "\(entity.name) \(object.objectID.key).\(relationship.name) \(fault)" }
                }
            }
        }
        return nil
    }

    private static func fault(
        of relationship: Relationship, of object: ManagedObject, isNil: Bool, in context: ManagedObjectContext
    ) -> String? {
        let key = object[relationship.name].referenceKey
        let other = object.relatedObject(relationship.name)
        guard (key == nil) == (other == nil) else { return "leads to nothing: \(String(describing: key))" }
        guard (other == nil) == isNil else { return "is \(isNil ? "null" : "not null") for a predicate only" }
        // A context may show a destination that is deleted, and the save then throws (S053).
        guard let other, !other.isDeleted, let inverse = relationship.inverse else { return nil }
        let back = context.model.entities[relationship.destination].relationships[inverse]
        let count =
            switch back.kind {
            case .toOne: other.relatedObject(back.name) === object ? 1 : 0
            case .toMany: other.relatedObjects(back.name).count { $0 === object }
            }
        return count == 1 ? nil : "is at the other end \(count) times"
    }

    private static func uniqueFault(in context: ManagedObjectContext) throws -> String? {
        let column = Music.column("Track", "isrc")
        let tracks = try context.objects("Track")
        for code in codes {
            let keys = tracks.filter { $0["isrc"] == .string(code) }.map(\.objectID.key)
            guard keys.count < 2 else { return "tracks \(keys) have the same isrc \(code)" }
            let found = try context.keys(matching: Music.query("Track", .compare(column, .equal, to: .string(code))))
            guard found == keys else { return "tracks \(keys) have the isrc \(code), but a predicate finds \(found)" }
        }
        return nil
    }

    @Test(arguments: StoreKind.allCases)
    func `S007, S050, S055, S063, S108, S162: random roots, children and batches leave nothing wrong in store and contexts`(
        _ kind: StoreKind
    ) async throws {
        let hasTracks = Flag()
        for round in 0..<Rounds.of(6, long: 2000) {
            let seed = Seed.value &+ UInt64(round)
            let steps = IntegrityStep.sequence(60, seed: seed)
            // By the seed, so that a printed seed repeats the model too.
            let isOrdered = seed.isMultiple(of: 2)
            let place = "\(kind)\(isOrdered ? ", ordered" : "")"
            let failure = await Shrinking.failure(of: steps, seed: seed, on: place) { steps in
                try await IntegrityRun.fault(of: steps, kind, model: isOrdered ? Music.ordered : Music.model) { context in
                    if try !context.objects("Track").isEmpty { hasTracks.set() }
                    return try Self.fault(in: context)
                }
            }
            if let failure { return _ = Issue.record("\(failure)") }
        }
        #expect(hasTracks.wait(atMost: .zero), "STRATA_SEED=\(Seed.value): no track was saved")
    }

    /// Catches: changes made by a second process between a read and a save, such as the deletion of an object that is being
    /// related, or a unique value that both set.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S050, S108: two processes that change one file at random leave no wrong relationship and no equal unique values`(
        _ kind: StoreKind
    ) async throws {
        var hasSaved = false
        for round in 0..<Rounds.of(2, long: 200) {
            let seed = Seed.value &+ UInt64(round)
            var processes = TwoProcesses(kind: kind, seed: seed, count: 120)
            if let failure = await processes.shortestFailure() { return _ = Issue.record("\(failure)") }
            hasSaved = hasSaved || processes.hasSaved
        }
        #expect(hasSaved, "STRATA_SEED=\(Seed.value): nothing was saved")
    }

    // MARK: Shrinking

    @Test func `a failing sequence is shrunk to the steps that it needs, also if it throws`() async {
        struct Wrong: Error {}
        let failure = await Shrinking.failure(of: Array(0..<120), seed: 7, on: "numbers") { numbers in
            guard let first = numbers.firstIndex(of: 17), let second = numbers.firstIndex(of: 80) else { return nil }
            if numbers.count < 3 { throw Wrong() }
            return first < second ? "17 before 80" : nil
        }
        #expect(failure == "STRATA_SEED=7, on numbers: an error that no step expects: Wrong()\n    17\n    80")
        #expect(await Shrinking.failure(of: [1, 2], seed: 7, on: "numbers") { _ in nil } == nil)
    }

    /// The check is wrong on purpose: a track is no fault. An insertion and one or two saves are enough for it.
    @Test func `a wrong check of one process is shrunk to a few steps`() async throws {
        var lines: [Substring] = []
        for seed in 0..<50 as Range<UInt64> where lines.isEmpty {
            let steps = IntegrityStep.sequence(60, seed: seed)
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "memory") { steps in
                try await IntegrityRun.fault(of: steps, .memory, check: TwoProcesses.trackFault)
            }
            lines = failure?.split(separator: "\n") ?? []
        }
        try #require(!lines.isEmpty)
        #expect(lines[0].contains(", on memory: after step ") && lines[0].hasSuffix("there is a track"), "\(lines)")
        #expect(lines.count <= 4 && lines.contains { $0.hasSuffix("insertTrack") || $0.contains("importTracks") }, "\(lines)")
    }

    @Test func `a wrong check of two processes is shrunk to a few steps`() async throws {
        var lines: [Substring] = []
        // Even seeds, with which the processes take turns.
        for seed in 0..<25 as Range<UInt64> where lines.isEmpty {
            var processes = TwoProcesses(kind: .lmdb, seed: 2 * seed, count: 40, isCheckWrong: true)
            lines = await processes.shortestFailure()?.split(separator: "\n") ?? []
        }
        try #require(!lines.isEmpty)
        #expect(
            lines[0].contains(", on lmdb, two processes in turns: process ") && lines[0].hasSuffix("there is a track"), "\(lines)"
        )
        #expect(lines.count <= 4 && lines.contains { $0.hasSuffix("insertTrack") || $0.contains("importTracks") }, "\(lines)")
    }
}
