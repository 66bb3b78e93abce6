import Foundation

/// A server that runs in another process, and the threads and memory that the process uses.
struct ServerProcess: ~Copyable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The use of threads and memory, where the system tells it (Linux).
    struct Usage: Sendable {
        var threads: Int?
        var residentKilobytes: Int?
    }

    let port: Int
    private let process: Process

    /// Starts the server that was built with this program, on a free port, and waits until it accepts connections.
    init(store: URL, deferred: Bool) throws {
        let program = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "stock-server")
        let output = Pipe()
        process = Process()
        process.executableURL = program
        process.arguments = ["--port", "0", "--store", store.path] + (deferred ? ["--deferred"] : [])
        process.standardOutput = output
        process.environment = ProcessInfo.processInfo.environment.merging(["LOG_LEVEL": "warning"]) { _, new in new }
        do { try process.run() } catch {
            throw Failure(description: "cannot start \(program.path): \(error). Build the whole package first")
        }
        // The line is written at once, or the process ends without it.
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let text = line.split(separator: ":").last, let port = Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
        else {
            process.terminate()
            throw Failure(description: "the server did not start: it wrote \"\(line)\"")
        }
        self.port = port
    }

    deinit { if process.isRunning { process.terminate() } }

    var identifier: Int32 { process.processIdentifier }

    /// Ends the server by SIGTERM, and waits for its end.
    consuming func shutDown() throws {
        process.terminate()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw Failure(description: "the server ended with status \(process.terminationStatus), not with 0")
        }
    }

    /// Reads the present usage of a process.
    static func usage(of identifier: Int32) -> Usage {
        guard let text = try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8) else { return Usage() }
        func number(_ name: String) -> Int? {
            text.split(separator: "\n").first { $0.hasPrefix(name + ":") }?.split(whereSeparator: { !$0.isNumber }).first.flatMap
            { Int($0) }
        }
        return Usage(threads: number("Threads"), residentKilobytes: number("VmRSS"))
    }
}
