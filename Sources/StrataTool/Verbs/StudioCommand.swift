import ArgumentParser
import Dispatch
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import StrataStudio

/// `strata studio`: a page in a browser that shows a store.
struct StudioCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "studio", abstract: "Serves a page for a browser that shows a store.",
        discussion: """
            Prints the address to open. The page is served to this computer only, and its address has a token. It shows the schema, tables, \
            objects, history, snapshots and the parts of the file, and follows the saves of other processes. Ends when it is interrupted.
            """)

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Flag(help: "Allow the page to change objects.")
    var write = false

    @Option(parsing: .unconditional, help: "Listen on this port; any free one without it.")
    var port = 0

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port is a number from 0 to 65535") }
    }

    mutating func run() async throws {
        let options = self
        try await OpenedStore.with(file, access: write ? .writing : .reading) { store in
            let studio: Studio
            do {
                studio = try await Studio(
                    store.container, file: URL(fileURLWithPath: store.path).lastPathComponent, language: Self.language,
                    options: Studio.Options(isWritable: options.write, port: options.port))
            } catch {
                throw ToolError.failed("cannot listen on port \(options.port): \(error). Choose another port with --port")
            }
            let address = studio.address
            let line = options.output.json ? JSON.object(["address": .string(address)]).text : address
            // The program that reads the address may interrupt this one at once.
            let end = await Interruption.run(until: [SIGINT, SIGTERM]) { () -> Result<Void, any Error> in
                do { try Console.print(line) } catch { return .failure(error) }
                try? await studio.run()
                return .success(())
            }
            try end.get()
        }
    }

    /// The texts of conditions and values are those of the other verbs.
    private static let language = StudioLanguage(
        condition: { try ConditionParser.condition($0, on: $1, in: $2) }, sort: { try NameList.sort($0) },
        text: { ValueText.text($0, $1) },
        value: { ValueText.value($0, $1) }, sentence: { ToolError($0).description })
}
