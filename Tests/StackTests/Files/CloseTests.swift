import Foundation
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Closing a container. Its file can be deleted, replaced or opened again at once, and its contexts throw errors.
@Suite struct CloseTests {
    static let files: [StoreKind] = [.lmdb, .sqlite]

    private static func open(_ bed: TestBed, _ stack: ContextStack = .siblings, extra: Bool = false) async throws
        -> PersistentContainer
    {
        try await PersistentContainer(model: try ReadOnlyTests.model(extra), store: bed.description, stack: stack)
    }

    private final class Total: Sendable {
        let count = Mutex(0)
    }

    private static func insert(_ number: Int64, _ container: PersistentContainer) async throws {
        try await container.coordinator.insert(into: "Thing", ["number"], rows: [[.int(number)]])
    }

    private static func code(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async -> StoreError
        .Code?
    {
        do { try await body() } catch { return (error as? StoreError)?.code }
        return nil
    }

    @Test(arguments: StoreKind.allCases, ContextStack.allCases)
    func `S169: closing writes deferred saves, and everything afterwards throws closed`(_ kind: StoreKind, _ stack: ContextStack)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await Self.open(bed, stack)
        try await Self.insert(1, container)
        let worker = container.newBatchOperationContext()
        await worker.perform { $0.insert("Thing")["number"] = .int(2) }
        try await worker.save(.deferred(within: .seconds(3600)))
        await worker.perform { $0.insert("Thing")["number"] = .int(3) }
        let child = await container.newBackgroundContext()
        let kept = try container.coordinator.snapshot()
        let ids = try await worker.perform { try $0.fetch(EntityFetchRequest("Thing")).map(\.objectID) }
        try await container.close()
        try await container.close()
        let coordinator = container.coordinator
        let codes = [
            await Self.code { try await worker.save() }, await Self.code { try await container.flush() },
            await Self.code { _ = try await worker.perform { try $0.fetch(EntityFetchRequest("Thing")).count } },
            await Self.code { _ = try await child.perform { try $0.count(EntityFetchRequest("Thing")) } },
            await Self.code { _ = try await worker.perform { try $0.existingObject(with: ids[0]).objectID } },
            await Self.code { try await Self.insert(4, container) }, await Self.code { _ = try await coordinator.history() },
            await Self.code { _ = try coordinator.snapshot() }, await Self.code { try await coordinator.refresh() },
            await Self.code { try await coordinator.compact() }, await Self.code { try await coordinator.finishMigration() },
            await Self.code {
                let context = container.newBatchOperationContext()
                _ = try await context.perform { try $0.count(EntityFetchRequest("Thing")) }
            },
            await Self.code {
                let context = coordinator.newBackgroundContext(reading: kept)
                _ = try await context.perform { try $0.count(EntityFetchRequest("Thing")) }
            },
        ]
        #expect(codes.allSatisfy { $0 == .closed }, "\(codes)")
        // Unsaved changes can still be read, and no call traps.
        let rest = await worker.perform { context -> (Bool, [Value?]) in
            let new = context.insert("Thing")
            new["number"] = .int(9)
            context.refreshAllObjects()
            return (context.hasChanges, ids.map { context.object(with: $0)["number"] } + [new["number"]])
        }
        #expect(rest.0 && rest.1.contains(.int(3)) && rest.1.last == .int(9), "\(rest)")
        await worker.perform { context in
            context.rollback()
            context.reset()
        }
        guard kind != .memory else { return }
        let again = try await Self.open(bed, stack)
        #expect(try await ReadOnlyTests.count(again) == 2)
        #expect(try again.coordinator.store.verify() == [])
        try await again.close()
    }

