import Foundation
import TestSupport

/// `crash-runs power`: records workloads in processes of their own and checks the states of simulated power cuts in others.
struct PowerCommand {
    /// The number of states over all workloads and stores.
    var states = 300
    var seed = Seed.value
    var workloads = Workload.allCases
    var kinds: [StoreKind] = [.lmdb, .sqlite]
    /// The library that records the writes.
    var recorder: URL
    /// The folder for the logs of runs with findings.
    var logs: URL
    /// Leaves out every n-th sync, to prove that a missing sync is detected.
    var forgets: Int?
    /// The number of cuts of one recorded run.
    var cutsOfRun = 150

    struct Outcome {
        var states = 0
        var repeated = 0
        var findings: [String] = []
    }

    /// - Returns: Whether there are no findings. If syncs are left out, whether there are some.
    func run() throws -> Bool {
        try FileManager.default.createDirectory(at: logs, withIntermediateDirectories: true)
        report("power cuts: \(states) states, seed \(seed)")
        let share = (states + workloads.count * kinds.count - 1) / (workloads.count * kinds.count)
        var all = Outcome()
        for kind in kinds {
            for workload in workloads {
                let outcome = try run(workload, kind, states: share)
                report(
                    "  \(kind) \(workload): \(outcome.states) states (\(outcome.repeated) more were the same as another), \(outcome.findings.count) findings"
                )
                if forgets == nil { for line in Self.summary(outcome.findings) { report("    \(line)") } }
                all.states += outcome.states
                all.findings += outcome.findings
            }
        }
        report("power cuts: \(all.states) states checked, \(all.findings.count) findings, seed \(seed)")
        guard let forgets else { return all.findings.isEmpty }
        report("every \(forgets). sync was left out: that \(all.findings.isEmpty ? "was not noticed" : "was noticed")")
        return !all.findings.isEmpty
    }

    /// Returns one finding of each kind, with the number of its findings. Kinds differ in more than paths and numbers.
    private static func summary(_ findings: [String]) -> [String] {
        var kinds: [String: (first: String, count: Int)] = [:]
        for finding in findings {
            let words = finding.prefix { $0 != "[" }.split(separator: " ").filter { word in
                !word.contains { $0 == "/" || $0.isNumber }
            }
            kinds[words.joined(separator: " "), default: (finding, 0)].count += 1
        }
        return kinds.sorted { $0.key < $1.key }.map { "\($1.count) times: \($1.first)" }
    }

    /// Records runs of a workload until enough different states have been checked.
    private func run(_ workload: Workload, _ kind: StoreKind, states: Int) throws -> Outcome {
        var outcome = Outcome()
        var round: UInt64 = 0
        while outcome.states < states, round < 1000 {
            let seed = seed &+ round
            round += 1
            let log = logs.appendingPathComponent("\(kind)-\(workload)-\(seed).log")
            let cuts = min(cutsOfRun, max(20, (states - outcome.states) * 5 / 4))
            let before = outcome.findings.count
            try record(workload, kind, seed, log, &outcome)
            if outcome.findings.count == before { try check(workload, kind, seed, log, cuts: cuts, &outcome) }
            // Findings that are wanted need no log.
            if outcome.findings.count == before || forgets != nil { try? FileManager.default.removeItem(at: log) }
            // A run with findings needs no further runs.
            if outcome.findings.count > 20 { break }
        }
        return outcome
    }

    private func record(_ workload: Workload, _ kind: StoreKind, _ seed: UInt64, _ log: URL, _ outcome: inout Outcome) throws {
        let scratch = try ScratchFolder()
        let folder = try scratch.make()
        try? FileManager.default.removeItem(at: log)
        var environment = [
            "LD_PRELOAD": recorder.path, "STRATA_RECORD_FOLDER": folder.path, "STRATA_RECORD_LOG": log.path,
        ]
        environment["STRATA_RECORD_FORGETS"] = forgets.map(String.init)
        let child = try Child(
            ["record", workload.rawValue, kind.rawValue, "\(seed)", log.path, folder.path], environment: environment)
        let (output, status) = child.finish()
        if status != 0 {
            outcome.findings.append("recording \(workload) with seed \(seed) ended with status \(status): \(output.suffix(2000))")
        }
    }

    private func check(
        _ workload: Workload, _ kind: StoreKind, _ seed: UInt64, _ log: URL, cuts: Int, _ outcome: inout Outcome
    ) throws {
        var next = 0
        while next < cuts {
            let child = try Child(["check", workload.rawValue, kind.rawValue, "\(seed)", log.path, "\(cuts)", "\(next)"])
            let (output, status) = child.finish()
            var begun: String?
            for line in output.split(separator: "\n").map(String.init) {
                let words = line.split(separator: " ", maxSplits: 2).map(String.init)
                switch words.first {
                case "state":
                    begun = line
                    outcome.states += 1
                    next = (Int(words[1]) ?? next) + 1
                case "same": outcome.repeated += 1
                case "finding":
                    outcome.findings.append(
                        "\(line) [\(begun ?? "")]; again: crash-runs check \(workload) \(kind) \(seed) \(log.path) \(cuts) 0 \(words[1])"
                    )
                case "done": begun = nil
                default: break
                }
            }
            if status == 0 { return }
            outcome.findings.append(
                "a check ended with status \(status) at \(begun ?? "its end"): \(output.suffix(500)); log \(log.path), \(cuts) cuts"
            )
            if begun == nil { return }
        }
    }
}

/// Another instance of this program in a process of its own.
final class Child {
    private let process = Process()
    private let pipe = Pipe()

    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = arguments
        var all = ProcessInfo.processInfo.environment
        // A backtrace of a debug build takes minutes.
        all["SWIFT_BACKTRACE"] = "enable=no"
        process.environment = all.merging(environment) { $1 }
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
    }

    /// Kills the process and waits for its end.
    /// - Returns: The output of the process.
    func kill() -> String {
        _ = Foundation.kill(process.processIdentifier, SIGKILL)
        return finish().output
    }

    /// Waits for the end of the process. The status is negative for a signal.
    func finish() -> (output: String, status: Int32) {
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let status = process.terminationStatus
        return (String(decoding: output, as: UTF8.self), process.terminationReason == .uncaughtSignal ? -status : status)
    }
}
