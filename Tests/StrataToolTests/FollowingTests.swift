import Dispatch
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

@testable import StrataTool

/// Verbs that show saves of another process: `watch`, `history --follow`, and `shell`.
@Suite struct FollowingTests {
    /// Runs a program in another process while this process saves. This process saves again and again until the program ends, so that the
    /// test does not depend on the time of a save.
    ///
    /// - Parameter arguments: Makes the program's name and arguments from the paths of the tool and of the store.
    private func output(
        _ kind: StoreKind, _ arguments: (_ tool: String, _ store: String) -> [String]
    ) async throws -> ChildProgram.Result {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let command = arguments(try ChildProgram.built("strata"), folder.path("shop"))
        let hasEnded = Mutex(false)
        async let running = withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try ChildProgram.run(command[0], Array(command.dropFirst())) })
            }
        }
        let container = try await folder.container("shop", kind, Shop.model)
        let saving = Task {
            for number in 0..<100_000 where !hasEnded.withLock({ $0 }) {
                try await container.write { context in
                    context.insert("Band")["name"] = .string("band \(number)")
                    context.insert("List")["name"] = .string(number % 2 == 0 ? "ignored" : "new \(number)")
                }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let result = try await running
        hasEnded.withLock { $0 = true }
        try await saving.value
        try await container.close()
        return result
    }

    @Test(arguments: fileKinds)
    func `watch shows a result again when another process changes it`(_ kind: StoreKind) async throws {
        let result = try await output(kind) { tool, store in
            [tool, "watch", store, "List", "name != 'ignored'", "--columns", "name", "--times", "3", "--json"]
        }
        let lines = result.output.split(separator: "\n")
        #expect(result.status == 0 && lines.count == 3, "\(result)")
        let counts = lines.map { $0.matches(of: /"name"/).count }
        #expect(counts == counts.sorted() && Set(counts).count == 3, "each result differs from the one before: \(counts)")
    }

    /// Catches: a result with a NaN, which as a value equals nothing, that is printed again after each save.
    @Test func `watch takes results with the same NaN for equal`() {
        let rows: [[Value]] = [[.string("a"), .double(.nan)], [.null, .int(1)]]
        #expect(WatchCommand.areEqual(rows, rows))
        #expect(!WatchCommand.areEqual(rows, [rows[0]]) && !WatchCommand.areEqual(rows, rows.reversed()))
    }

    @Test(arguments: fileKinds)
    func `history --follow shows each save of another process once, in order`(_ kind: StoreKind) async throws {
        let result = try await output(kind) { tool, store in
            // `head` ends after eight saves, and the tool with its next line.
            ["/bin/sh", "-c", "'\(tool)' history '\(store)' --follow --entity List --json | head -n 8"]
        }
        let saves = try result.output.split(separator: "\n").map { line in
            let save = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(save?["save"] as? Int)
        }
        #expect(saves.count == 8, "\(result)")
        #expect(saves == Array((saves[0])..<(saves[0] + 8)), "\(saves)")
    }

    /// Catches: on SQLite, a watch of the data file, which saves do not change; and a watch that is lost while the signal file is missing.
    @Test(arguments: fileKinds)
    func `S161: a verb that follows saves shows each of them without a signal file at its start`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let (store, signal) = (folder.path("shop"), folder.path("shop-signal"))
        // As after an import or a backup.
        try FileManager.default.removeItem(atPath: signal)
        let tool = try ChildProgram.built("strata")
        let watch = try ToolProcess(tool, ["watch", store, "List", "--columns", "name", "--json"])
        let history = try ToolProcess(tool, ["history", store, "--follow", "--limit", "1"])
        #expect(try await watch.line() == #"[{"name":"even"}]"#)
        #expect(try await history.line().hasPrefix("1 "))
        let container = try await folder.container("shop", kind, Shop.model)
        for save in 2...5 {
            try await container.write { $0.insert("List")["name"] = .string("list \(save)") }
            #expect(try await watch.line().contains("list \(save)"))
            #expect(try await history.line().hasPrefix("\(save) "))
            try FileManager.default.removeItem(atPath: signal)
        }
        try await container.close()
        for process in [watch, history] { #expect(try await process.isEndedByRequest()) }
    }

    @Test(arguments: fileKinds)
    func `each line of the shell reads what another process has saved since the line before`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let shell = try ToolProcess(try ChildProgram.built("strata"), ["shell", folder.path("shop")])
        #expect(try await shell.answer("query List --count") == "1")
        let container = try await folder.container("shop", kind, Shop.model)
        for number in 2...5 {
            let key = try await container.write { context in
                let list = context.insert("List")
                list["name"] = .string("list \(number)")
                return list.objectID.key
            }
            #expect(try await shell.answer("query List --count") == "\(number)")
            #expect(try await shell.answer("query List 'name = \"list \(number)\"' --count") == "1")
            #expect(try await shell.answer("get List \(key) --json").contains("list \(number)"))
            #expect(try await shell.answer("history --limit 1").hasPrefix("\(number) "))
        }
        try await container.write { context in
            for list in try context.fetch(EntityFetchRequest("List")) { context.delete(list) }
        }
        #expect(try await shell.answer("query List --count") == "0")
        #expect(try await shell.end() == 0)
        try await container.close()
    }

    /// Catches: an interrupt that ends the shell together with the verb.
    @Test(arguments: fileKinds)
    func `an interrupt ends a verb that follows saves, and the shell goes on`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let shell = try ToolProcess(try ChildProgram.built("strata"), ["shell", folder.path("shop")])
        for (verb, first) in [
            ("watch List --columns name --json", #"[{"name":"even"}]"#), ("history --follow", "1 "),
            ("history --limit 1 --follow", "1 "),
        ] {
            #expect(try await shell.answer(verb).hasPrefix(first), "\(verb)")
            shell.interrupt()
            #expect(try await shell.answer("query List --count") == "1", "\(verb)")
        }
        #expect(try await shell.end() == 0)
    }

    /// Catches: the newest state that counts as an older one because another process reads it.
    @Test func `a process that reads the newest state is in no list of older states`() async throws {
        let folder = try ToolFolder()
        let store = folder.path("shop")
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let studio = try ToolProcess(try ChildProgram.built("strata"), ["studio", store])
        #expect(try await studio.line().contains("http"))
        let before = try await ToolRun("info", store, "--no-model", "--json").object()["snapshots"] as? [String]
        #expect(before == [])
        let shown = await ToolRun("info", store, "--no-model")
        #expect(shown.status == 0 && !shown.output.contains("older state"), "\(shown)")
    }

    /// Catches: a store that is replaced under a process, which goes on with a file that has no name.
    @Test(arguments: ["import", "backup", "repair", "export"])
    func `a store that is open in another process is not replaced`(_ verb: String) async throws {
        let tool = try ChildProgram.built("strata")
        let folder = try ToolFolder()
        let (shop, target) = (folder.path("shop"), folder.path("used"))
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        try await folder.fill("used", .lmdb, Shop.model, Shop.fill)
        let before = try folder.bytes("used")
        let shell = try ToolProcess(tool, ["shell", target])
        #expect(try await shell.answer("query List --count") == "1")
        let arguments = [verb, shop, target, "--replace"] + (verb == "export" ? ["--format", "sqlite"] : [])
        let run = await ToolRun(arguments)
        #expect(run.isRefused(1, naming: "cannot replace \(target)", "open in another process"), "\(run)")
        #expect(try folder.bytes("used") == before)
        #expect(try await shell.end() == 0)
        let later = await ToolRun(arguments)
        #expect(later.status == 0, "\(later)")
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.contains("partial") }
        #expect(left == [])
        #expect(await ToolRun("verify", target).status == 0)
    }

    /// Catches: a position that stays at the last save of the author, and is refused once the saves after it are deleted.
    @Test(arguments: fileKinds)
    func `S161: history --follow of one author goes on when other saves are deleted`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let container = try await folder.container("shop", kind, Shop.model)
        let context = container.coordinator.newBackgroundContext()
        func save(_ author: String) async throws {
            await context.perform { context in
                context.transactionAuthor = author
                context.insert("List")["name"] = "x"
            }
            try await context.save()
        }
        try await save("importer")
        for _ in 3...5 { try await save("other") }
        let tool = try ChildProgram.built("strata")
        let history = try ToolProcess(tool, ["history", folder.path("shop"), "--follow", "--author", "importer"])
        let first = try await history.line()
        #expect(first.hasPrefix("2 "), "\(first)")
        try await container.coordinator.deleteHistory(before: container.coordinator.currentHistoryToken)
        try await save("importer")
        let next = try await history.line()
        #expect(next.hasPrefix("6 "), "\(next)")
        try await container.close()
    }

    /// Catches: a verb of the shell that opens and closes the SQLite file beside SQLite, which releases the locks of the shell's store.
    @Test func `the shell sees new saves after a verb that reads all of an SQLite store`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .sqlite, Shop.model, Shop.fill)
        let shell = try ToolProcess(try ChildProgram.built("strata"), ["shell", folder.path("shop")])
        let count = try await shell.answer("query List --count")
        #expect(try await shell.answer("export \(folder.path("out.jsonl"))").contains("objects"))
        // Closing the last connection removes the log, unless the shell has its lock.
        try await folder.fill("shop", .sqlite, Shop.model) { $0.insert("List")["name"] = "2" }
        let second = try await shell.answer("query List --count")
        let container = try await folder.container("shop", .sqlite, Shop.model)
        try await container.write { $0.insert("List")["name"] = "3" }
        let third = try await shell.answer("query List --count")
        let before = try #require(Int(count))
        #expect(Int(second) == before + 1)
        #expect(Int(third) == before + 2)
        try await container.close()
    }
}

