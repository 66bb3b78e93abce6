import Datasets
import Figures
import Workloads

/// Compares Strata's typed models with GRDB's records, which a Swift developer on Linux would otherwise use. The sides alternate.
public struct Peers: Sendable {
    /// The version in the manifest. GRDB does not tell its own.
    public static let grdbVersion = "7.10.0"

    let tracks: [TrackData]
    let saveEvery: Int
    let durability: DurabilityKind
    /// The random rows that are read and updated.
    let picks: [Int]
    let selections: [TrackSelection]
    /// The rows that are moved to the top of the list, in this order.
    let promoted: [Int]
    var expected: PeerExpectation

    /// - Parameter refreshes: How often the list on main is changed.
    public init(objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind, refreshes: Int = 50) {
        tracks = TrackData.make(objects, seed: seed)
        self.saveEvery = saveEvery
        self.durability = durability
        var random = SeededNumbers(seed: seed &+ 1)
        picks = (0..<min(objects, 20_000)).map { _ in random.below(objects) }
        let starts = max(1, objects * TrackData.playCountStep - TrackSelection.width)
        selections = (0..<100).map { _ in
            TrackSelection(least: random.below(starts), genre: random.below(TrackData.genres))
        }
        promoted = (0..<refreshes).map { _ in random.below(objects) }
        expected = PeerExpectation(tracks, picks: picks, selections: selections)
    }

    /// Returns one row per operation and engine.
    public func rows(repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        var runs: [PeerFigures] = []
        for _ in 0..<repeats {
            progress.step("peers: strata")
            runs.append(try await run(StrataPeer.self))
            progress.step("peers: grdb")
            runs.append(try await run(GRDBPeer.self))
        }
        return PeerOperation.allCases.flatMap { operation in
            PeerEngine.allCases.compactMap { row(operation, engine: $0, runs: runs) }
        }
    }

    private func row(_ operation: PeerOperation, engine: PeerEngine, runs: [PeerFigures]) -> Report.Row? {
        let costs = runs.compactMap { $0.costs[engine]?[operation] }
        guard !costs.isEmpty else { return nil }
        var row = Report.Row(benchmark: "peers", durability: durability.rawValue, objects: tracks.count, verified: true)
        row.operation = operation.rawValue
        row.engine = engine.rawValue
        row.store = engine == .strata ? "lmdb" : "sqlite"
        row.saveEvery = saveEvery
        row.nanosecondsPerObject = Spread(costs)
        if operation == .importing {
            row.fileBytes = runs.filter { $0.costs[engine] != nil }.map(\.fileBytes).max()
        }
        return row
    }

    // MARK: One run

    /// Runs all operations in a new file, and checks the values of the reopened file.
    func run<P: Peer>(_ type: P.Type) async throws -> PeerFigures {
        let folder = try RunFolder()
        let path = folder.path("tracks")
        let peer = try await P(path: path, durability: durability)
        let engine = peer.forms[0].engine
        let figures = try await work(peer, engine: engine, in: folder)
        let stored = expected.stored(picks: picks, raises: peer.forms.count, promoted: promoted)
        try await peer.close()
        let reopened = try await P(path: path, durability: durability)
        let (found, wanted) = (try await reopened.contents(), ContentSum(stored))
        try await reopened.close()
        guard found == wanted else {
            throw VerificationError(
                "peers, \(engine.rawValue): other values in the file than were written; \(found.tracks) tracks with checksum "
                    + "\(found.sum), expected \(wanted.tracks) with \(wanted.sum)")
        }
        return figures
    }

    private func work<P: Peer>(_ peer: P, engine: PeerEngine, in folder: RunFolder) async throws -> PeerFigures {
        var figures = PeerFigures()
        let (keys, nanoseconds) = try await insert(peer)
        figures.costs[engine, default: [:]][.importing] = nanoseconds
        figures.fileBytes = folder.fileBytes()
        let picked = picks.map { keys[$0] }
        for (engine, form) in peer.forms {
            figures.costs[engine, default: [:]][.read] = try await onMain(
                engine, operation: .read, count: picks.count, expected: expected.digest
            ) { try form.read(picked) }
            figures.costs[engine, default: [:]][.readProperty] = try await onMain(
                engine, operation: .readProperty, count: picks.count, expected: expected.playCounts
            ) { try form.readPlayCounts(picked) }
        }
        figures.costs[engine]?[.fetch] = try await onMain(
            engine, operation: .fetch, count: max(1, expected.fetched), expected: expected.fetch
        ) { try peer.fetch(selections) }
        figures.costs[engine]?[.count] = try await onMain(
            engine, operation: .count, count: Self.repetitions * tracks.count, expected: expected.counted
        ) { try Self.repeated { try peer.count() } }
        figures.costs[engine]?[.totals] = try await onMain(
            engine, operation: .totals, count: Self.repetitions * tracks.count, expected: expected.totals
        ) { try Self.repeated { Set(try peer.totals()) } }
        for (engine, form) in peer.forms {
            figures.costs[engine]?[.update] = try await update(form, picked)
        }
        figures.costs[engine]?[.refresh] = try await refresh(peer, engine: engine, keys: keys)
        return figures
    }

