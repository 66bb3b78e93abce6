import Foundation
import LMDBStore
import ObjectGraph
import Platform
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Backups that replace their store.
@Suite struct RestoreTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    private func copy(in bed: TestBed) -> URL { bed.folder.appendingPathComponent("copy") }

    /// Saves tracks with these titles, each in a save of its own, and closes the store.
    /// - Returns: The token after each save, and the ids.
    private func save(
        _ titles: [String], in bed: TestBed, backup: URL? = nil
    ) async throws -> (tokens: [HistoryToken], ids: [ObjectID]) {
        var tokens: [HistoryToken] = []
        var ids: [ObjectID] = []
        do {
            let container = try await bed.container()
            let worker = container.coordinator.newBackgroundContext()
            for title in titles {
                ids.append(await worker.perform { $0.makeTrack(title).objectID })
                try await worker.save()
                tokens.append(container.coordinator.currentHistoryToken)
            }
            if let backup { _ = try await container.coordinator.backup(to: backup) }
            // Not by releasing it: a connection that is closed later would write the log into a file that was copied over.
            try await container.close()
        }
        return (tokens, ids)
    }

    /// Checks that the open store has the tracks `before`, and is another incarnation than the store that made `after`.
    private func check(
        _ container: PersistentContainer, before: (tokens: [HistoryToken], ids: [ObjectID]),
        after: (tokens: [HistoryToken], ids: [ObjectID])
    ) async throws {
        let coordinator = container.coordinator
        #expect(try coordinator.store.verify() == [])
        #expect(coordinator.currentHistoryToken == before.tokens.last, "the newest common save")
        #expect(try await coordinator.history(.init(after: before.tokens[0])).map(\.token) == Array(before.tokens.dropFirst()))
        let worker = coordinator.newBackgroundContext()
        // More saves than the other branch has made, so that both have the same save numbers.
        var made: [ObjectID] = []
        for number in 0..<after.tokens.count + 2 {
            made.append(await worker.perform { $0.makeTrack("restored \(number)").objectID })
            try await worker.save()
        }
        for token in after.tokens {
            await #expect(throws: HistoryError.tokenOfAnotherCopy(token)) { try await coordinator.history(.init(after: token)) }
            await #expect(throws: HistoryError.tokenOfAnotherCopy(token)) { try await coordinator.deleteHistory(before: token) }
        }
        for id in after.ids {
            #expect(!made.contains(id))
            let error = await #expect(throws: ContextError.self) {
                try await worker.perform { _ = try $0.existingObject(with: id) }
            }
            #expect(error == ContextError.objectNotFound(id))
            #expect(error?.description.contains("saved after the backup that was restored") == true)
        }
        for id in before.ids { #expect(try await worker.perform { try $0.existingObject(with: id).objectID } == id) }
        let own = try await coordinator.history(.init(after: before.tokens.last))
        #expect(own.count == made.count && own.last?.token == coordinator.currentHistoryToken)
        #expect(try await coordinator.history(.init(after: own[0].token)).count == made.count - 1)
        #expect(try coordinator.store.verify() == [])
    }

    @Test(arguments: kinds)
    func `S168: a restored store refuses tokens and ids from after the backup`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let before = try await save(["a", "b", "c"], in: bed, backup: copy(in: bed))
        let after = try await save(["lost 1", "lost 2"], in: bed)
        try await PersistentContainer.restore(bed.description, from: copy(in: bed))
        try await check(bed.container(), before: before, after: after)
        try await bed.closed()
        // The same backup again. It is another incarnation, and neither accepts the tokens of the other.
        let second = try await save(["branch"], in: bed)
        try await PersistentContainer.restore(bed.description, from: copy(in: bed))
        try await check(bed.container(), before: before, after: second)
    }

    @Test(arguments: kinds)
    func `S168: a backup that is copied by hand begins a new incarnation`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let before = try await save(["a", "b"], in: bed, backup: copy(in: bed))
        let after = try await save(["lost"], in: bed)
        try Data(contentsOf: copy(in: bed)).write(to: bed.file)
        do {
            let container = try await bed.container()
            try await check(container, before: before, after: after)
            try await container.close()
        }
        let container = try await bed.container()
        #expect(container.coordinator.store.lineage.copies.count == 1, "only the first opening begins one")
    }

    /// Catches: a token of a later save that an older file answers with no saves, or by deleting its whole history.
    @Test(arguments: kinds)
    func `S168: an older file without a mark refuses tokens of later saves`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let before = try await save(["a", "b"], in: bed)
        let file = try Data(contentsOf: bed.file)
        let token = try await save(["lost"], in: bed).tokens[0]
        try file.write(to: bed.file)
        let container = try await bed.container()
        let coordinator = container.coordinator
        await #expect(throws: HistoryError.tokenOfAnotherCopy(token)) { try await coordinator.history(.init(after: token)) }
        await #expect(throws: HistoryError.tokenOfAnotherCopy(token)) { try await coordinator.deleteHistory(before: token) }
        #expect(try await coordinator.history(.init(after: before.tokens[0])).map(\.token) == [before.tokens[1]])
        try await container.close()
    }

    /// Catches: a copy in SQLite's rollback mode. A writer cannot switch it to the log while a reader has it open.
    @Test func `S153: a context that reads a backup read-only does not keep a writer from opening it`() async throws {
        let bed = try TestBed(.sqlite)
        let copy = copy(in: bed)
        _ = try await save(["a"], in: bed, backup: copy)
        let reader = try await PersistentContainer(model: Music.model, store: .sqlite(copy, readOnly: true))
        let context = reader.newBatchOperationContext()
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        let writer = try await PersistentContainer(model: Music.model, store: .sqlite(copy))
        let worker = writer.newBatchOperationContext()
        await worker.perform { _ = $0.makeTrack("b") }
        try await worker.save()
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        try await writer.close()
        try await reader.close()
    }

    /// Catches: tokens of the original's later saves that a copy takes for its own, because it began its incarnation in another process.
    @Test(arguments: kinds)
    func `S168: a copy that is open read-only refuses tokens of the other branch`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let copy = copy(in: bed)
        let before = try await save(["a", "b"], in: bed, backup: copy)
        let after = try await save(["lost 1", "lost 2"], in: bed)
        let container = try await PersistentContainer(
            model: Music.model, store: kind == .lmdb ? .lmdb(copy, readOnly: true) : .sqlite(copy, readOnly: true))
        let coordinator = container.coordinator
        func check() async throws {
            for token in after.tokens {
                await #expect(throws: HistoryError.tokenOfAnotherCopy(token)) {
                    try await coordinator.history(.init(after: token))
                }
            }
        }
        #expect(coordinator.currentHistoryToken == before.tokens.last)
        try await check()
        await #expect(processExitsWith: .success) { [path = copy.path as String, kind = kind.rawValue as String] in
            let url = URL(fileURLWithPath: path)
            let container = try await PersistentContainer(
                model: Music.model, store: kind == "lmdb" ? .lmdb(url) : .sqlite(url))
            let worker = container.coordinator.newBackgroundContext()
            for number in 0..<5 {
                await worker.perform { _ = $0.makeTrack("copy \(number)") }
                try await worker.save()
            }
            try await container.close()
        }
        try await coordinator.refresh()
        try await check()
        let own = coordinator.currentHistoryToken
        #expect(own.generation == 7 && own.incarnation != before.tokens[0].incarnation)
        #expect(try await coordinator.history(.init(after: before.tokens[0])).count == 6)
        #expect(try await coordinator.history(.init(after: own)).isEmpty)
        try await container.close()
    }

    @Test func `S168: a streamed backup and a compact copy are marked as copies`() async throws {
        let bed = try TestBed(.lmdb)
        let before = try await save(["a", "b"], in: bed)
        let streamed = bed.folder.appendingPathComponent("streamed")
        let compact = bed.folder.appendingPathComponent("compact")
        do {
            let container = try await bed.container()
            var bytes = Data()
            for try await part in try await container.coordinator.backupBytes() { bytes.append(contentsOf: part) }
            try bytes.write(to: streamed)
            try await container.compactCopy(to: compact)
        }
        for file in [streamed, compact] {
            let container = try await PersistentContainer(model: Music.model, store: .lmdb(file))
            #expect(container.coordinator.store.lineage.copies.map(\.start) == [2])
            #expect(container.coordinator.currentHistoryToken == before.tokens.last)
        }
    }

    /// A log that is left in place would be replayed into the restored file.
    @Test(arguments: kinds)
    func `S168: a restore after a kill removes what the process left`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let before = try await save(["a"], in: bed, backup: copy(in: bed))
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = bed.file.path as String, kind = kind.rawValue as String] in
            let url = URL(fileURLWithPath: path)
            let container = try await PersistentContainer(
                model: Music.model, store: kind == "lmdb" ? .lmdb(url) : .sqlite(url))
            let worker = container.coordinator.newBackgroundContext()
            for number in 0..<20 {
                await worker.perform { _ = $0.makeTrack("lost \(number)") }
                try await worker.save()
            }
            kill(getpid(), SIGKILL)
        }
        try await PersistentContainer.restore(bed.description, from: copy(in: bed))
        try await check(bed.container(), before: before, after: ([], []))
    }

    @Test(arguments: kinds)
    func `S168: a restore is whole or nothing and keeps the mode of the file`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let before = try await save(["a"], in: bed, backup: copy(in: bed))
        #expect(chmod(bed.file.path, 0o600) == 0)
        let damaged = bed.folder.appendingPathComponent("damaged")
        try Data(repeating: 7, count: 40_000).write(to: damaged)
        let missing = bed.folder.appendingPathComponent("missing")
        for wrong in [damaged, missing, bed.file] {
            await #expect(throws: StoreError.self) { try await PersistentContainer.restore(bed.description, from: wrong) }
        }
        let cancelled = Task { [description = bed.description, copy = copy(in: bed)] in
            withUnsafeCurrentTask { $0?.cancel() }
            try await PersistentContainer.restore(description, from: copy)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        do {
            let container = try await bed.container()
            #expect(container.coordinator.store.lineage.copies.isEmpty)
            let error = await #expect(throws: StoreError.self) {
                try await PersistentContainer.restore(bed.description, from: copy(in: bed))
            }
            #expect(error?.code == .inUseElsewhere)
            #expect(container.coordinator.currentHistoryToken == before.tokens.last)
        }
        try await bed.closed()
        try await PersistentContainer.restore(bed.description, from: copy(in: bed))
        var status = stat()
        #expect(stat(bed.file.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains("partial") }
        #expect(left == [])
    }

    @Test(arguments: kinds)
    func `a cancelled task ends its backup and leaves nothing`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let worker = coordinator.newBackgroundContext()
        await worker.perform { _ = $0.makeTrack("a") }
        try await worker.save()
        let copy = copy(in: bed)
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await coordinator.backup(to: copy) },
            { _ = try await coordinator.backup(to: copy, existing: .replace) },
        ]
        for work in works {
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await work()
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path)
        #expect(left.allSatisfy { !$0.contains("copy") })
        #expect(try coordinator.snapshots().allSatisfy { !$0.owners.contains("a backup") })
    }

    enum Work: String, CaseIterable { case backup, replacingBackup, compactCopy }

    /// Cancels at each call of the system on the copy's temporary file, until a copy succeeds. Each cancelled copy leaves no file.
    @Test(arguments: kinds, Work.allCases)
    func `a copy that is cancelled at any moment leaves no partial file`(_ kind: StoreKind, _ work: Work) async throws {
        guard work != .compactCopy || kind == .lmdb else { return }
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.coordinator.insert(
            into: "Track", ["title", "plays"], rows: (0..<500).map { [.string("title \($0)"), .int(Int64($0))] })
        let copy = copy(in: bed)
        var cancelled = 0
        for moment in 1... {
            let isDone = try await Self.cancelling(at: moment, in: bed.folder, ".copy.partial-") {
                switch work {
                case .backup: try await container.coordinator.backup(to: copy)
                case .replacingBackup: try await container.coordinator.backup(to: copy, existing: .replace)
                case .compactCopy: try await container.compactCopy(to: copy)
                }
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains("copy") }
            if isDone {
                #expect(left == ["copy"])
                break
            }
            #expect(left == [], "cancelled at call \(moment)")
            cancelled += 1
            try #require(moment <= 1000, "a copy succeeds")
        }
        #expect(cancelled > 0)
        try await container.close()
        let opened = try await PersistentContainer(model: Music.model, store: kind == .lmdb ? .lmdb(copy) : .sqlite(copy))
        #expect(try opened.coordinator.store.verify() == [])
        try await opened.close()
    }

    /// Runs a task, and cancels it at the nth call of the system on a file of a folder whose name contains a text. Returns whether the task
    /// succeeded.
    private static func cancelling(
        at moment: Int, in folder: URL, _ name: String, _ body: @escaping @Sendable () async throws -> Void
    ) async throws -> Bool {
        let task = Mutex<Task<Bool, any Error>?>(nil)
        let calls = Mutex(0)
        return try await withCheckedThrowingContinuation { continuation in
            // On another thread, because the injector stays until the task has ended.
            Thread.detachNewThread {
                // The calls of all tests come here, and other cases make copies of that name.
                let cancelling: SystemFaults.Injector = { [folder = folder.lastPathComponent] _, path in
                    guard path.contains(folder), path.contains(name) else { return nil }
                    let call = calls.withLock { calls in
                        calls += 1
                        return calls
                    }
                    if call == moment { task.withLock { $0?.cancel() } }
                    return nil
                }
                let ended = SystemFaults.withInjector(cancelling) {
                    let done = DispatchSemaphore(value: 0)
                    let made = task.withLock { task in
                        let made = Task {
                            defer { done.signal() }
                            do {
                                try await body()
                                return true
                            } catch is CancellationError { return false }
                        }
                        task = made
                        return made
                    }
                    done.wait()
                    return made
                }
                Task { continuation.resume(with: await ended.result) }
            }
        }
    }

    /// Changes every track of a file some times, in another process.
    private static func changeElsewhere(_ file: URL) async {
        await #expect(processExitsWith: .success) { [path = file.path as String] in
            let container = try await PersistentContainer(model: Music.model, store: .lmdb(URL(fileURLWithPath: path)))
            for number in 0..<2 {
                try await container.newBatchOperationContext().perform(andSave: .durable) { context in
                    for track in try context.objects("Track") { track["plays"] = .int(Int64(100 + number)) }
                }
            }
            try await container.close()
        }
    }

    /// Catches: a copy with pages of several states, which is called damaged although the backup is sound.
    @Test func `S168: a backup that changes while it is copied is not restored`() async throws {
        let bed = try TestBed(.lmdb)
        let copy = copy(in: bed)
        do {
            let container = try await bed.container()
            try await container.newBatchOperationContext().perform(andSave: .durable) { context in
                for number in 0..<20_000 { context.makeTrack("track \(number)", plays: 1) }
            }
            try await container.coordinator.backup(to: copy)
            try await container.close()
        }
        let writes = Mutex(0)
        let changing: SystemFaults.Injector = { [folder = bed.folder.lastPathComponent] call, path in
            guard call == .write, path.contains(folder), path.contains(".partial-") else { return nil }
            let number = writes.withLock { writes in
                writes += 1
                return writes
            }
            // The first part has been read, and the others have not.
            if number == 1 {
                let done = DispatchSemaphore(value: 0)
                Task {
                    await Self.changeElsewhere(copy)
                    done.signal()
                }
                done.wait()
            }
            return nil
        }
        let error = try await Self.restoring(bed, from: copy, changing)
        #expect(writes.withLock { $0 } > 2)
        #expect(error?.code == .inUseElsewhere)
        let container = try await bed.container()
        #expect(container.coordinator.store.lineage.copies.isEmpty)
        try await container.close()
        // Afterwards the file can be used.
        try await PersistentContainer.restore(bed.description, from: copy)
        let restored = try await bed.container()
        let changed = EntityFetchRequest("Track", matching: .compare("plays", .equal, to: .int(101)))
        #expect(try await restored.read { try $0.count(changed) } == 20_000)
        #expect(try await restored.coordinator.verify() == [])
        try await restored.close()
    }

    /// Restores a store on a thread whose calls of the system an injector sees. Returns the error.
    private static func restoring(
        _ bed: TestBed, from copy: URL, _ injector: @escaping SystemFaults.Injector
    ) async throws -> StoreError? {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                let ended = SystemFaults.withInjector(injector) {
                    Result { try bed.description.migration?.restore(from: copy, cancellation: Cancellation()) }
                }
                switch ended {
                case .success: continuation.resume(returning: nil)
                case .failure(let error as StoreError): continuation.resume(returning: error)
                case .failure(let error): continuation.resume(throwing: error)
                }
            }
        }
    }

    @Test func `a store without a file cannot be restored`() async throws {
        let error = await #expect(throws: StoreError.self) {
            try await PersistentContainer.restore(.memory, from: URL(fileURLWithPath: "/nowhere"))
        }
        #expect(error?.code == .unsupported)
    }
}
