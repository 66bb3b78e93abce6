import Foundation
import TestSupport
import Testing

/// The commands of `Docs/Tool.md` print what the page shows.
@Suite struct ToolDocumentTests {
    private static let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    /// The sample database of the page, which is no part of the repository.
    private static let sample = repository.deletingLastPathComponent().appending(path: "shared/data/chinook.sqlite")

    /// A command with the lines that the page shows below it.
    private struct Example {
        var command: String
        var output: [String] = []
    }

    /// The commands of the page in their order. A line that ends with a backslash is continued.
    private static func examples() throws -> [Example] {
        let page = try String(contentsOf: repository.appending(path: "Docs/Tool.md"), encoding: .utf8)
        var examples: [Example] = []
        var isInBlock = false
        var isContinued = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                isInBlock.toggle()
            } else if isInBlock, line.hasPrefix("$ ") {
                examples.append(Example(command: String(line.dropFirst(2))))
                isContinued = line.hasSuffix("\\")
            } else if isInBlock, isContinued {
                examples[examples.count - 1].command += "\n" + line
                isContinued = line.hasSuffix("\\")
            } else if isInBlock, !examples.isEmpty {
                examples[examples.count - 1].output.append(String(line))
            }
        }
        return examples
    }

    /// Returns a line without what differs from run to run: ids, times, processes, sizes, and the widths of columns.
    private static func masked(_ line: some StringProtocol) -> String {
        var text = String(line)
        text.replace(/[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/, with: "<id>")
        text.replace(/\d{4}-\d\d-\d\dT[0-9:.]+Z/, with: "<time>")
        text.replace(/process \d+/, with: "process <number>")
        text.replace(/\d+(\.\d+)? (B|kB|MB)/, with: "<size>")
        text.replace(/-{3,}/, with: "---")
        text.replace(#/ +/#, with: " ")
        while text.last == " " { text.removeLast() }
        return text
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: sample.path), "the sample database is missing"))
    func `the commands of the page on the tool print what it shows`() throws {
        let folder = try ToolFolder()
        try FileManager.default.copyItem(at: Self.sample, to: folder.url.appending(path: "chinook.sqlite"))
        let programs = folder.url.appending(path: "programs")
        try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: programs.appending(path: "strata").path, withDestinationPath: ChildProgram.built("strata"))
        let examples = try Self.examples().filter { $0.command.contains("strata") || $0.command.contains("music") }
        #expect(examples.count > 30)
        // A server does not end by itself.
        for example in examples where !example.command.hasPrefix("strata studio") {
            let script = "cd \"$0\"; PATH=\"$0/programs:$PATH\"; export LC_ALL=C.UTF-8; \(example.command)"
            let run = try ChildProgram.run("/bin/bash", ["-c", script, folder.url.path])
            var shown = run.output.split(separator: "\n", omittingEmptySubsequences: false).map(Self.masked)
            while shown.last == "" { shown.removeLast() }
            #expect(shown == example.output.map(Self.masked), "\(example.command)")
        }
    }
}
