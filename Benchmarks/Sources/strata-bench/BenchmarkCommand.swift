import ArgumentParser
import Datasets
import Figures
import Foundation
import Workloads

/// A command that measures.
protocol BenchmarkCommand: ParsableCommand, Sendable {
    var options: BenchmarkOptions { get }
    /// The options that this command reads, of those that not every command reads.
    static var read: Set<OptionUse> { get }
    /// Throws `ValidationError` if the options do not fit together.
    func check() throws
    /// Runs the measurements. Returns the report's rows, and notes to print with them.
    func measure() async throws -> (rows: [Report.Row], notes: [String])
}

extension BenchmarkCommand {
    func validate() throws {
        try options.refuse(allBut: Self.read, in: Self._commandName)
        try check()
    }

    func check() throws {}

    /// Runs the command with valid options. Throws ``WrongInput`` for data that cannot be read, and ``FailedRun`` for any other
    /// error.
    func runBenchmark() async throws {
        do {
            let (rows, notes) = try await measure()
            let report = Report(
                machine: Machine(libraries: Libraries.versions), notes: notes + Self.notes(onFilesIn: .temporaryDirectory),
                runs: rows)
            // The files first: the reader of a pipe can end the program.
            let written = Result { try write(report) }
            let text = report.text(options.markdown ? .markdown : .terminal) + "\n"
            do { try FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) } catch {
                throw FailedRun(description: "cannot write the report: \(error). Write it to a place with free space")
            }
            try written.get()
        } catch let error as WrongInput {
            throw error
        } catch let error as FailedRun {
            throw error
        } catch let error as DatasetError {
            throw WrongInput(description: error.description)
        } catch {
            throw FailedRun(description: "\(Self._commandName): \(error)")
        }
    }

    /// Returns a note for the report if a folder is in memory, where a durable save needs no sync.
    static func notes(onFilesIn folder: URL) -> [String] {
        guard Machine.isInMemory(folder) else { return [] }
        return [
            "\(folder.path) is in memory (tmpfs): syncs cost nothing there, and durable saves are as fast as deferred ones. For the figures "
                + "of a disk, set TMPDIR to a folder on it."
        ]
    }

    private func write(_ report: Report) throws {
        if let path = options.json { try report.json().write(to: URL(filePath: path)) }
        if let path = options.html {
            try Data(report.html(title: "strata-bench \(Self._commandName)").utf8).write(to: URL(filePath: path))
        }
    }

    /// Runs a workload in every requested configuration.
    func rows(_ workload: some Workload) async throws -> [Report.Row] {
        let settings = try options.settings()
        let progress = ProgressBar(steps: settings.count * options.repeatsOrUsual, style: options.progressStyle)
        defer { progress.finish() }
        return try await WorkloadRunner(settings: settings, repeats: options.repeatsOrUsual, progress: progress).rows(workload)
    }

    /// Returns the notes that all reports have in common.
    func commonNotes() throws -> [String] {
        [
            "Files are new in each run, the process is warm from the second repeat on. Medians of \(options.repeatsOrUsual), settings alternate; "
                + "\(try options.durabilityKind().rawValue) saves. Main busy: time in which the main executor could not take a new "
                + "job. Jobs back to back count as one stall, and each stall is taken to begin with a frame: upper bounds. / siblings, "
                + "/ field: the total by that of siblings on the same store, and by that of the same stack on SQLite through its ancestors. "
                + "Every run was checked after a fresh open: all values, all relationships from both ends."
        ]
    }
}
