import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Saves of a second process, and how this process notices them.
@Suite struct OtherProcessTests {
    static let saves = 20

    /// The saves of the second process.
    static func saveElsewhere(path: String, kind: String, saves: Int) async throws {
        let url = URL(fileURLWithPath: path)
        let container = try await PersistentContainer(
            model: Music.model, store: kind == "lmdb" ? .lmdb(url) : .sqlite(url), stack: .siblings)
        let worker = await container.newBackgroundContext(name: "elsewhere")
        for number in 0..<saves {
            await worker.perform { context in
                context.transactionAuthor = "other process"
                context.makeTrack("t\(number)", plays: number)
            }
            try await worker.save(number % 2 == 0 ? .durable : .deferred(within: .milliseconds(1)))
            try await Task.sleep(for: .milliseconds(10))
        }
        try await container.flush()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], [ContextStack.siblings, .split])
    func S161_aSaveOfAnotherProcessIsNoticedAndMerged(_ kind: StoreKind, _ stack: ContextStack) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let arrivals = Mutex<[Generation: Date]>([:])
        try container.followOtherProcesses()
        await MainActor.run {
            _ = container.mainContext.addObserver { notice in
                guard notice.kind == .objectsDidChange else { return }
                arrivals.withLock { $0[notice.changes.generation] = Date() }
            }
        }
        let tokens = container.coordinator.remoteChanges
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = kind.rawValue as String] in
            try await OtherProcessTests.saveElsewhere(path: path, kind: kind, saves: OtherProcessTests.saves)
        }
        // The test does not call refresh(). The context must notice the saves itself.
        var seen = 0
        try await until("main shows every save") {
            seen = try await MainActor.run { try container.mainContext.trackTitles().count }
            return seen >= Self.saves
        }
        #expect(seen == Self.saves)
        let history = try await container.coordinator.history(.init(authors: ["other process"]))
        #expect(history.count == Self.saves)
        #expect(history.allSatisfy { $0.processID != ProcessInfo.processInfo.processIdentifier && $0.contextName == "elsewhere" })
        // Main may have shown the last save before the sequence reports it.
        let last = try #require(history.last?.token)
        let isReported = Flag()
        let reading = Task {
            for await token in tokens where token == last { isReported.set() }
        }
        defer { reading.cancel() }
        try await until("the newest save is reported") { isReported.wait(atMost: .zero) }
        let dates = Dictionary(uniqueKeysWithValues: history.map { ($0.id, $0.date) })
        let delays = arrivals.withLock { $0 }.compactMap { generation, arrival in
            dates[generation].map { arrival.timeIntervalSince($0) * 1000 }
        }.sorted()
        if let last = delays.last {
            print(
                "\(kind)-\(stack.rawValue): from save() in one process to the merge in the other, \(delays.count) of \(Self.saves):",
                "median \(delays[delays.count / 2]) ms, longest \(last) ms")
        }
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func S161_withoutAskingAContextStaysWhereItIs(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try container.followOtherProcesses()
        let still = await container.newBackgroundContext()
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = kind.rawValue as String] in
            try await OtherProcessTests.saveElsewhere(path: path, kind: kind, saves: 1)
        }
        try await until("the save is noticed") { container.coordinator.currentHistoryToken.generation >= 1 }
        #expect(try await still.perform { try $0.trackTitles() }.isEmpty)
        try await container.coordinator.refresh()
        #expect(
            try await still.perform { context in
                context.refreshAllObjects()
                return try context.trackTitles()
            } == ["t0"])
    }

    @Test(arguments: StoreKind.allCases)
    func S161_followingIsHarmlessWhereNobodyElseSaves(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.split)
        try container.followOtherProcesses()
        try container.followOtherProcesses()
        let worker = await container.newBackgroundContext()
        for number in 0..<20 {
            await worker.perform { _ = $0.makeTrack("\(number)") }
            try await worker.save(.deferred)
        }
        try await container.flush()
        #expect(try await container.coordinator.history().count == 20)
    }
}
