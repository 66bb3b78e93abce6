import ArgumentParser
import Figures
import StoreInterface
import Workloads

struct CompactionCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "compaction", abstract: "The size of a file after packing and copying, against SQLite after VACUUM.")

    @OptionGroup var options: BenchmarkOptions

    @Option(help: ArgumentHelp("How hard to pack: fast or usual.", valueName: "kind"))
    var effort = "usual"

    @Flag(help: "One table of records without indexes, as in storage, instead of a library.")
    var records = false

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        let efforts: [String: CompactionOptions.Effort] = ["fast": .fast, "usual": .usual]
        guard let effort = efforts[effort] else {
            throw WrongInput(description: "--effort \(effort): no such name; known are fast, usual")
        }
        let compacting =
            records
            ? Compacting(records: options.objects ?? 100_000, seed: options.seed, effort: effort)
            : Compacting(try options.dataset(), effort: effort)
        let progress = ProgressBar(steps: 2, style: options.progressStyle)
        defer { progress.finish() }
        return try await compacting.rows(progress: progress)
    }
}
