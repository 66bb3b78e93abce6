import Foundation

/// A file to which a worker appends lines about its saves, when they begin and when they are acknowledged. Each line is one
/// plain write.
final class AcknowledgementFile: Sendable {
    static let name = "acknowledged"

    private let descriptor: Int32

    init(folder: URL) throws {
        descriptor = open(folder.appendingPathComponent(Self.name).path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CrashRunError("the acknowledgements in \(folder.path) cannot be opened") }
    }

    deinit { close(descriptor) }

    func note(_ words: Any...) throws {
        let line = words.map { "\($0)" }.joined(separator: " ") + "\n"
        guard write(descriptor, line, line.utf8.count) == line.utf8.count else {
            throw CrashRunError("an acknowledgement cannot be written: \(String(cString: strerror(errno)))")
        }
    }
}

/// The saves that the file must have, according to the acknowledgements up to some moment.
struct Acknowledgements {
    /// For each writer, the number of saves that have begun.
    private(set) var started: [Int: Int] = [:]
    /// For each writer, the number of saves that have returned, including deferred saves.
    private(set) var accepted: [Int: Int] = [:]
    /// For each writer, the number of saves that a crash must not lose.
    private(set) var required: [Int: Int] = [:]
    /// Acknowledged copies, with the saves that they must have.
    private(set) var copies: [String: [Int: Int]] = [:]
    /// The version of the model that the last successful open has put into force.
    private(set) var version = 0
    /// Errors of a worker that continued.
    private(set) var failures: [String] = []
    /// The number of saves that had been accepted when a writer's save or flush, or a copy, began.
    private var before: [String: [Int: Int]] = [:]
    /// The writer being killed. Its deferred saves may be lost, and saves of other writers no longer wait for them.
    private var dying: Int?
    private var rest = ""

    /// Reads the bytes that were appended to the file.
    mutating func take(_ bytes: some Collection<UInt8>) {
        rest += String(decoding: bytes, as: UTF8.self)
        while let end = rest.firstIndex(of: "\n") {
            take(line: rest[..<end].split(separator: " ").map(String.init))
            rest = String(rest[rest.index(after: end)...])
        }
    }

    private mutating func take(line words: [String]) {
        let writer = words.count > 1 ? Int(words[1]) ?? 0 : 0
        let number = words.count > 2 ? Int(words[2]) ?? 0 : 0
        switch words.first {
        case "start":
            started[writer] = number + 1
            before["\(writer)"] = accepted
        case "deferred": accepted[writer] = number + 1
        case "durable":
            accepted[writer] = number + 1
            // A durable save follows all saves of every writer that had returned before it began.
            require(before["\(writer)"] ?? [:], by: writer)
            require([writer: number + 1], by: writer)
        // With nothing pending, a flush returns without a commit, which would wait for other processes.
        case "flush": before["\(writer)"] = accepted.filter { $0.key == writer }
        case "flushed": require(before["\(writer)"] ?? [:], by: writer)
        case "copy": before[words[1]] = accepted
        case "copied": copies[words[1]] = before[words[1]] ?? [:]
        case "version": version = writer
        case "failed": failures.append(words.dropFirst().joined(separator: " "))
        default: break
        }
    }

    /// A writer is about to be killed. Until it restarts, only the saves that it acknowledges itself are required of it.
    mutating func willKill(_ writer: Int) { dying = writer }

    /// Continues after a crash. The saves that are there count as acknowledged, and the writer's next save follows them.
    mutating func restart(_ writer: Int, at saves: Int) {
        dying = nil
        started[writer] = saves
        accepted[writer] = saves
        required[writer] = saves
        before["\(writer)"] = nil
        // Saves that other writers began in the meantime do not require the lost saves of the killed writer.
        for other in before.keys where before[other]?[writer] ?? 0 > saves { before[other]?[writer] = saves }
    }

    private mutating func require(_ saves: [Int: Int], by writer: Int) {
        let sure = saves.filter { $0.key != dying || $0.key == writer }
        required.merge(sure) { max($0, $1) }
    }
}