/// The tool in another process, whose output is read one line at a time.
private final class ToolProcess: Sendable {
    /// Reads and writes, which block.
    private let queue = DispatchQueue(label: "shell")
    private let program: RunningProgram

    init(_ tool: String, _ arguments: [String]) throws { program = try RunningProgram(tool, arguments) }

    /// Returns the line that a shell prints for a line; an empty one if the shell has ended.
    func answer(_ line: String) async throws -> String {
        try await onQueue { [self] in
            // Writing to a pipe without a reader would end the tests.
            guard program.isRunning else { return "" }
            try program.standardInput.write(contentsOf: Data((line + "\n").utf8))
            return try read()
        }
    }

    /// Returns the next line that the tool prints by itself. A tool that never prints it is ended, and the line is empty.
    func line() async throws -> String {
        let ending = Task { [program] in
            try await Task.sleep(for: .seconds(300))
            program.send(SIGKILL)
        }
        defer { ending.cancel() }
        return try await onQueue { [self] in try read() }
    }

    private func read() throws -> String {
        var text = Data()
        while let byte = try program.standardOutput.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) {
            text += byte
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Asks the tool to end. Returns whether it does.
    func isEndedByRequest() async throws -> Bool {
        try await onQueue { [self] in
            program.send(SIGTERM)
            return program.waitForEnd(seconds: 300)
        }
    }

    /// Sends the signal of control with C.
    func interrupt() { program.send(SIGINT) }

    /// Ends the shell and returns the exit status. By a line, because processes that were started meanwhile keep the input open.
    func end() async throws -> Int32? {
        try await onQueue { [self] in
            if program.isRunning { try program.standardInput.write(contentsOf: Data("exit\n".utf8)) }
            return program.exitStatus()
        }
    }

    private func onQueue<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
