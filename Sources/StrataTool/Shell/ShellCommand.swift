import ArgumentParser
import Datasets
import Foundation
import ObjectGraph

/// `strata shell`: several verbs on one store.
struct ShellCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "shell", abstract: "Reads verbs for one store from the terminal, with completion.",
        discussion: """
            Write the verbs of this tool without the name of the store: query Track "plays > 100" --limit 5. The tab key completes verbs, \
            entities, properties and options. `help query` explains a verb, and `exit` ends. Control with C ends a verb. \
            Without a terminal, lines are read from standard input, and the status is the worst one of their verbs.
            """)

    @Argument(help: "The store.", completion: .file())
    var file: String

    @OptionGroup var output: OutputOptions

    /// The verbs whose first argument is a store.
    static let verbs = StrataCommand.verbs.filter { !["shell", "import"].contains($0) }

    mutating func run() async throws {
        let (path, json) = (file, output.json)
        // One store for all lines, so that a large file is checked once.
        try await OpenedStore.with(path) { store in
            var opening = Opening.current
            opening.kept = store
            let collections = try await store.read { try $0.storedCollections().map(\.name) }
            let completion = ShellCompletion(store.model, collections: collections)
            try await Opening.$current.withValue(opening) { try await Self.readLines(path, completion, json: json) }
        }
    }

    private static func readLines(_ path: String, _ completion: ShellCompletion, json: Bool) async throws {
        let console = Console.current
        let editor = LineEditor.onTerminal(prompt: "\(URL(fileURLWithPath: path).lastPathComponent)> ", completion.candidates)
        var worst: Int32 = 0
        while let line = editor.map({ $0.readLine() }) ?? console.readLine() {
            let words: [String]
            do { words = try ShellWords.split(line) } catch {
                Console.note("strata: \(error.description)")
                worst = max(worst, error.status.rawValue)
                continue
            }
            guard let verb = words.first else { continue }
            if verb == "exit" || verb == "quit" { break }
            let rest = Array(words.dropFirst())
            @Sendable func runVerb() async -> Int32 { await run(verb, words: rest, path: path, json: json, console: console) }
            // An interrupt ends a verb, and the shell goes on. A script goes on only after verbs that end in no other way.
            let isEndless = verb == "watch" || verb == "history" && rest.contains("--follow")
            let isInterruptible = editor != nil || isEndless
            worst = max(worst, isInterruptible ? await Interruption.run(until: [SIGINT]) { await runVerb() } : await runVerb())
        }
        if editor == nil, worst != 0 { throw ToolError(status: worst == 1 ? .failed : .wrongInput, description: "") }
    }

    private static func run(_ verb: String, words: [String], path: String, json: Bool, console: Console) async -> Int32 {
        if verb == "help" {
            guard words.isEmpty else { return await StrataProgram.run(["help"] + words, console: console) }
            do {
                try console.write("Verbs: \(verbs.joined(separator: ", ")), help, exit\n")
                return 0
            } catch {
                return ToolError.Status.failed.rawValue
            }
        }
        guard verbs.contains(verb) else {
            let hint = Suggestion.hint(for: verb, among: verbs + ["help", "exit"])
            Console.note("strata: \(verb): no such verb\(hint)")
            return ToolError.Status.wrongInput.rawValue
        }
        // Before the words, because after two dashes it would be one of them.
        return await StrataProgram.run([verb, path] + (json ? ["--json"] : []) + words, console: console)
    }
}

/// Splits a line into words, as shells do: blanks separate, and quotes and backslashes keep blanks.
enum ShellWords {
    static func split(_ line: String) throws(ToolError) -> [String] {
        var words: [String] = []
        var word = ""
        var isWord = false
        var quote: Character?
        var isEscaped = false
        for character in ConditionLexer.separated(line) {
            if isEscaped {
                // In double quotes, a backslash before another character is itself.
                if quote == "\"", character != "\"", character != "\\" { word.append("\\") }
                word.append(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
                isWord = true
            } else if character == quote {
                quote = nil
            } else if quote != nil {
                word.append(character)
            } else if character == "\"" || character == "'" {
                quote = character
                isWord = true
            } else if character.isWhitespace {
                if isWord { words.append(word) }
                word = ""
                isWord = false
            } else {
                word.append(character)
                isWord = true
            }
        }
        if let quote { throw .wrongInput("the line has no second \(quote). Close the quotation") }
        if isEscaped { throw .wrongInput("the line ends with a backslash. Remove it") }
        return isWord ? words + [word] : words
    }
}
