import Foundation
import TestSupport

/// Crashes stores in processes of their own. `make test-power` and `make test-kill` run it. See `usage`.
@main struct CrashRuns {
    static let usage = """
        crash-runs power RECORDER LOGS [states=300] [seed=N] [workload=NAME] [store=NAME] [forgets=N]
        crash-runs check WORKLOAD STORE SEED LOG CUTS FIRST [ONLY]
        crash-runs kill [kills=60] [seed=N] [store=NAME] [processes=1|2]
        """

    static func main() async {
        do {
            guard try await run(Array(CommandLine.arguments.dropFirst())) else { exit(1) }
        } catch {
            report("crash-runs: \(error)")
            exit(2)
        }
    }

    private static func run(_ arguments: [String]) async throws -> Bool {
        let options = Options(arguments)
        switch options.words.first {
        case "power": return try power(options).run()
        case "record":
            try await run(options).record(in: URL(fileURLWithPath: try options.word(5)))
            return true
        case "check":
            let only = options.words.count > 7 ? Int(options.words[7]) : nil
            try await run(options).check(try options.number(5), from: try options.number(6), only: only)
            return true
        case "kill": return try await kill(options).run()
        case "work":
            guard let kind = StoreKind(rawValue: try options.word(1)), let seed = UInt64(try options.word(2)) else {
                throw CrashRunError("no such store or seed")
            }
            let place = StorePlace(kind: kind, folder: URL(fileURLWithPath: try options.word(4)))
            try await KilledWorker(place: place, seed: seed, writer: try options.number(3)).run()
            return true
        default: throw CrashRunError("usage:\n\(usage)")
        }
    }

    private static func run(_ options: Options) throws -> PowerRun {
        guard let workload = Workload(rawValue: try options.word(1)), let kind = StoreKind(rawValue: try options.word(2)),
            let seed = UInt64(try options.word(3))
        else { throw CrashRunError("no such workload, store or seed") }
        return PowerRun(workload: workload, kind: kind, seed: seed, log: URL(fileURLWithPath: try options.word(4)))
    }

    private static func kill(_ options: Options) -> KillCommand {
        var command = KillCommand()
        if let kills = options.values["kills"].flatMap({ Int($0) }) { command.kills = kills }
        if let seed = options.values["seed"].flatMap({ UInt64($0) }) { command.seed = seed }
        if let kind = options.values["store"].flatMap({ StoreKind(rawValue: $0) }) { command.kinds = [kind] }
        if let processes = options.values["processes"].flatMap({ Int($0) }) { command.processes = [processes] }
        return command
    }

    private static func power(_ options: Options) throws -> PowerCommand {
        var command = PowerCommand(
            recorder: URL(fileURLWithPath: try options.word(1)), logs: URL(fileURLWithPath: try options.word(2)))
        if let states = options.values["states"].flatMap({ Int($0) }) { command.states = states }
        command.forgets = options.values["forgets"].flatMap { Int($0) }
        if let seed = options.values["seed"].flatMap({ UInt64($0) }) { command.seed = seed }
        if let workload = options.values["workload"].flatMap({ Workload(rawValue: $0) }) { command.workloads = [workload] }
        if let kind = options.values["store"].flatMap({ StoreKind(rawValue: $0) }) { command.kinds = [kind] }
        return command
    }
}

/// The words of a command line, and its `name=value` pairs.
struct Options {
    var words: [String] = []
    var values: [String: String] = [:]

    init(_ arguments: [String]) {
        for argument in arguments {
            if let sign = argument.firstIndex(of: "="), sign != argument.startIndex {
                values[String(argument[..<sign])] = String(argument[argument.index(after: sign)...])
            } else {
                words.append(argument)
            }
        }
    }

    func word(_ position: Int) throws -> String {
        guard position < words.count else { throw CrashRunError("usage:\n\(CrashRuns.usage)") }
        return words[position]
    }

    func number(_ position: Int) throws -> Int {
        guard let number = Int(try word(position)) else { throw CrashRunError("\(try word(position)) is no number") }
        return number
    }
}

/// Prints a line at once, because a buffered line would be lost in a crash.
func report(_ line: String) {
    let line = line + "\n"
    _ = write(STDOUT_FILENO, line, line.utf8.count)
}
