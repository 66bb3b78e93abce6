import Foundation
import StrataTool

/// The program `strata`.
@main
enum StrataMain {
    static func main() async {
        exit(await StrataProgram.run(Array(CommandLine.arguments.dropFirst()), console: .standard))
    }
}
