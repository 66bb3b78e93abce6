import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Takes the steps of one process in two roots and their children, and checks the committed state after each step.
struct IntegrityRun {
    /// A check of a new context: returns a fault in words, or nil.
    typealias Check = @Sendable (ManagedObjectContext) throws -> String?

    private static let isPrinting = ProcessInfo.processInfo.environment["STRATA_SEED"] != nil

    let container: PersistentContainer
    private let check: Check
    /// Whether no other process saves.
    let isAlone: Bool
    let roots: [BackgroundContext]
    private var children: [BackgroundContext] = []
    /// The state from which on the saves of an author are undone.
    private var kept: Snapshot?

    init(_ container: PersistentContainer, isAlone: Bool = false, check: @escaping Check = IntegrityExplorer.fault) async {
        self.container = container
        self.isAlone = isAlone
        self.check = check
        roots = [container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext()]
        for (number, root) in roots.enumerated() {
            await root.perform { context in
                context.transactionAuthor = "root \(number)"
                if number == 0 { context.undoHistory = UndoHistory() }
            }
            children.append(await Self.child(of: root, number))
        }
    }

    /// Creates a child of a root. The first root and its child can undo their changes, which seals a layer per step.
    private static func child(of root: BackgroundContext, _ number: Int) async -> BackgroundContext {
        let child = await root.newBackgroundChild()
        if number == 0 { await child.perform { $0.undoHistory = UndoHistory() } }
        return child
    }

    /// Takes the steps on a new store. Returns the first fault, or nil.
    static func fault(
        of steps: [IntegrityStep], _ kind: StoreKind, model: Model = Music.model, check: @escaping Check
    ) async throws -> String? {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: model)
        var run = await IntegrityRun(container, isAlone: true, check: check)
        for step in steps {
            if let fault = try await run.take(step) { return fault }
        }
        try await container.flush()
        return try await run.finalFault()
    }

    /// Takes a step. Returns a fault of the step, of its context or of the committed state after it, or nil.
    mutating func take(_ step: IntegrityStep) async throws -> String? {
        let context = step.context < 2 ? roots[step.context] : children[step.context - 2]
        var fault: String?
        do {
            fault = try await act(step, context)
            if Self.isPrinting { print(step) }
        } catch let error as SaveError {
            if Self.isPrinting { print("\(step): \(error)") }
            await context.perform { $0.rollback() }
            await roots[step.context % 2].perform { $0.rollback() }
        }
        if fault == nil { fault = try await context.perform { try IntegrityExplorer.contextFault(in: $0) } }
        if fault == nil { fault = try await committedFault() }
        return fault.map { "after step \(step.number): \($0)" }
    }

    /// Checks the newest committed state, including that of other processes.
    func committedFault() async throws -> String? {
        try await container.coordinator.refresh()
        let check = check
        return try await container.coordinator.newBackgroundContext().perform { try check($0) }
    }

    /// Checks the committed state and the file.
    func finalFault() async throws -> String? {
        if let fault = try await committedFault() { return "at the end: \(fault)" }
        let findings = try container.coordinator.store.verify()
        return findings.isEmpty ? nil : "verify: \(findings)"
    }

    private mutating func act(_ step: IntegrityStep, _ context: BackgroundContext) async throws -> String? {
        let seed = step.seed
        switch step.action {
        case .change(let change):
            try await context.perform { context in
                var generator = SeededGenerator(seed: seed)
                try Self.make(change, context, &generator)
            }
        case .save: return try await save(step, context)
        case .undo(let policy, let isRedo):
            let onConflict = IntegrityStep.undoPolicies[policy]
            return try await context.perform { context throws in try Self.revert(context, isRedo: isRedo, onConflict) }
        case .undoAuthor(let policy): try await undoAuthor(step.context % 2, IntegrityStep.undoPolicies[policy])
        case .refresh where step.context < 2: await context.perform { $0.refreshAllObjects() }
        case .refresh: try await context.refreshFromParent()
        case .rollback: await context.perform { $0.rollback() }
        case .batchDelete:
            var generator = SeededGenerator(seed: seed)
            let entity = ["Artist", "Album", "Profile", "Playlist"].randomElement(using: &generator) ?? "Artist"
            try await container.coordinator.batchDelete(EntityFetchRequest(entity, limit: 1))
        case .batchUpdate: return try await batchUpdate(seed)
        case .importTracks(let keeps): return try await importTracks(keeps: keeps, seed)
        case .saveOrder: return try await saveOrder(roots[step.context % 2], seed)
        case .dropChanges: return try await dropChanges(step, context)
        case .insertAndDelete: return try await Self.insertAndDelete(context, seed)
        case .newChild:
            let number = step.context % 2
            if step.context >= 2 { children[number] = await Self.child(of: roots[number], number) }
        }
        return nil
    }

    /// Undoes the saves of a root since the state that the last call has kept. Without such a state, keeps one.
    private mutating func undoAuthor(_ root: Int, _ policy: UndoPolicy) async throws {
        guard let before = kept else {
            kept = try container.coordinator.snapshot(owner: "before the changes")
            return
        }
        kept = nil
        do {
            try await container.undoChanges(by: "root \(root)", since: before, onConflict: policy)
        } catch is UndoError {}
    }

    static func any(
        _ entity: String, _ context: ManagedObjectContext, _ generator: inout SeededGenerator
    ) throws -> ManagedObject? {
        try context.objects(entity).randomElement(using: &generator)
    }

    /// Makes a change, using the objects that the context shows.
    private static func make(
        _ change: IntegrityStep.Change, _ context: ManagedObjectContext, _ generator: inout SeededGenerator
    ) throws {
        switch change {
        case .insertArtist: context.makeArtist("artist")
        case .insertProfile: context.insert("Profile")
        case .insertAlbum: context.insert("Album").setRelatedObject("artist", to: try any("Artist", context, &generator))
        case .insertTrack:
            let track = context.makeTrack("track")
            track.setRelatedObject("album", to: try any("Album", context, &generator))
            track["isrc"] = code(&generator)
        case .insertPlaylist: context.insert("Playlist")
        case .delete:
            let entity = ["Artist", "Profile", "Album", "Track", "Playlist"].randomElement(using: &generator) ?? "Artist"
            if let object = try any(entity, context, &generator) { context.delete(object) }
        case .setProfile:
            guard let artist = try any("Artist", context, &generator) else { return }
            artist.setRelatedObject("profile", to: generator.chance(50) ? try any("Profile", context, &generator) : nil)
        case .setMentor:
            guard let artist = try any("Artist", context, &generator) else { return }
            artist.setRelatedObject("mentor", to: try any("Artist", context, &generator))
        case .setArtist:
            guard let album = try any("Album", context, &generator) else { return }
            album.setRelatedObject("artist", to: try any("Artist", context, &generator))
            album["title"] = .string("\(generator.below(9))")
        case .pair:
            guard let track = try any("Track", context, &generator), let list = try any("Playlist", context, &generator) else {
                return
            }
            if generator.chance(50) { list.add(track, to: "tracks") } else { list.remove(track, from: "tracks") }
        case .setBorn: try any("Artist", context, &generator)?["born"] = .int(Int64(generator.below(9)))
        case .setCode: try any("Track", context, &generator)?["isrc"] = code(&generator)
        case .reorder: _ = try reorder(context, &generator)
        }
    }

    /// Returns one of few unique values, which several contexts therefore set, or null.
    static func code(_ generator: inout SeededGenerator) -> Value {
        generator.chance(20) ? .null : .string(IntegrityExplorer.codes[generator.below(IntegrityExplorer.codes.count)])
    }
}
