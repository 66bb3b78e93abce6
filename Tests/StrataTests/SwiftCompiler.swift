import Dispatch
import Foundation
import TestSupport

/// The compiler that built the tests, with the modules next to them. It compiles code that must be refused.
struct SwiftCompiler {
    private let modules: URL
    private let plugin: URL
    /// The headers of the C libraries, which modules name.
    private let headers: [URL]

    static let shared = SwiftCompiler()

    /// Returns nil if the modules are not where SwiftPM puts them, or if there is no `swiftc`.
    private init?() {
        let files = FileManager.default
        let executable = Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
        var folder = executable.resolvingSymlinksInPath().deletingLastPathComponent()
        while !files.fileExists(atPath: folder.appending(path: "Modules/Strata.swiftmodule").path()) {
            guard folder.pathComponents.count > 1 else { return nil }
            folder.deleteLastPathComponent()
        }
        modules = folder.appending(path: "Modules")
        plugin = folder.appending(path: "StrataMacros-tool")
        let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        headers = ["CLMDB", "CPlatform", "CSQLite", "CZstd"].map { package.appending(path: "Sources/\($0)") }
        guard files.fileExists(atPath: plugin.path()), (try? Self.run(["--version"])) != nil else { return nil }
    }

    /// Compiles a file, including the checks of data races. Returns the messages, one per line.
    ///
    /// Runs on a thread that may block, so that other tests continue.
    func messages(about source: String, languageMode: Int = 6, flags: [String] = []) async throws -> [String] {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try compile(source, languageMode, flags) }) }
        }
    }

    private func compile(_ source: String, _ languageMode: Int, _ flags: [String]) throws -> [String] {
        let file = FileManager.default.temporaryDirectory.appending(path: "strata-\(UUID().uuidString).swift")
        try source.write(to: file, atomically: true, encoding: .utf8)
        // Not `/dev/null`: a compiler that the superuser runs can replace it by a file.
        let module = file.appendingPathExtension("sil")
        defer { for made in [file, module] { try? FileManager.default.removeItem(at: made) } }
        let folders = ([modules] + headers).flatMap { ["-I", $0.path()] }
        let output = try Self.run(
            [
                "-swift-version", "\(languageMode)", "-parse-as-library", "-emit-sil", "-o", module.path(), "-diagnostic-style",
                "llvm",
            ] + flags + folders
                + ["-load-plugin-executable", "\(plugin.path())#StrataMacros", file.path()])
        return output.split(separator: "\n").map(String.init)
    }

    private static func run(_ arguments: [String]) throws -> String { try ChildProgram.run("swiftc", arguments).output }
}
