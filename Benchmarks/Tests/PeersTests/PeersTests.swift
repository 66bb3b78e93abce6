import Figures
import Foundation
import Testing
import Workloads

@testable import Peers

/// Both sides do the same work on the same data, and every result is checked before a time is shown.
@Suite(.serialized) struct PeersTests {
    private static func peers(
        _ durability: DurabilityKind = .durable, change: (inout PeerExpectation) -> Void = { _ in }
    ) -> Peers {
        var peers = Peers(objects: 300, seed: 7, saveEvery: 100, durability: durability, refreshes: 3)
        change(&peers.expected)
        return peers
    }

    @Test(arguments: [DurabilityKind.durable, .deferred])
    func `all operations of all engines pass their checks`(durability: DurabilityKind) async throws {
        let rows = try await Self.peers(durability).rows(repeats: 1, progress: ProgressBar(steps: 1, style: .silent))
        let measured = Dictionary(grouping: rows, by: \.engine).mapValues { Set($0.compactMap(\.operation)) }
        let all = Set(PeerOperation.allCases.map(\.rawValue))
        let single = Set([PeerOperation.read, .readProperty, .update].map(\.rawValue))
        #expect(measured == ["strata": all, "grdb": all, "grdb-sql": single])
        #expect(rows.count { $0.verified } == rows.count)
        let header = Report(machine: Machine(libraries: [:]), runs: rows).operationTable().header
        #expect(header.suffix(2) == ["/ grdb", "/ grdb-sql"])
    }

    /// The checked results, each with an expectation that differs from the data.
    private static let wrong: [(PeerOperation?, @Sendable (inout PeerExpectation) -> Void)] = [
        (.read, { $0.digest += 1 }), (.readProperty, { $0.playCounts += 1 }), (.fetch, { $0.fetch += 1 }),
        (.count, { $0.counted += 1 }), (.totals, { _ = $0.totals.removeFirst() }),
        (nil, { $0.tracks[250].title += "x" }),
    ]

    @Test(arguments: wrong.indices)
    func `a wrong result of either side fails the run`(number: Int) async throws {
        let (operation, change) = Self.wrong[number]
        let peers = Self.peers(change: change)
        for run in [{ try await peers.run(StrataPeer.self) }, { try await peers.run(GRDBPeer.self) }] {
            let error = await #expect(throws: VerificationError.self) { _ = try await run() }
            let reason = operation?.rawValue ?? "values"
            #expect(try #require(error).description.contains(reason), "\(error?.description ?? "")")
        }
    }

    @Test func `a value that was not saved changes the sum of a file's values`() async throws {
        try await values(of: StrataPeer.self)
        try await values(of: GRDBPeer.self)
    }

    private func values<P: Peer>(of type: P.Type) async throws {
        let folder = try RunFolder()
        let tracks = TrackData.make(20, seed: 1)
        let peer = try await P(path: folder.path("tracks"), durability: .durable)
        let keys = try await peer.insert(tracks[...])
        #expect(try await peer.contents() == ContentSum(tracks))
        for form in peer.forms { try await form.peer.raiseRatings(keys[3...3]) }
        #expect(try await peer.contents() != ContentSum(tracks))
        var raised = tracks
        for _ in peer.forms { raised[3].rating += 1 }
        #expect(try await peer.contents() == ContentSum(raised))
        try await peer.close()
    }

    @Test func `GRDB runs with the durability that the report names`() async throws {
        for (durability, mode) in [(DurabilityKind.durable, 2), (.deferred, 1)] {
            let folder = try RunFolder()
            let peer = try await GRDBPeer(path: folder.path("tracks"), durability: durability)
            let found = try await peer.settings()
            #expect(found.journal == "wal" && found.synchronous == mode)
            try await peer.close()
        }
    }

    @Test func `both sides have the same indexes`() async throws {
        let folder = try RunFolder()
        let peer = try await GRDBPeer(path: folder.path("tracks"), durability: .durable)
        let indexed = Track.entityDescription.properties.compactMap { property in
            if case .attribute(let attribute) = property, attribute.index != .none { attribute.name } else { nil }
        }
        #expect(try await Set(peer.indexedColumns()) == Set(indexed))
        try await peer.close()
    }

    @Test func `the version in reports is that of the manifest`() throws {
        let manifest = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Package.swift")
        let text = try String(contentsOf: manifest, encoding: .utf8)
        #expect(text.contains("GRDB.swift\", exact: \"\(Peers.grdbVersion)\""))
    }
}
