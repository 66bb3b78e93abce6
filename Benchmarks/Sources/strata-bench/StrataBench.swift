import ArgumentParser
import Figures
import Foundation

/// The command line: reads it, runs a command on a main loop that measures itself, and ends with the status of the result.
///
/// Status 0: done and checked. 1: a run's own check failed. 2: a wrong name, or an input that cannot be read.
@main
struct StrataBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "strata-bench",
        abstract: "Measures Strata's stacks on its stores, against SQLite and LMDB in C calls.",
        subcommands: [
            ShootoutCommand.self, StallCommand.self, ChatCommand.self, StorageCommand.self, ChildrenCommand.self,
            CompactionCommand.self, ScaleCommand.self, ReadersCommand.self, ListCommand.self,
        ])

    static func main() {
        Clock.rememberMainThread()
        Foundation.exit(MainLoop.run(start))
    }

    @MainActor
    private static func start() async -> Int32 {
        do {
            if let name = CommandLine.arguments.dropFirst().first, !name.hasPrefix("-"), !commandNames.contains(name) {
                throw WrongInput(description: "\(name): no such command; known are \(commandNames.joined(separator: ", "))")
            }
            let command = try parseAsRoot()
            if let benchmark = command as? any BenchmarkCommand {
                // Off the main actor, so that main has only what the stacks give it to do.
                try await Task.detached { try await benchmark.runBenchmark() }.value
            } else {
                var command = command
                try command.run()
            }
            return 0
        } catch let error as FailedRun {
            complain(error.description)
            return 1
        } catch let error as WrongInput {
            complain(error.description)
            return 2
        } catch {
            return end(error)
        }
    }

    private static var commandNames: [String] { configuration.subcommands.map { $0._commandName } + ["help"] }

    /// Errors of the command line, among them the wish for help.
    private static func end(_ error: any Error) -> Int32 {
        if exitCode(for: error) == .success {
            print(fullMessage(for: error))
            return 0
        }
        complain(message(for: error))
        return 2
    }

    private static func complain(_ message: String) {
        let line = message.split(whereSeparator: \.isNewline).joined(separator: " ")
        FileHandle.standardError.write(Data("strata-bench: \(line)\n".utf8))
    }
}

/// A run whose result is wrong, or that could not end.
struct FailedRun: Error, CustomStringConvertible {
    var description: String
}

/// A name that does not exist, or an input that cannot be read.
struct WrongInput: Error, CustomStringConvertible {
    var description: String
}
