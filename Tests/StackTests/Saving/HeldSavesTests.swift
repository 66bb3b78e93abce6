import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Two processes that mix deferred and durable saves on one file (S067).
@Suite struct HeldSavesTests {
    /// Adds to the plays of the one track, and repeats after each conflict, as a program must with the policy `.error`.
    static func increment(_ context: BackgroundContext, times: Int, _ durability: (Int) -> Durability) async throws {
        for number in 0..<times {
            while true {
                do {
                    try await context.perform { context in
                        context.rollback()
                        context.refreshAllObjects()
                        let track = try context.fetch(EntityFetchRequest("Track"))[0]
                        guard case .int(let plays) = track["plays"] else { return }
                        track["plays"] = .int(plays + 1)
                    }
                    try await context.save(durability(number))
                    break
                } catch SaveError.conflicts { continue }
            }
        }
    }

    static func incrementElsewhere(_ kind: StoreKind, in folder: URL, times: Int) async throws {
        let container = try await TestBed(kind, in: folder).container()
        try await increment(container.newBackgroundContext(), times: times) {
            $0 % 3 == 0 ? .durable : .deferred(within: .seconds(600))
        }
        try await container.flush()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite]) func S067_noIncrementOfTwoProcessesIsLost(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = await container.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("counter") }
        try await context.save()
        async let other: Void = {
            await #expect(processExitsWith: .success) { [kind = kind.rawValue as String, folder = bed.folder as URL] in
                try await HeldSavesTests.incrementElsewhere(#require(StoreKind(rawValue: kind)), in: folder, times: 150)
            }
        }()
        try await Self.increment(context, times: 150) { $0 % 4 == 0 ? .durable : .deferred(within: .seconds(600)) }
        await other
        try await container.flush()
        let plays = try await container.newBackgroundContext().perform { try $0.fetch(EntityFetchRequest("Track"))[0]["plays"] }
        #expect(plays == .int(300))
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    @Test func S067_aSaveFailsAsBusyAndNamesTheProcessThatHoldsItsSavesTooLong() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        // The claim is held without pending saves, so no flush ends it.
        let claim = try container.coordinator.store.claimSaves(.holdingBack)
        await #expect(processExitsWith: .success) {
            [path = bed.file.path as String, holder = ProcessInfo.processInfo.processIdentifier as Int32] in
            var options = LMDBStore.Options()
            options.busyTimeout = .milliseconds(100)
            let container = try await PersistentContainer(
                model: Music.model, store: .lmdb(URL(fileURLWithPath: path), options: options), stack: .siblings)
            let context = await container.newBackgroundContext()
            await context.perform { _ = $0.makeTrack("a") }
            for durability in [Durability.durable, .deferred] {
                do {
                    try await context.save(durability)
                    exit(1)
                } catch let error as StoreError {
                    guard error.code == .storeBusy, error.message.contains("process \(holder) ") else { exit(2) }
                }
            }
        }
        claim?.release()
        let context = await container.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("b") }
        try await context.save()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite]) func S067_noUniqueValueIsDoubledByTwoProcesses(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = await container.newBackgroundContext()
        await context.perform { $0.makeTrack("ours")["isrc"] = .string("X") }
        try await context.save(.deferred(within: .seconds(600)))
        await #expect(processExitsWith: .success) { [kind = kind.rawValue as String, folder = bed.folder as URL] in
            let container = try await TestBed(#require(StoreKind(rawValue: kind)), in: folder).container()
            let context = await container.newBackgroundContext()
            await context.perform { $0.makeTrack("theirs")["isrc"] = .string("X") }
            do {
                try await context.save()
                exit(1)
            } catch SaveError.uniqueConstraint {}
        }
        #expect(try container.coordinator.store.verify().isEmpty)
    }
}

/// The pages that an idle process keeps from reuse (S154).
@Suite struct IdleContainerTests {
    static func saveElsewhere(path: String, saves: Int) async throws {
        let container = try await PersistentContainer(
            model: Music.model, store: .lmdb(URL(fileURLWithPath: path)), stack: .siblings)
        let context = await container.newBackgroundContext()
        let ids = await context.perform { context in (0..<100).map { context.makeTrack("t\($0)").objectID } }
        try await context.save()
        for number in 0..<saves {
            try await context.perform { context in
                for id in ids { try context.existingObject(with: id)["plays"] = .int(Int64(number)) }
            }
            try await context.save()
        }
    }

