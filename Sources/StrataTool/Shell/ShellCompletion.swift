import ObjectGraph

/// The words that the tab key offers in the shell.
struct ShellCompletion: Sendable {
    private let entities: [String]
    /// The names of the properties by entity, in lowercase.
    private let properties: [String: [String]]

    private static let queryOptions = [
        "--sort", "--columns", "--limit", "--offset", "--aggregate", "--group-by", "--count", "--explain", "--json",
    ]
    private static let options: [String: [String]] = [
        "query": queryOptions, "watch": queryOptions + ["--times"], "get": ["--json"],
        "history": ["--after", "--limit", "--author", "--entity", "--follow", "--json"],
        "diff": ["--from", "--to", "--json"], "export": ["--format", "--entity", "--replace", "--json"],
        "compact": ["--to", "--write", "--json"], "backup": ["--replace", "--json"], "repair": ["--replace", "--json"],
        "migrate": ["--check", "--model", "--allow-loss", "--json"],
    ]

    init(_ model: Model) {
        entities = model.entities.map(\.name)
        properties = Dictionary(
            model.entities.map { ($0.name.lowercased(), PropertyPath.names(of: $0)) }, uniquingKeysWith: { first, _ in first })
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
        if takesEntity, words.count == 1 { return entities }
        if words.last == "--entity" { return entities }
        let options = Self.options[verb] ?? ["--json"]
        return (takesEntity && words.count > 1 ? properties[words[1].lowercased()] ?? [] : []) + options
    }
}
