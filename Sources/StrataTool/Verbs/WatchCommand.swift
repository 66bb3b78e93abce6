import ArgumentParser
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata watch`: a query whose result is shown again when it changes.
struct WatchCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Shows the result of a query, and again after each save that changes it.",
        discussion: "Conditions are those of `strata query`. Ends when it is interrupted, or after --times results.")

    @OptionGroup var query: QueryOptions

    @Option(parsing: .unconditional, help: "End after this number of results.")
    var times: Int?

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        if let times, times < 1 { throw ValidationError("--times is a number from 1") }
    }

    mutating func run() async throws {
        let options = self
        try await OpenedStore.with(query.file) { store in
            let coordinator = store.container.coordinator
            let query = try Query(options.query, in: store)
            // Begin to watch before the first read, so that no save is missed between the two.
            let changes = coordinator.remoteChanges
            try coordinator.followOtherProcesses()
            var rows = try await store.read { try $0.fetch(query.values).map(\.values) }
            try options.show(rows, query)
            var shown = 1
            if shown == options.times { return }
            for await _ in changes {
                let newer = try await store.read { try $0.fetch(query.values).map(\.values) }
                if Self.areEqual(newer, rows) { continue }
                rows = newer
                try options.show(rows, query)
                shown += 1
                if shown == options.times { return }
            }
        }
    }

    /// Whether two results show the same. As a value, NaN equals nothing.
    static func areEqual(_ a: [[Value]], _ b: [[Value]]) -> Bool {
        a.count == b.count && zip(a, b).allSatisfy { zip($0, $1).allSatisfy { $0.order($1) == 0 } }
    }

    private func show(_ rows: [[Value]], _ query: Query) throws {
        if output.json { return try Console.print(query.json(rows).text) }
        try Console.print(query.table(rows) + "\n")
    }
}
