import ArgumentParser
import Datasets
import Figures
import Foundation
import Testing

@testable import strata_bench

/// The options that the command line accepts and refuses, and the exit status of a run.
@Suite struct CommandTests {
    private static let commands = [
        "shootout", "stall", "chat", "storage", "children", "undo", "compaction", "scale", "readers", "peers",
    ]

    private func message(_ arguments: [String]) throws -> String {
        let error = try #require(throws: (any Error).self) { _ = try StrataBench.parseAsRoot(arguments) }
        #expect(StrataBench.status(of: error) == 2, "\(arguments)")
        let text = StrataBench.message(for: error)
        #expect(!text.contains("\n"), "\(text)")
        return text
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

    @Test(arguments: ["nan", "inf", "0", "-1", "1e300"])
    func secondsThatNobodyCanWaitAreRefused(seconds: String) throws {
        #expect(try message(["readers", "--seconds=\(seconds)"]).contains("--seconds"))
    }

    @Test(arguments: [
        ["children", "--input", "/nonexistent"], ["undo", "--input", "/nonexistent"], ["scale", "--input", "/nonexistent"],
        ["readers", "--input", "/nonexistent"],
        ["children", "--durability", "deferred"], ["children", "--save-every", "5"], ["storage", "--stack", "nested"],
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
        (["shootout", "--store", "lmbd"], "did you mean lmdb?"), (["shootout", "--stack", "sibling"], "did you mean siblings?"),
        (["stall", "--durability", "durabel"], "did you mean durable?"),
    ])
    func `a wrong name is answered with the one that is meant`(arguments: [String], hint: String) throws {
        #expect(try message(arguments).contains(hint))
    }

    @Test func `a name that is near to nothing has no suggestion`() {
        #expect(Suggestion.nearest(to: "shotout", among: ["shootout", "stall"]) == "shootout")
        #expect(Suggestion.nearest(to: "verify", among: ["shootout", "stall", "readers"]) == nil)
        #expect(Suggestion.nearest(to: "", among: ["shootout"]) == nil)
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

    @Test func `the version is printed with the libraries`() throws {
        let error = try #require(throws: (any Error).self) { _ = try StrataBench.parseAsRoot(["--version"]) }
        #expect(StrataBench.status(of: error) == 0)
        let text = StrataBench.fullMessage(for: error)
        #expect(text.hasPrefix("strata-bench ") && text.contains("LMDB 0.9"))
    }

    @Test func helpIsNoError() throws {
        var help = try StrataBench.parseAsRoot(["--help"])
        let error = try #require(throws: (any Error).self) { try help.run() }
        #expect(StrataBench.status(of: error) == 0)
    }
}
