import Foundation
import Strata

/// Runs one command, or each line of the standard input: `todo FILE [COMMAND [WORD ...]]`.
@main @MainActor struct TodoCommand {
    static func main() async {
        // A store that is opened as a closed standard stream would get the output. Now writing to these fails.
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let file = arguments.first else {
            complain("usage: todo FILE [add | edit | done | remove | list | search | tags | watch | undo] [WORD ...]")
            exit(2)
        }
        do {
            let container = try await PersistentContainer(
                for: Todo.self, Tag.self, store: .lmdb(URL(fileURLWithPath: file)))
            try container.followOtherProcesses()
            let status = await run(Array(arguments.dropFirst()), TodoList(container.mainContext))
            try await container.close()
            exit(status)
        } catch {
            complain("\(error)")
            exit(1)
        }
    }

    /// Runs one command, or a session. Returns the status of the program: 0, 2 after bad input, or 1 after another error.
    private static func run(_ words: [String], _ list: TodoList) async -> Int32 {
        if let command = words.first { return await run(command, words.dropFirst(), list) }
        var status: Int32 = 0
        while let words = readLine()?.split(separator: " ").map(String.init) {
            if let command = words.first { status = max(status, await run(command, words.dropFirst(), list)) }
        }
        return status
    }

    private static func run(_ command: String, _ words: ArraySlice<String>, _ list: TodoList) async -> Int32 {
        do {
            try await list.run(command, words)
            return 0
        } catch SaveError.validation(let errors) {
            complain(errors.ruleViolations.map(\.message).joined(separator: "; "))
            return 2
        } catch {
            complain("\(error)")
            return error is BadInput ? 2 : 1
        }
    }

    /// An error that cannot be shown has no other place to go. The status tells of it.
    private static func complain(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data("todo: \(line)\n".utf8))
    }
}
