import Foundation
import ObjectGraph
import StoreInterface
import TestSupport
import Testing

/// Two processes that take the steps of one sequence on one file.
///
/// With an even seed they take the steps in turns, so that the result depends on the seed only. With an odd seed each takes its own steps
/// as fast as it can.
struct TwoProcesses {
    let kind: StoreKind
    let seed: UInt64
    /// The number of steps of both together.
    let count: Int
    /// Whether the processes report tracks as faults. This tests the shrinking.
    let isCheckWrong: Bool
    /// Whether a run has saved anything.
    private(set) var hasSaved = false

    init(kind: StoreKind, seed: UInt64, count: Int, isCheckWrong: Bool = false) {
        (self.kind, self.seed, self.count, self.isCheckWrong) = (kind, seed, count, isCheckWrong)
    }

    private var takesTurns: Bool { seed.isMultiple(of: 2) }

    /// A wrong check, for tests of the shrinking: returns a fault if there is a track.
    @Sendable static func trackFault(in context: ManagedObjectContext) throws -> String? {
        try context.objects("Track").isEmpty ? nil : "there is a track"
    }

    /// Runs the whole sequence. If it fails, runs parts of it, and returns the shortest that fails. Unless the processes take turns, each part
    /// is tried three times, because it may fail in some runs only.
    mutating func shortestFailure() async -> String? {
        let steps = IntegrityStep.sequence(count, seed: seed, processes: 2)
        let processes = self
        var (tries, hasSaved) = (1, false)
        defer { self.hasSaved = hasSaved }
        let place = "\(kind), two processes \(takesTurns ? "in turns" : "at once")"
        return await Shrinking.failure(of: steps, seed: seed, on: place) { steps in
            for _ in 0..<tries {
                guard let fault = try await processes.fault(of: steps, &hasSaved) else { continue }
                tries = processes.takesTurns ? 1 : 3
                return fault
            }
            return nil
        }
    }

    private func fault(of steps: [IntegrityStep], _ hasSaved: inout Bool) async throws -> String? {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = steps.map(\.number)
        await WaitingProcesses.run {
            async let first: Void = self.run(0, numbers, in: bed.folder)
            async let second: Void = self.run(1, numbers, in: bed.folder)
            _ = await (first, second)
        }
        for process in 0..<2 {
            let files = Files(folder: bed.folder, process: process)
            guard let end = files.read(.end) else { return "process \(process) ended before its last step" }
            if !end.isEmpty { return "process \(process) \(end)" }
        }
        let run = await IntegrityRun(container, check: isCheckWrong ? Self.trackFault : IntegrityExplorer.fault)
        if let fault = try await run.finalFault() { return fault }
        hasSaved = try hasSaved || container.coordinator.store.snapshot().generation > 0
        return nil
    }

    /// Runs one of the processes. The exit status is ignored: after a crash the file of its end is missing, which counts as a failure.
    private func run(_ process: Int, _ numbers: [Int], in folder: URL) async {
        await withKnownIssue(isIntermittent: true) {
            await #expect(processExitsWith: .success) {
                [
                    name = kind.rawValue as String, seed = seed as UInt64, count = count as Int,
                    isCheckWrong = isCheckWrong as Bool, process = process as Int, numbers = numbers as [Int],
                    folder = folder as URL
                ] in
                let kind = try #require(StoreKind(rawValue: name))
                let processes = TwoProcesses(kind: kind, seed: seed, count: count, isCheckWrong: isCheckWrong)
                await processes.takePart(process, Set(numbers), in: folder)
            }
        }
        Files(folder: folder, process: process).write(.exit)
    }

    /// Takes the steps of this process, and writes down the first fault.
    private func takePart(_ process: Int, _ numbers: Set<Int>, in folder: URL) async {
        let files = Files(folder: folder, process: process)
        do {
            let steps = IntegrityStep.sequence(count, seed: seed, processes: 2).filter { numbers.contains($0.number) }
            files.write(.end, try await fault(process, steps, files) ?? "")
        } catch {
            files.write(.end, "threw an error that no step expects: \(error)")
        }
    }

    private func fault(_ process: Int, _ steps: [IntegrityStep], _ files: Files) async throws -> String? {
        let container = try await TestBed(kind, in: files.folder).container()
        var run = await IntegrityRun(container, check: isCheckWrong ? Self.trackFault : IntegrityExplorer.fault)
        for (turn, step) in steps.enumerated() where step.process == process {
            // The other process has failed if it ends before this turn.
            if takesTurns, turn > 0, try await !files.waitForTurn(turn) { return nil }
            if let fault = try await run.take(step) { return fault }
            files.write(.turn(turn + 1))
        }
        try await container.flush()
        return nil
    }

    /// The files in which each process records its progress, for the other process and the test.
    private struct Files {
        enum Name {
            /// The step before this turn was taken.
            case turn(Int)
            /// The process has ended its part. The content is a fault, or empty.
            case end
            /// The process has exited.
            case exit
        }

        let folder: URL
        let process: Int

        private func url(_ name: Name, of process: Int) -> URL {
            switch name {
            case .turn(let turn): folder.appendingPathComponent("turn-\(turn)")
            case .end: folder.appendingPathComponent("end-\(process)")
            case .exit: folder.appendingPathComponent("exit-\(process)")
            }
        }

        func write(_ name: Name, _ text: String = "") {
            try? text.write(to: url(name, of: process), atomically: true, encoding: .utf8)
        }

        func read(_ name: Name) -> String? { try? String(contentsOf: url(name, of: process), encoding: .utf8) }

        private func exists(_ name: Name, of process: Int) -> Bool {
            FileManager.default.fileExists(atPath: url(name, of: process).path)
        }

        /// Waits until the step before this turn was taken. Returns false if the other process exits before.
        func waitForTurn(_ turn: Int) async throws -> Bool {
            while !exists(.turn(turn), of: process) {
                if exists(.exit, of: 1 - process) { return exists(.turn(turn), of: process) }
                try await Task.sleep(for: .milliseconds(1))
            }
            return true
        }
    }
}
