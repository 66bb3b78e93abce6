import Foundation
import ObjectGraph

/// The words that the tab key offers in the shell.
struct ShellCompletion: Sendable {
    private let entities: [String]
    private let collections: [String]
    /// The names of the properties by entity, in lowercase.
    private let properties: [String: [String]]

    /// The options of each verb, from the declarations of the verbs.
    private static let options: [String: [String]] = {
        guard let help = try? JSONDecoder().decode(ProgramHelp.self, from: Data(StrataCommand._dumpHelp().utf8)) else {
            return [:]
        }
        return Dictionary(
            (help.command.subcommands ?? []).map { ($0.commandName, $0.options) }, uniquingKeysWith: { first, _ in first })
    }()

    init(_ model: Model, collections: [String] = []) {
        self.collections = collections
        let all = model.entities + model.subentities
        entities = all.map(\.name)
        properties = Dictionary(
            all.map { ($0.name.lowercased(), PropertyPath.names(of: $0)) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns what can stand in place of the end of a line, and the number of characters of the line that it replaces.
    func candidates(_ line: String) -> (count: Int, words: [String]) {
        let end = line.reversed().prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" && line.contains(" ") }
        let start = String(end.reversed())
        let before = line.dropLast(start.count)
        let words = before.split(separator: " ").map(String.init)
        return (start.count, known(after: words).filter { $0.lowercased().hasPrefix(start.lowercased()) && $0 != start })
    }

    private func known(after words: [String]) -> [String] {
        guard let verb = words.first else { return ShellCommand.verbs + ["help", "exit"] }
        if verb == "help" { return words.count == 1 ? ShellCommand.verbs : [] }
        let takesEntity = ["query", "watch", "get"].contains(verb)
        if takesEntity, words.count == 1 { return verb == "get" ? entities + collections : entities }
        if words.last == "--entity" { return entities }
        return (takesEntity && words.count > 1 ? properties[words[1].lowercased()] ?? [] : []) + (Self.options[verb] ?? [])
    }
}

/// The description of the verbs that the argument parser writes for other programs, as far as completion needs it.
private struct ProgramHelp: Decodable {
    struct Command: Decodable {
        var commandName: String
        var subcommands: [Command]?
        var arguments: [Argument]?

        /// The long names of the options, without `--help` and `--version`.
        var options: [String] {
            (arguments ?? []).flatMap { $0.names ?? [] }.filter { $0.kind == "long" && !["help", "version"].contains($0.name) }
                .map { "--" + $0.name }
        }
    }

    struct Argument: Decodable { var names: [Name]? }

    struct Name: Decodable {
        var kind: String
        var name: String
    }

    var command: Command
}
