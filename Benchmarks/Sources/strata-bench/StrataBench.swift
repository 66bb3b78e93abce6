import ArgumentParser
import Datasets
import Figures
import Foundation
import Workloads

/// The command line. Parses it, runs a command on a main loop that measures itself, and exits with the status of the result.
///
/// Status 0: done and checked. 1: a run failed, by its own check or before it. 2: a wrong name, or an input that cannot be
/// read.
@main
struct StrataBench: ParsableCommand {
    /// The answer to `--version`: the program, and the libraries that its figures depend on.
    static var version: String {
        let libraries = Libraries.versions.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return "strata-bench 0.1.0 (\(libraries.joined(separator: ", ")))"
    }

    static let configuration = CommandConfiguration(
        commandName: "strata-bench",
        abstract: "Measures Strata's stacks on its stores, against SQLite and LMDB in C calls.",
        version: version,
        subcommands: [
            ShootoutCommand.self, StallCommand.self, ChatCommand.self, StorageCommand.self, ChildrenCommand.self,
            UndoCommand.self, ObservationCommand.self, CompactionCommand.self, ScaleCommand.self, ReadersCommand.self,
            SavesCommand.self, PeersCommand.self, ListCommand.self,
        ])

    static func main() {
        // A store that is opened as a closed standard stream would get the output. Now writing to these fails, and reading them ends.
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
        Clock.rememberMainThread()
        Foundation.exit(MainLoop.run(start))
    }

    @MainActor
    private static func start() async -> Int32 {
        do {
            let command = try command(Array(CommandLine.arguments.dropFirst()))
            if let benchmark = command as? any BenchmarkCommand {
                // Off the main actor, so that main runs only the work of the stacks.
                try await Task.detached { try await benchmark.runBenchmark() }.value
            } else {
                var command = command
                try command.run()
            }
            return 0
        } catch {
            return end(error)
        }
    }

    /// Returns the command of a command line. Throws ``WrongInput`` for a wrong name, because the parser suggests names of options only.
    static func command(_ arguments: [String]) throws -> any ParsableCommand {
        let known = configuration.subcommands.map { $0._commandName } + ["help"]
        if let name = arguments.first, !name.hasPrefix("-"), !known.contains(name) {
            throw WrongInput(description: "\(name): no such command\(Suggestion.hint(for: name, among: known))")
        }
        return try parseAsRoot(arguments)
    }

    /// Prints the error, on standard error unless help was requested, and returns the status.
    private static func end(_ error: any Error) -> Int32 {
        let status = status(of: error)
        switch error {
        case let error as FailedRun: complain(error.description)
        case let error as WrongInput: complain(error.description)
        case _ where status == 0: print(fullMessage(for: error))
        default: complain(message(for: error))
        }
        return status
    }

    /// Returns the status of an error. An error that is neither a run's nor a request for help is an error of the command line.
    static func status(of error: any Error) -> Int32 {
        switch error {
        case is FailedRun: 1
        case is WrongInput: 2
        default: exitCode(for: error) == .success ? 0 : 2
        }
    }

    private static func complain(_ message: String) {
        let line = message.split(whereSeparator: \.isNewline).joined(separator: " ")
        // An error that cannot be shown has no other place to go. The status tells of it.
        try? FileHandle.standardError.write(contentsOf: Data("strata-bench: \(line)\n".utf8))
    }
}

/// The error of a run whose result is wrong, or that could not finish.
struct FailedRun: Error, CustomStringConvertible {
    var description: String
}

/// The error for a name that does not exist, or for an input that cannot be read.
struct WrongInput: Error, CustomStringConvertible {
    var description: String
}
