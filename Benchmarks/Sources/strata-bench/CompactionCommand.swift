import ArgumentParser
import Datasets
import Figures
import StoreInterface
import Workloads

struct CompactionCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "compaction", abstract: "The size of a file after packing and copying, against SQLite after VACUUM.")

    static let read: Set<OptionUse> = [.objects, .input, .seed]

    @OptionGroup var options: BenchmarkOptions

    @Option(help: ArgumentHelp("How hard to pack: fast or usual.", valueName: "kind"))
    var effort = "usual"

    @Flag(help: "One table of records without indexes, as in storage, instead of a library.")
    var records = false

    func check() throws {
        _ = try packing()
        try options.refuseGeneratorWithInput()
        if records, options.input != nil { throw ValidationError("--records: generates its data; leave out this or --input") }
    }

    private func packing() throws -> CompactionOptions.Effort {
        switch effort {
        case "fast": .fast
        case "usual": .usual
        default: throw BenchmarkOptions.unknown("--effort", effort, among: ["fast", "usual"])
        }
    }

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let compacting =
            records
            ? Compacting(records: options.objects ?? 100_000, seed: options.seedOrUsual, effort: try packing())
            : Compacting(try options.dataset(), effort: try packing())
        let progress = ProgressBar(steps: 2, style: options.progressStyle)
        defer { progress.finish() }
        return try await compacting.rows(progress: progress)
    }
}
