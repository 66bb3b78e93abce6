import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Runs batches one after the other until the process is killed. The file must show the result of some number of whole batches.
enum BatchScript {
    static let rows = 400

    /// Runs a step. Step 3n imports tracks of round n, step 3n + 1 sets their rating, and step 3n + 2 deletes those of round n
    /// - 1.
    static func step(_ number: Int, _ coordinator: PersistentStoreCoordinator) async throws {
        let round = number / 3
        let ofRound = { (round: Int) in EntityFetchRequest("Track", matching: .equal("plays", .int(Int64(round)))) }
        switch number % 3 {
        case 0:
            let values = (0..<rows).lazy.map { row -> [Value] in
                [.string("\(round)/\(row)"), .string("isrc \(round * rows + row)"), .int(Int64(round))]
            }
            try await coordinator.insert(into: "Track", ["title", "isrc", "plays"], rows: values)
        case 1: try await coordinator.batchUpdate(ofRound(round), set: ["rating": .double(Double(round))])
        default: try await coordinator.batchDelete(ofRound(round - 1))
        }
    }

    /// Returns for each round the ratings of its tracks.
    static func expected(after steps: Int) -> [Int: [Double]] {
        var tracks: [Int: [Double]] = [:]
        for number in 0..<steps {
            let round = number / 3
            switch number % 3 {
            case 0: tracks[round] = Array(repeating: 2.5, count: rows)
            case 1: tracks[round] = Array(repeating: Double(round), count: rows)
            default: tracks[round - 1] = nil
            }
        }
        return tracks
    }

    static func description(_ kind: StoreKind, _ file: URL) -> StoreDescription { kind == .lmdb ? .lmdb(file) : .sqlite(file) }

    static func run(_ kind: StoreKind, file: URL, killAfter: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: description(kind, file))
        let note = CrashScript.note(file.deletingLastPathComponent(), 0)
        _ = FileManager.default.createFile(atPath: note.path, contents: nil)
        let handle = try FileHandle(forWritingTo: note)
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(killAfter)) { kill(getpid(), SIGKILL) }
        for number in 0..<1_000_000 {
            try await step(number, container.coordinator)
            try handle.write(contentsOf: Data("\(number)\n".utf8))
        }
    }

    static func check(_ kind: StoreKind, _ file: URL) async throws {
        let container = try await PersistentContainer(model: Music.model, store: description(kind, file))
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
        let noted = try String(contentsOf: CrashScript.note(file.deletingLastPathComponent(), 0), encoding: .utf8)
        let done = (noted.split(separator: "\n").compactMap { Int($0) }.max() ?? -1) + 1
        let found = try await container.newBatchOperationContext().perform { context in
            var found: [Int: [Double]] = [:]
            for track in try context.objects("Track") {
                guard case .int(let round) = track["plays"], case .double(let rating) = track["rating"] else { continue }
                found[Int(round), default: []].append(rating)
            }
            return found
        }
        // The step that was running is there whole, or not at all.
        let possible = [done, done + 1].map(expected)
        #expect(possible.contains(found), "after \(done) steps: \(found.mapValues { "\($0.count) of \(Set($0))" })")
        let history = try await container.coordinator.history().count
        let next = found == possible[1] && found != possible[0] ? done + 1 : done
        #expect(history == next || history == next - 1, "an update of nothing is no save")
        for number in next..<(next + 4) { try await step(number, container.coordinator) }
        let after = try container.coordinator.store.verify()
        #expect(after == [])
    }
}

@Suite(.serialized) struct BatchKillTests {
    @Test(arguments: [StoreKind.lmdb, .sqlite]) func S137_aKilledBatchIsThereWholeOrNotAtAll(_ kind: StoreKind) async throws {
        for round in 0..<Rounds.of(3, long: 40) {
            let bed = try TestBed(kind)
            let file = bed.file
            let delay = 10_000 + (round * 17_389) % 90_000
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [file = file as URL, delay = delay as Int, kind = kind.rawValue as String] in
                let kind = try #require(StoreKind(rawValue: kind))
                try await BatchScript.run(kind, file: file, killAfter: delay)
            }
            try await BatchScript.check(kind, file)
        }
    }
}
