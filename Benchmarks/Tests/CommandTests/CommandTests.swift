import ArgumentParser
import Datasets
import Figures
import Foundation
import StoreInterface
import Testing

@testable import strata_bench

/// The options that the command line accepts and refuses, and the exit status of a run.
@Suite struct CommandTests {
    private static let commands = [
        "shootout", "stall", "chat", "storage", "children", "undo", "observation", "compaction", "scale", "readers", "saves",
        "peers",
    ]

    private func message(_ arguments: [String]) throws -> String {
        let error = try #require(throws: (any Error).self) { _ = try StrataBench.parseAsRoot(arguments) }
        #expect(StrataBench.status(of: error) == 2, "\(arguments)")
        let text = StrataBench.message(for: error)
        #expect(!text.contains("\n"), "\(text)")
        return text
    }

    /// Catches: figures that are written over the data that was measured.
    @Test func `files of figures replace neither the input nor each other`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "figures-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let table = folder.appending(path: "things.csv")
        try Data("id,name\n1,a\n".utf8).write(to: table)
        for arguments in [
            ["--input", table.path, "--json", table.path], ["--input", folder.path, "--html", table.path],
            ["--json", folder.path + "/a", "--html", folder.path + "/a"],
        ] { _ = try message(["shootout"] + arguments) }
    }

    @Test(arguments: commands)
    func numbersThatNobodyCanRunAreRefused(command: String) throws {
        for option in ["--objects", "--save-every", "--repeat"] {
            for number in ["9223372036854775807", "0", "-1"] {
                let text = try message([command, "\(option)=\(number)"])
                #expect(text.contains(option) && text.contains("must be at"), "\(text)")
            }
        }
        _ = try message([command, "--seed=-1"])
        _ = try message([command, "--objects=99999999999999999999"])
    }

    @Test(arguments: ["nan", "inf", "0", "-1", "1e300", "0.000001"])
    func secondsThatNobodyCanWaitAreRefused(seconds: String) throws {
        #expect(try message(["readers", "--seconds=\(seconds)"]).contains("--seconds"))
    }

    @Test(.enabled(if: Machine.isInMemory(URL(filePath: "/dev/shm"))))
    func `a report says that its files were in memory`() {
        #expect(SavesCommand.notes(onFilesIn: URL(filePath: "/dev/shm")).first?.contains("TMPDIR") == true)
        #expect(SavesCommand.notes(onFilesIn: URL(filePath: "/proc")).isEmpty)
    }

    @Test(arguments: [
        ["children", "--input", "/nonexistent"], ["undo", "--input", "/nonexistent"], ["observation", "--input", "x"],
        ["scale", "--input", "/nonexistent"],
        ["readers", "--input", "/nonexistent"],
        ["children", "--durability", "deferred"], ["saves", "--durability", "durable"], ["children", "--save-every", "5"],
        ["storage", "--stack", "nested"],
        ["scale", "--routing", "snapshot"], ["readers", "--stack", "all"], ["compaction", "--store", "lmdb"],
        ["compaction", "--repeat", "2"], ["peers", "--store", "lmdb"], ["peers", "--input", "x"],
    ])
    func anOptionThatACommandDoesNotReadIsRefused(arguments: [String]) throws {
        #expect(try message(arguments).hasPrefix("\(arguments[1]): \(arguments[0]) does not read this option"))
    }

    @Test(arguments: [
        ["shootout", "--input", "x", "--objects", "5"], ["chat", "--input", "x", "--seed", "5"],
        ["shootout", "--save-every", "5", "--save-each-entity"], ["compaction", "--records", "--input", "x"],
        ["shootout", "--store", "lmdb", "--routing", "ancestors"], ["stall", "--stack", "none"],
        ["compaction", "--effort", "most"], ["shootout", "--parse-cost", "some"], ["shootout", "--core-data-cost", "-1"],
        ["shootout", "--core-data-cost", "nan"], ["shootout", "--core-data-cost", "5", "--routing", "snapshot"],
        ["stall", "--parse-cost", "none"],
        ["stall", "--json", "/nonexistent/figures.json"], ["stall", "--html", "/"],
    ])
    func whatDoesNotFitTogetherIsRefusedBeforeTheRun(arguments: [String]) throws { _ = try message(arguments) }

    @Test func whatAllCommandsReadIsAccepted() throws {
        for command in Self.commands {
            let parsed = try StrataBench.parseAsRoot([command, "--objects", "100000000", "--quiet", "--markdown", "--seed", "7"])
            #expect(parsed is any BenchmarkCommand)
        }
        let storage = try StrataBench.parseAsRoot(["storage", "--input", "x", "--objects", "5", "--seed", "2"])
        #expect((storage as? any BenchmarkCommand)?.options.input == "x")
    }

    @Test func inputThatCannotBeReadIsNoFailedRun() async throws {
        for command in ["shootout", "stall", "chat", "storage", "compaction"] {
            let parsed = try #require(try StrataBench.parseAsRoot([command, "--input", "/nonexistent"]) as? any BenchmarkCommand)
            let error = await #expect(throws: WrongInput.self) { try await parsed.runBenchmark() }
            #expect(try StrataBench.status(of: #require(error)) == 2)
        }
    }

    #if !STRATA_PEERS
        @Test func `peers names the command that builds it`() async throws {
            let parsed = try #require(try StrataBench.parseAsRoot(["peers"]) as? any BenchmarkCommand)
            let error = await #expect(throws: WrongInput.self) { try await parsed.runBenchmark() }
            let found = try #require(error)
            #expect(StrataBench.status(of: found) == 2)
            #expect(found.description.contains("make peers") && !found.description.contains("\n"))
        }
    #endif

    @Test func whatGoesWrongInARunIsAFailedRun() async throws {
        let error = await #expect(throws: FailedRun.self) { try await FailingCommand().runBenchmark() }
        #expect(try StrataBench.status(of: #require(error)) == 1)
        #expect(error?.description.contains("the disk is full") == true)
    }

    /// A run that fails with an error of a store.
    private struct FailingCommand: BenchmarkCommand {
        struct DiskFull: Error, CustomStringConvertible { let description = "the disk is full" }

        static let read: Set<OptionUse> = []
        @OptionGroup var options: BenchmarkOptions

        func measure() async throws -> (rows: [Report.Row], notes: [String]) { throw DiskFull() }
    }

    @Test(arguments: [
        (["shootout", "--store", "lmbd"], "lmdb"), (["shootout", "--stack", "nested,sibling"], "siblings"),
        (["stall", "--durability", "durabel"], "durable"), (["chat", "--routing", "ancestor"], "ancestors"),
        (["compaction", "--effort", "usuall"], "usual"),
    ])
    func `a wrong name is answered with the one that is meant, and all known names`(arguments: [String], name: String) throws {
        let text = try message(arguments)
        #expect(text.contains("; did you mean \(name)? Known are ") && text.hasPrefix(arguments[1]), "\(text)")
    }

    @Test(arguments: [
        (["shootout", "--stroe", "lmdb"], "--store"), (["chat", "--repeats", "3"], "--repeat"),
        (["readers", "--second", "1"], "--seconds"), (["stall", "--null-word", "x"], "--null-words"),
    ])
    func `a wrong option is answered with the one that is meant`(arguments: [String], option: String) throws {
        let text = try message(arguments)
        #expect(text.lowercased().contains("did you mean '\(option)'?") && text.contains(arguments[1]), "\(text)")
    }

    @Test(arguments: [("shotout", "shootout"), ("reader", "readers"), ("Stall", "stall"), ("pears", "peers")])
    func `a wrong command is answered with the one that is meant`(name: String, meant: String) throws {
        let error = try #require(throws: WrongInput.self) { _ = try StrataBench.command([name, "--quiet"]) }
        #expect(error.description.hasPrefix("\(name): no such command; did you mean \(meant)? Known are shootout, "))
        #expect(StrataBench.status(of: error) == 2)
        #expect(try StrataBench.command([meant, "--quiet"]) is any BenchmarkCommand)
    }

    /// A folder of one CSV file, which is removed with the value.
    private final class CSVFolder {
        let path: String

        init(_ text: String) throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: "strata-\(UUID())", directoryHint: .isDirectory)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: folder.appending(path: "things.csv"))
            path = folder.path
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    /// The data that a command would measure.
    private func data(_ arguments: [String]) throws -> Dataset {
        switch try StrataBench.parseAsRoot(arguments) {
        case let command as StallCommand: try command.data()
        case let command as ChatCommand: try command.data()
        case let command as any BenchmarkCommand: try command.options.dataset()
        default: throw WrongInput(description: "no benchmark")
        }
    }

    @Test(arguments: ["shootout", "stall", "chat", "storage", "compaction"])
    func `words for null are read by every command that reads files`(command: String) throws {
        let folder = try CSVFolder("id,parent,count\n1,,5\n2,1,none\n3,1,NA\n4,2,6\n")
        func type(_ words: [String]) throws -> ColumnType? {
            try data([command, "--input", folder.path] + words).tables.last?.attribute(named: "count")?.type
        }
        #expect(try type([]) == .string)
        #expect(try type(["--null-words", "NA"]) == .string)
        #expect(try type(["--null-words", "none,NA"]) == .int64)
        #expect(try type(["--null-words=none,NA"]) == .int64)
    }

    @Test func `words for null need CSV files`() async throws {
        #expect(try message(["shootout", "--null-words", "NULL"]).contains("--null-words: is for CSV files only"))
        let file = FileManager.default.temporaryDirectory.appending(path: "strata-\(UUID()).sqlite")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let parsed = try StrataBench.parseAsRoot(["shootout", "--input", file.path, "--null-words", "NULL"])
        let command = try #require(parsed as? any BenchmarkCommand)
        let error = await #expect(throws: WrongInput.self) { try await command.runBenchmark() }
        #expect(error?.description.contains("leave out --null-words") == true)
    }

    /// Catches: costs per row of no rows, which are no numbers, and stopped the program when they were printed.
    @Test(arguments: ["shootout", "storage", "compaction"])
    func `an input without rows is refused`(command: String) async throws {
        let folder = try CSVFolder("id,name\n")
        let parsed = try #require(try StrataBench.parseAsRoot([command, "--input", folder.path]) as? any BenchmarkCommand)
        let error = await #expect(throws: WrongInput.self) { try await parsed.runBenchmark() }
        #expect(error?.description.contains("there are no rows") == true)
    }

    @Test func `references of CSV columns are chosen by an option`() throws {
        let folder = try CSVFolder("id,bossId\n1,\n2,1\n3,1\n")
        func references(_ arguments: [String]) throws -> [String] {
            try data(["shootout", "--input", folder.path] + arguments).tables[0].references.map(\.name)
        }
        #expect(try references([]) == [])
        #expect(try references(["--references", "bossId=things"]) == ["boss"])
        let error = try #require(throws: (any Error).self) { _ = try references(["--references", "bossId=thing"]) }
        #expect(StrataBench.status(of: error) == 2)
        #expect(StrataBench.fullMessage(for: error).contains("has no file thing; did you mean things?"))
        #expect(try message(["shootout", "--references", "a=b"]).contains("--references: is for CSV files only"))
    }

    @Test func `the version is printed with the libraries`() throws {
        let error = try #require(throws: (any Error).self) { _ = try StrataBench.parseAsRoot(["--version"]) }
        #expect(StrataBench.status(of: error) == 0)
        let text = StrataBench.fullMessage(for: error)
        #expect(text.hasPrefix("strata-bench ") && text.contains("LMDB 0.9"))
    }

    /// Catches: an error that stops the program by a signal, because standard error is closed.
    @Test func `an error that cannot be shown ends the program with its status`() {
        let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "strata-bench")
        let status = system("'\(program.path)' shotout 2>&-")
        #expect(status & 0x7f == 0 && status >> 8 & 0xff == 2, "\(status)")
    }

    @Test func helpIsNoError() throws {
        var help = try StrataBench.parseAsRoot(["--help"])
        let error = try #require(throws: (any Error).self) { try help.run() }
        #expect(StrataBench.status(of: error) == 0)
    }
}