    /// Returns when the container keeps no snapshot: contexts and the writer release theirs a moment after they were read.
    static func rest(_ container: PersistentContainer) async throws {
        try await until("no snapshot is held") {
            try container.coordinator.snapshots().allSatisfy { $0.age.map { $0 == .zero } ?? true }
        }
    }

    /// Saves in other processes until a round of saves reuses the pages that earlier ones have freed. Returns the number of rounds.
    ///
    /// A context that merges reads for a moment. If the machine is busy, such a moment may last, and makes the file longer once. A snapshot
    /// that is kept makes it longer in each round.
    @discardableResult
    static func expectReuse(_ container: PersistentContainer, _ bed: TestBed) async throws -> Int {
        for round in 1...20 {
            let before = try container.coordinator.store.fileBytes()
            await #expect(processExitsWith: .success) { [path = bed.file.path as String] in
                try await IdleContainerTests.saveElsewhere(path: path, saves: 100)
            }
            // 100 saves of 100 objects write some 1.2 MB of pages.
            if try container.coordinator.store.fileBytes() < before + 400_000 { return round }
        }
        Issue.record("each of 20 rounds has made the file longer by what it wrote")
        return 20
    }

    @Test(arguments: ContextStack.allCases, [Durability.durable, .deferred])
    func `S154: a container that has saved and is idle keeps nothing from reuse`(
        _ stack: ContextStack, _ durability: Durability
    ) async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(stack)
        var importer: BackgroundContext? = await container.newBackgroundContext()
        _ = await importer?.perform { $0.makeTrack("first").objectID }
        try await importer?.save(through: .store, durability)
        try await container.coordinator.flush()
        // A child is a snapshot in time, and keeps it as long as it lives.
        if ![.siblings, .split].contains(stack) { importer = nil }
        try await Self.rest(container)
        try await Self.expectReuse(container, bed)
        withExtendedLifetime(importer) {}
    }

    @Test(arguments: ContextStack.allCases)
    func S154_anIdleContainerKeepsNothingOfTheFileFromReuse(_ stack: ContextStack) async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(stack)
        // A reader that has finished.
        _ = try await container.newBatchOperationContext().perform { try $0.trackTitles() }
        try await Self.rest(container)
        let rounds = try await Self.expectReuse(container, bed)
        let count = try await MainActor.run { try container.mainContext.count(EntityFetchRequest("Track")) }
        #expect(count == 100 * rounds)
    }

    /// Catches: a main context or its root that keeps the state at the opening, although the program has not used it.
    @Test(arguments: Combination.all)
    func `S154: a main context that was not used holds no snapshot when other contexts save`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        for title in ["a", "b"] {
            try await container.write { _ = $0.makeTrack(title) }
            try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack(title) }
        }
        try await Self.rest(container)
        try await container.close()
    }

    /// Catches: a child that acquired its snapshot later than its parent, and whose save then conflicts with the save that it has read.
    @Test(arguments: [ContextStack.nested, .masterMainWorker, .hybrid])
    @MainActor func `S100: a child that has read another connection's save changes the object without a conflict`(
        _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(stack)
        let other = try await bed.container(.siblings)
        let elsewhere = other.newBackgroundContext()
        let child = container.mainContext.newBackgroundChild(name: "child")
        await child.perform { $0.automaticallyMergesChanges = true }
        let id = await child.perform { $0.makeTrack("counted").objectID }
        try await child.save(through: .store)
        let shown = try container.mainContext.existingObject(with: id)
        var readNewest = 0
        for round in 1...20 {
            try await elsewhere.perform { context in
                context.refreshAllObjects()
                try context.existingObject(with: id)["plays"] = .int(Int64(1000 * round))
            }
            try await elsewhere.save()
            let read = try await child.perform { context in
                let track = try context.existingObject(with: id)
                let read = track["plays"]
                track["plays"] = .int(Int64(1000 * round + 1))
                return read
            }
            let isNewest = read == .int(Int64(1000 * round))
            readNewest += isNewest ? 1 : 0
            do {
                try await child.save(through: .store)
            } catch {
                #expect(!isNewest, "the child had read the other save: \(error)")
                await child.perform { $0.rollback() }
            }
        }
        #expect(readNewest > 0, "no round read the other save")
        withExtendedLifetime(shown) {}
    }
}
