import Foundation
import TestSupport
import Testing

/// The program `strata studio` in another process. It ends with the test, or with the process of the tests.
final class StudioProcess: Sendable {
    private let folder: URL
    private let running: Task<ChildProgram.Result, any Error>

    /// Starts the program.
    ///
    /// - Parameters:
    ///   - signal: The signal that ends it.
    ///   - folder: A folder for the texts that the two processes exchange.
    init(_ arguments: [String], signal: String = "TERM", in folder: URL) throws {
        // The script waits by reading a pipe without a writer. Starting `sleep` for each wait would be slow while many tests run.
        let script = """
            folder=$1; shift
            exec 3<> "$folder/clock"
            "$@" > "$folder/address.txt" 3>&- & studio=$!
            until [ -e "$folder/stop" ]; do
              kill -0 $PPID && kill -0 $studio 2> /dev/null || break
              read -r -t 0.1 -u 3
            done
            kill -\(signal) $studio 2> /dev/null
            wait $studio
            status=$?
            touch "$folder/ended"
            exit $status
            """
        let command = ["-c", script, "studio", folder.path, try ChildProgram.built("strata"), "studio"] + arguments
        self.folder = folder
        guard mkfifo(folder.appending(path: "clock").path, 0o600) == 0 else {
            throw HTTPClient.Failure(description: "no named pipe in \(folder.path): error \(errno)")
        }
        running = Task { try await HTTPClient.blocking { try ChildProgram.run("/bin/bash", command) } }
    }

    /// Waits for the line that the program prints. Returns nil if it ends instead.
    func address() async throws -> String? {
        var text = ""
        try await until("the address, or the end of the program") {
            text = (try? String(contentsOf: folder.appending(path: "address.txt"), encoding: .utf8)) ?? ""
            return text.hasSuffix("\n") || FileManager.default.fileExists(atPath: folder.appending(path: "ended").path)
        }
        return text.hasSuffix("\n") ? text.trimmingCharacters(in: .newlines) : nil
    }

    /// Ends the program and waits for it.
    func stop() async throws -> ChildProgram.Result {
        try Data().write(to: folder.appending(path: "stop"))
        return try await running.value
    }

    /// Runs the program with arguments that it refuses.
    static func refused(_ arguments: String...) async throws -> ChildProgram.Result {
        let tool = try ChildProgram.built("strata")
        return try await HTTPClient.blocking { try ChildProgram.run(tool, ["studio"] + arguments) }
    }
}
