import ArgumentParser
import Datasets
import Figures
import Testing

@testable import strata_bench

/// The options that the command line accepts and refuses, and the exit status of a run.
@Suite struct CommandTests {
    private static let commands = ["shootout", "stall", "chat", "storage", "children", "compaction", "scale", "readers", "peers"]

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
        ["children", "--input", "/nonexistent"], ["scale", "--input", "/nonexistent"], ["readers", "--input", "/nonexistent"],
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

    @Test func helpIsNoError() throws {
        var help = try StrataBench.parseAsRoot(["--help"])
        let error = try #require(throws: (any Error).self) { try help.run() }
        #expect(StrataBench.status(of: error) == 0)
    }
}
