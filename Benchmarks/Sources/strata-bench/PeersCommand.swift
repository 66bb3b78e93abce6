import ArgumentParser
import Figures

#if STRATA_PEERS
    import Peers
#endif

/// Needs GRDB and the macros, which take minutes to compile. They are in the manifest if STRATA_PEERS is set.
struct PeersCommand: BenchmarkCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers", abstract: "Typed models against GRDB's records: import, reads, updates, a live list.")

    static let read: Set<OptionUse> = [.durability, .objects, .saveEvery, .seed, .repeats]

    @OptionGroup var options: BenchmarkOptions

    func measure() async throws -> (rows: [Report.Row], notes: [String]) {
        #if STRATA_PEERS
            let progress = ProgressBar(steps: 2 * options.repeatsOrUsual, style: options.progressStyle)
            defer { progress.finish() }
            let peers = Peers(
                objects: options.objects ?? 100_000, seed: options.seedOrUsual, saveEvery: options.saveEvery ?? 500,
                durability: try options.durabilityKind())
            let rows = try await peers.rows(repeats: options.repeatsOrUsual, progress: progress)
            return (
                rows,
                [
                    "GRDB \(Peers.grdbVersion): Codable records in a DatabasePool, WAL, synchronous=FULL (NORMAL if deferred), one "
                        + "transaction per save and per group of reads; grdb-sql: with SQL by hand in cached statements. Sides alternate; "
                        + "medians of \(options.repeatsOrUsual). Reads run on main. The live list has 50 rows. Its saves are 20 ms apart, because "
                        + "Strata collects changes that follow within a frame. Each operation's result was checked, and after a fresh "
                        + "open all values."
                ]
            )
        #else
            throw WrongInput(
                description: "peers: this strata-bench was built without GRDB and macros. Run `make peers`, which builds both.")
        #endif
    }
}
