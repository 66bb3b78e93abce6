import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// `crash-runs kill`: kills workers that save, one or two at a time on one file. The file is compared with their
/// acknowledgements while the other worker continues.
struct KillCommand {
    var kills = 60
    var seed = Seed.value
    var kinds: [StoreKind] = [.lmdb, .sqlite]
    var processes = [1, 2]
    /// The number of kills before a new file is begun. Checks take longer as a file grows.
    private let killsOfFile = 20

    /// - Returns: Whether there are no findings.
    func run() async throws -> Bool {
        report("kills: \(kills), seed \(seed)")
        let share = (kills + kinds.count * processes.count - 1) / (kinds.count * processes.count)
        var (all, found) = (0, 0)
        for kind in kinds {
            for count in processes {
                var (done, whileSaving, findings) = (0, 0, [String]())
                var round: UInt64 = 0
                while done < share, findings.count < 10 {
                    var file = try KillFile(kind: kind, processes: count, seed: seed &+ round)
                    findings += try await file.run(min(killsOfFile, share - done)).map { "seed \(seed &+ round): \($0)" }
                    done += file.kills
                    whileSaving += file.killsWhileSaving
                    round += 1
                }
                report(
                    "  \(kind), \(count) processes: \(done) kills, \(whileSaving) of workers that had saved, \(findings.count) findings"
                )
                for finding in findings.prefix(10) { report("    \(finding)") }
                all += done
                found += findings.count
            }
        }
        report("kills: \(all), \(found) findings, seed \(seed)")
        return found == 0
    }
}

/// The kills of workers on one file.
struct KillFile {
    private let place: StorePlace
    private let scratch: ScratchFolder
    private let seed: UInt64
    private let processes: Int
    private var random: SeededGenerator
    private var promised = Acknowledgements()
    private var read = 0
    /// For each writer, the state that the last check has found.
    private var found: [Library]
    private(set) var kills = 0
    private(set) var killsWhileSaving = 0

    init(kind: StoreKind, processes: Int, seed: UInt64) throws {
        scratch = try ScratchFolder()
        place = StorePlace(kind: kind, folder: try scratch.make())
        self.seed = seed
        self.processes = processes
        random = SeededGenerator(seed: seed)
        found = (0..<processes).map { Library(seed: seed, writer: $0, largestPayload: KilledWorker.largestPayload) }
    }

    mutating func run(_ count: Int) async throws -> [String] {
        try await place.withContainer(.first) { container in
            let context = container.coordinator.newBackgroundContext(name: "start")
            await context.perform { $0.insert("Writer")["number"] = .int(Int64(LibraryModel.sharedWriter)) }
            try await context.save(.durable)
        }
        var workers = try (0..<processes).map(start)
        defer { for worker in workers { _ = worker.kill() } }
        var findings: [String] = []
        for _ in 0..<count where findings.isEmpty {
            let victim = Int.random(in: 0..<processes, using: &random)
            let before = promised.accepted[victim] ?? 0
            // One worker in four is killed while it starts.
            if Int.random(in: 0..<4, using: &random) > 0 { try await waitForSave(victim) }
            try await Task.sleep(for: .microseconds(Int.random(in: 0...40_000, using: &random)))
            try readAcknowledgements()
            promised.willKill(victim)
            let output = workers[victim].kill()
            kills += 1
            if !output.isEmpty { findings.append("writer \(victim) printed: \(output.suffix(1500))") }
            try readAcknowledgements()
            if promised.accepted[victim] ?? 0 > before { killsWhileSaving += 1 }
            do { findings += try await check(victim) } catch { findings.append("\(error)") }
            findings += promised.failures
            if findings.isEmpty { workers[victim] = try start(victim) }
        }
        return findings
    }

    private func start(_ writer: Int) throws -> Child {
        try Child(["work", place.kind.rawValue, "\(seed)", "\(writer)", place.folder.path])
    }

    /// Returns when a save of the writer has returned since it was started, or after a long time.
    private mutating func waitForSave(_ writer: Int) async throws {
        let before = promised.accepted[writer] ?? 0
        for _ in 0..<2000 {
            try readAcknowledgements()
            if promised.accepted[writer] ?? 0 > before || !promised.failures.isEmpty { return }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Reads the acknowledgements written since the last call.
    private mutating func readAcknowledgements() throws {
        guard let all = try? Data(contentsOf: place.folder.appendingPathComponent(AcknowledgementFile.name)) else { return }
        promised.take(all.dropFirst(read))
        read = all.count
    }

    /// Compares the file with the acknowledgements. The other writer may continue meanwhile.
    private mutating func check(_ victim: Int) async throws -> [String] {
        let required = promised.required
        let (libraries, findings) = try await place.withContainer(.first) { [found] container in
            var findings = try container.coordinator.store.verify().map { "verify: \($0)" }
            let context = container.coordinator.newBackgroundContext(name: "check")
            let (libraries, differences, sum) = try await context.perform { context in
                var (libraries, differences) = (found, [String]())
                for writer in libraries.indices {
                    let saves = try context.saves(of: writer)
                    while libraries[writer].saves < saves { _ = libraries[writer].advance() }
                    if libraries[writer].saves > saves { differences.append("writer \(writer) is back at \(saves) saves") }
                    differences += try context.differences(from: libraries[writer], as: .first)
                        .map { "writer \(writer) after \(saves) saves: \($0)" }
                }
                return (libraries, differences, try context.saves(of: LibraryModel.sharedWriter))
            }
            findings += differences
            let saves = libraries.map(\.saves)
            if sum != saves.reduce(0, +) { findings.append("the shared counter is \(sum) after \(saves) saves: a lost update") }
            for (writer, saves) in saves.enumerated() where saves < required[writer] ?? 0 {
                findings.append("writer \(writer): \(required[writer] ?? 0) saves were acknowledged, \(saves) are there")
            }
            return (libraries, findings)
        }
        found = libraries
        // Includes saves that the other writer has begun meanwhile.
        try readAcknowledgements()
        var all = findings
        for (writer, saves) in found.map(\.saves).enumerated() where saves > promised.started[writer] ?? 0 {
            all.append("writer \(writer): \(saves) saves are there, \(promised.started[writer] ?? 0) had begun")
        }
        promised.restart(victim, at: found[victim].saves)
        return all
    }
}
