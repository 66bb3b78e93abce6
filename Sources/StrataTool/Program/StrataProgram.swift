import ArgumentParser
import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// The command line tool, as a function that tests call.
public enum StrataProgram {
    /// Runs the tool and returns its exit status: 0 if it is done, 1 if the verb failed or found faults, 2 for a wrong name or an input
    /// that cannot be read.
    ///
    /// - Parameters:
    ///   - arguments: The verb and its arguments.
    ///   - console: The input and output.
    public static func run(_ arguments: [String], console: Console) async -> Int32 {
        await Console.$current.withValue(console) {
            guard let verb = arguments.first, StrataCommand.creatingVerbs.contains(verb) else { return await run(arguments) }
            // A verb that is cancelled removes its temporary files.
            return await Interruption.run(until: [SIGINT, SIGTERM]) { await run(arguments) }
        }
    }

    private static func run(_ arguments: [String]) async -> Int32 {
        do {
            try checkVerb(arguments.first == "help" ? arguments.dropFirst().first : arguments.first)
            try await run(StrataCommand.parseAsRoot(arguments))
            return 0
        } catch {
            return end(error, verb: arguments.first)
        }
    }

    private static func run(_ command: any ParsableCommand) async throws {
        if var verb = command as? any StoreVerb {
            var opening = Opening.current
            opening.check = verb.output.openingCheck
            try await Opening.$current.withValue(opening) { try await verb.run() }
        } else if var asynchronous = command as? any AsyncParsableCommand {
            try await asynchronous.run()
        } else {
            var command = command
            try command.run()
        }
    }

    private static func checkVerb(_ name: String?) throws {
        guard let name, !name.hasPrefix("-") else { return }
        let known = StrataCommand.verbs
        guard !known.contains(name), name != "help" else { return }
        throw ToolError.wrongInput("\(name): no such verb\(Suggestion.hint(for: name, among: known))")
    }

    /// Prints the error, on standard error unless help was asked for, and returns the status.
    private static func end(_ error: any Error, verb: String? = nil) -> Int32 {
        let console = Console.current
        let known = StrataCommand.exitCode(for: error)
        if isOfParser(error) {
            guard known != .success else { return help(StrataCommand.fullMessage(for: error)) }
            let message = oneLine(StrataCommand.message(for: error))
            let help = verb.flatMap { StrataCommand.verbs.contains($0) ? "strata help \($0)" : nil } ?? "strata help"
            // The parser's own messages name no remedy.
            console.complain("strata: " + message + (message.contains(". ") ? "" : ". See `\(help)`"))
            return ToolError.Status.wrongInput.rawValue
        }
        let failure = ToolError(error)
        if !failure.description.isEmpty { console.complain("strata: " + oneLine(failure.description)) }
        return failure.status.rawValue
    }

    /// Prints a text that was asked for, and returns the status.
    private static func help(_ text: String) -> Int32 {
        do {
            try Console.print(text)
            return 0
        } catch {
            return end(error)
        }
    }

    /// Whether an error is a message or a request of the argument parser.
    private static func isOfParser(_ error: any Error) -> Bool {
        if error is ValidationError || error is CleanExit || error is ExitCode { return true }
        return "\(type(of: error))" == "CommandError"
    }

    private static func oneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ").withoutControls()
    }
}

/// The root of the verbs.
struct StrataCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "strata",
        abstract: "Reads, checks, copies and converts stores of Strata.",
        discussion: "Files are opened read-only, unless a verb says otherwise, and may be in use by other processes.",
        version: "0.1.0",
        subcommands: [
            InfoCommand.self, ModelCommand.self, QueryCommand.self, GetCommand.self, ExportCommand.self, ImportCommand.self,
            HistoryCommand.self, DiffCommand.self, WatchCommand.self, VerifyCommand.self, RepairCommand.self, CompactCommand.self,
            BackupCommand.self, MigrateCommand.self, StudioCommand.self, ShellCommand.self,
        ])

    /// The names of the verbs.
    static var verbs: [String] { configuration.subcommands.map { $0._commandName } }

    /// The verbs that create files.
    static let creatingVerbs: Set = ["export", "import", "repair", "compact", "backup", "migrate"]
}

/// The option of the verbs that create a file.
struct ReplaceOptions: ParsableArguments {
    @Flag(help: "Replace an existing file.")
    var replace = false

    var existing: ExistingFile { replace ? .replace : .refuse }
}

/// The options that every verb has.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON instead of text.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Check all pages of the trees of an LMDB file when it is opened (everything), or only what opening reads (roots). A damaged page that is not checked can stop the program.",
            valueName: "check"))
    var openingCheck = Opening.Check.everything
}
