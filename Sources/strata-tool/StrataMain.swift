import Foundation
import Logging
import StrataTool

/// The program `strata`.
@main
enum StrataMain {
    /// The verbs that go on after a failure, which is logged. Others end and print it.
    private static let goingOn: Set<String> = ["history", "shell", "studio", "watch"]

    static func main() async {
        // A file that is opened as a closed standard stream would get the output. Now writing to these fails, and reading them ends.
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
        // Other bytes would be replaced by a character that the name of another file may have.
        let areTexts = (0..<Int(CommandLine.argc)).allSatisfy { number in
            CommandLine.unsafeArgv[number].map { String(validatingCString: $0) != nil } ?? true
        }
        guard areTexts else {
            Console.standard.complain("strata: an argument is not UTF-8, as names of files have to be. Rename the file")
            exit(2)
        }
        let arguments = Array(CommandLine.arguments.dropFirst())
        if !goingOn.contains(arguments.first ?? "") { LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() } }
        exit(await StrataProgram.run(arguments, console: .standard))
    }
}