    /// Imports the tracks. Returns their keys, and the nanoseconds per track.
    private func insert<P: Peer>(_ peer: P) async throws -> (keys: [P.Key], nanoseconds: Double) {
        var keys: [P.Key] = []
        keys.reserveCapacity(tracks.count)
        let start = Clock.now()
        for first in stride(from: 0, to: tracks.count, by: saveEvery) {
            keys += try await peer.insert(tracks[first..<min(tracks.count, first + saveEvery)])
        }
        if durability == .deferred { try await peer.flush() }
        return (keys, Double(Clock.now() - start) / Double(tracks.count))
    }

    private func update<P: Peer>(_ peer: P, _ picked: [P.Key]) async throws -> Double {
        let start = Clock.now()
        for first in stride(from: 0, to: picked.count, by: saveEvery) {
            try await peer.raiseRatings(picked[first..<min(picked.count, first + saveEvery)])
        }
        if durability == .deferred { try await peer.flush() }
        return Double(Clock.now() - start) / Double(picked.count)
    }

    /// Returns the mean nanoseconds from a save to the list that shows it.
    private func refresh<P: Peer>(_ peer: P, engine: PeerEngine, keys: [P.Key]) async throws -> Double {
        let list = await MainActor.run { ShownList() }
        try await MainActor.run { try peer.keepFilled(list) }
        func rows(promoted: [Int]) -> [TrackData] {
            ShownList.rows(of: expected.stored(picks: picks, raises: peer.forms.count, promoted: promoted))
        }
        _ = try await list.wait(for: rows(promoted: []).first?.playCount ?? 0)
        var spent: UInt64 = 0
        for (number, row) in promoted.enumerated() {
            // A live result of Strata reports the first change after a pause of a frame at once.
            try await Task.sleep(for: .milliseconds(20))
            let playCount = PeerExpectation.promotedPlayCount(number, of: tracks.count)
            let start = Clock.now()
            try await peer.promote(keys[row], playCount: playCount)
            let shown = try await list.wait(for: playCount)
            spent += shown > start ? shown - start : 0
        }
        let digest = rows(promoted: promoted).reduce(0) { $0 &+ $1.digest }
        let found = await MainActor.run {
            list.source = nil
            return list.digest
        }
        try check(engine, operation: .refresh, found: found, expected: digest)
        return Double(spent) / Double(max(1, promoted.count))
    }

    /// Runs reads on main. Returns the nanoseconds divided by `count`.
    private func onMain<Result: Hashable & Sendable>(
        _ engine: PeerEngine, operation: PeerOperation, count: Int, expected: Result,
        _ body: @MainActor @Sendable () throws -> Result
    ) async throws -> Double {
        let (nanoseconds, found) = try await MainActor.run {
            let start = Clock.now()
            let found = try body()
            return (Double(Clock.now() - start) / Double(count), found)
        }
        try check(engine, operation: operation, found: found, expected: expected)
        return nanoseconds
    }

    private func check<Result: Hashable>(
        _ engine: PeerEngine, operation: PeerOperation, found: Result, expected: Result
    ) throws {
        guard found == expected else {
            throw VerificationError("peers, \(engine.rawValue): \(operation.rawValue) gave \(found), expected \(expected)")
        }
    }

    private static let repetitions = 10

    /// Runs a read several times, because one takes too short to be measured. Returns the last result.
    @MainActor private static func repeated<Result>(_ body: @MainActor () throws -> Result) rethrows -> Result {
        for _ in 1..<repetitions { _ = try body() }
        return try body()
    }
}

/// The figures of one side in one run.
struct PeerFigures: Sendable {
    /// Nanoseconds per object.
    var costs: [PeerEngine: [PeerOperation: Double]] = [:]
    var fileBytes = 0
}