    @Test(arguments: files, [ContextStack.siblings, .split])
    func `S067: a deferred save that was accepted while the container closed is in the file`(
        _ kind: StoreKind, _ stack: ContextStack
    )
        async throws
    {
        for round in 0..<Rounds.of(20, long: 300) {
            let bed = try TestBed(kind)
            let container = try await Self.open(bed, stack)
            let accepted = Total()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    let worker =
                        number % 2 == 0 ? container.newBatchOperationContext() : container.coordinator.newBackgroundContext()
                    group.addTask {
                        for step in 0..<20 {
                            await worker.perform { $0.insert("Thing")["number"] = .int(Int64(number * 100 + step)) }
                            guard (try? await worker.save(.deferred(within: .seconds(3600)))) != nil else { return }
                            accepted.count.withLock { $0 += 1 }
                        }
                    }
                }
                group.addTask {
                    for _ in 0..<round { await Task.yield() }
                    try await container.close()
                }
                try await group.waitForAll()
            }
            let again = try await Self.open(bed)
            let found = try await again.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Thing")) }
            #expect(found == accepted.count.withLock { $0 }, "round \(round)")
            try await again.close()
        }
    }

    @Test(arguments: files) @MainActor func `S169: a closed main context reads nothing and keeps its changes`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await Self.open(bed)
        let main = container.mainContext
        let object = main.insert("Thing")
        object["number"] = .int(1)
        try await main.save()
        main.insert("Thing")["number"] = .int(2)
        main.shouldDeleteInaccessibleFaults = false
        let results = try FetchedResultsController(EntityFetchRequest("Thing", sortBy: [AttributeSort("number")]), context: main)
        try results.performFetch()
        var failure: (any Error)?
        results.onFailure = { failure = $0 }
        let notices = main.notices
        var iterator = main.stream(EntityFetchRequest("Thing")).makeAsyncIterator()
        _ = try await iterator.next(isolation: MainActor.shared)
        try await container.close()
        #expect(main.hasChanges)
        _ = object["number"]
        #expect(await Self.code { try await main.save() } == .closed)
        #expect(await Self.code { _ = try main.fetch(EntityFetchRequest("Thing")) } == .closed)
        #expect(await Self.code { try results.performFetch() } == .closed)
        try await until("live results report it") { (failure as? StoreError)?.code == .closed }
        for await _ in notices {}
        while true {
            do { if try await iterator.next(isolation: MainActor.shared) == nil { break } } catch {
                #expect((error as? StoreError)?.code == .closed)
                break
            }
        }
    }

    /// Catches: a loop over updates that waits forever after its container was closed.
    @Test(.timeLimit(.minutes(10)), arguments: StoreKind.allCases) @MainActor
    func `S169: sequences of updates and notices end when their container is closed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let request = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])
        let results = try Results(request, context: main)
        let controller = try FetchedResultsController(request, context: main)
        try controller.performFetch()
        let unread = try FetchedResultsController(request, context: main)
        let numbers = try container.collection("numbers", of: Int.self)
        let keyed = try KeyedResults(numbers.all)
        let nothing = try KeyedResults(numbers["b"..<"b"])
        let (shown, updates, none) = (results.updates, controller.updates, unread.updates)
        let differences = [keyed.differences, nothing.differences]
        main.makeTrack("a")
        numbers["a"] = 1
        main.processPendingChanges()
        #expect(results.count == 1 && keyed.count == 1)
        try await container.close()
        var counts = (0, 0)
        for await _ in shown { counts.0 += 1 }
        for await _ in updates {}
        for await _ in none { Issue.record("an update without a fetch") }
        for sequence in differences { for await _ in sequence { counts.1 += 1 } }
        #expect(counts == (1, 1))
        // Those that are made later end at once.
        for await _ in results.updates {}
        for await _ in controller.updates {}
        for await _ in keyed.differences {}
        for await _ in nothing.differences {}
        for await _ in main.notices {}
        #expect((results.error as? StoreError)?.code == .closed && results.count == 1)
        #expect((nothing.error as? StoreError)?.code == .closed)
    }

    @Test(arguments: files) func `S169: a closed file is deleted, replaced and opened with another model at once`(
        _ kind: StoreKind
    )
        async throws
    {
        let bed = try TestBed(kind)
        let backup = bed.folder.appendingPathComponent("backup")
        for round in 0..<5 {
            let container = try await Self.open(bed)
            try await Self.insert(Int64(round), container)
            if round == 0 { try await container.coordinator.backup(to: backup) }
            try await container.close()
            #expect(!FileManager.default.fileExists(atPath: bed.file.path + "-wal"))
            let other = try await Self.open(bed, extra: true)
            #expect(try await ReadOnlyTests.count(other) == (round == 0 ? 1 : 2))
            try await other.close()
            if round == 1 {
                for name in try FileManager.default.contentsOfDirectory(atPath: bed.folder.path) where name.hasPrefix("store") {
                    try FileManager.default.removeItem(at: bed.folder.appendingPathComponent(name))
                }
            }
            try await PersistentContainer.restore(bed.description, from: backup)
            withExtendedLifetime(container) {}
        }
    }

    /// Catches: a container whose store is closed by the container that used it before.
    @Test(arguments: files)
    func `S066: a container that is opened while another one of the file closes can be used`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        var container = try await Self.open(bed)
        for round in 0..<Rounds.of(25, long: 500) {
            let closing = Task { [container] in try await container.close() }
            for _ in 0..<(round % 25) { await Task.yield() }
            let next = try await Self.open(bed)
            try await closing.value
            try await Self.insert(Int64(round), next)
            container = next
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases) func `S169: another container of the same store goes on`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let first = try await Self.open(bed)
        let second = try await Self.open(bed)
        try await Self.insert(1, first)
        try await first.close()
        #expect(await Self.code { try await Self.insert(2, first) } == .closed)
        try await Self.insert(2, second)
        #expect(try await ReadOnlyTests.count(second) == 2)
        try await second.close()
        #expect(await Self.code { try await Self.insert(3, second) } == .closed)
    }

    /// Opens another container, closes the given one, and releases the other one without closing it.
    private static func useAnother(_ bed: TestBed, closing first: PersistentContainer, _ stack: ContextStack) async throws {
        let second = try await open(bed, stack)
        try await insert(2, second)
        try await first.close()
        try await insert(3, second)
    }

    /// Catches: a file that nothing can close, because the closed container keeps the store that both have used.
    @Test(arguments: files, [ContextStack.siblings, .split])
    func `S168: a closed container gives up the file when the other container is released`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let backup = bed.folder.appendingPathComponent("backup")
        let first = try await Self.open(bed, stack)
        try await Self.insert(1, first)
        try await first.coordinator.backup(to: backup)
        try await Self.useAnother(bed, closing: first, stack)
        try await bed.closed()
        try await first.close()
        try await PersistentContainer.restore(bed.description, from: backup)
        let again = try await Self.open(bed, stack)
        #expect(try await ReadOnlyTests.count(again) == 1)
        try await again.close()
        withExtendedLifetime(first) {}
    }

    /// Catches: a container whose store is closed, because the others of the file were closed and released while it was opened.
    @Test(arguments: files)
    func `S168: a container that is opened while another one gives up the file can be used`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        for round in 0..<Rounds.of(25, long: 500) {
            let first = try await Self.open(bed)
            try await Self.useAnother(bed, closing: first, .siblings)
            for _ in 0..<(round % 25) { await Task.yield() }
            let next = try await Self.open(bed)
            try await Self.insert(4, next)
            try await next.close()
            withExtendedLifetime(first) {}
        }
    }

    @Test(arguments: StoreKind.allCases, [ContextStack.siblings, .hybrid, .masterMainWorker])
    func `S169: closing beside running saves keeps those that were acknowledged`(_ kind: StoreKind, _ stack: ContextStack)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await Self.open(bed, stack)
        let saved = Total()
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask { [container, saved] in
                    let context = await container.newBackgroundContext(name: "writer \(writer)")
                    while true {
                        await context.perform { $0.insert("Thing")["number"] = .int(1) }
                        do { try await context.save(through: .store, writer % 2 == 0 ? .durable : .deferred) } catch {
                            #expect((error as? StoreError)?.code == .closed, "\(error)")
                            return
                        }
                        saved.count.withLock { $0 += 1 }
                    }
                }
            }
            group.addTask { [container, saved] in
                do {
                    try await until("some saves") { saved.count.withLock { $0 } >= 20 }
                    async let one: Void = container.close()
                    async let other: Void = container.close()
                    _ = try await (one, other)
                } catch { Issue.record(error) }
            }
        }
        guard kind != .memory else { return }
        let again = try await Self.open(bed, stack)
        #expect(try await ReadOnlyTests.count(again) == saved.count.withLock { $0 })
        #expect(try again.coordinator.store.verify() == [])
    }

    @Test(arguments: files) func `S169: a container whose file was deleted is closed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.open(bed)
        try await Self.insert(1, container)
        try FileManager.default.removeItem(at: bed.file)
        try await container.close()
        let again = try await Self.open(bed)
        #expect(try await ReadOnlyTests.count(again) == 0)
    }

    /// Catches: on LMDB, a new file that gets the lock file of the open store, so that each overwrites pages that the other reads.
    @Test(arguments: files, ContextStack.allCases)
    func `S094, S150: a file that was deleted while it is open shares nothing with a file of its name`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.open(bed, stack)
        try await Self.insert(1, container)
        let backup = bed.folder.appendingPathComponent("backup")
        try await container.coordinator.backup(to: backup)
        let kept = try container.coordinator.snapshot()
        let reader = container.coordinator.newBackgroundContext(reading: kept)
        try FileManager.default.removeItem(at: bed.file)
        if kind == .lmdb {
            let codes = [
                await Self.code { _ = try await Self.open(bed, stack) },
                await Self.code { try await PersistentContainer.restore(bed.description, from: backup) },
            ]
            #expect(codes == [.inUseElsewhere, .inUseElsewhere])
            #expect(!FileManager.default.fileExists(atPath: bed.file.path))
        } else {
            try await PersistentContainer.restore(bed.description, from: backup)
        }
        #expect(try await reader.perform { try $0.fetch(EntityFetchRequest("Thing")).map { $0["number"] } } == [.int(1)])
        #expect(await Self.code { try await Self.insert(2, container) } == .fileReplaced)
        try await container.close()
        if kind == .lmdb { try await PersistentContainer.restore(bed.description, from: backup) }
        let again = try await Self.open(bed, stack)
        try await Self.insert(3, again)
        #expect(try await ReadOnlyTests.count(again) == 2)
        #expect(try again.coordinator.store.verify() == [])
        try await again.close()
    }
}
