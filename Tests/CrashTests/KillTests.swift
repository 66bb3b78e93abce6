import Dispatch
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import LMDBStore
import Testing

/// The writes of a process until it is killed, and the check of the file afterwards.
///
/// Save number n of writer w inserts `tracksPerSave` tracks with w and n, and replaces the tracks' common counter. Each durable
/// save that has returned is recorded in a file beside the store, by a plain write, which survives a kill.
enum CrashScript {
    static let tracksPerSave = 7

    static func note(_ folder: URL, _ writer: Int) -> URL { folder.appendingPathComponent("durable-\(writer)") }

    /// Saves until killed, durably every fourth time or always.
    static func run(file: URL, writer: Int, stack: ContextStack, alwaysDurable: Bool, killAfter: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file), stack: stack)
        let note = note(file.deletingLastPathComponent(), writer)
        _ = FileManager.default.createFile(atPath: note.path, contents: nil)
        let handle = try FileHandle(forWritingTo: note)
        let worker = await container.newBackgroundContext()
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(killAfter)) { kill(getpid(), SIGKILL) }
        for number in 0..<1_000_000 {
            await worker.perform { context in
                let album = context.insert("Album")
                album["title"] = .string("\(writer)/\(number)")
                for i in 0..<tracksPerSave {
                    let track = context.makeTrack("\(writer)/\(number)/\(i)", plays: number)
                    track.setRelatedObject("album", to: album)
                }
            }
            let isDurable = alwaysDurable || number % 4 == 3
            try await worker.save(through: .store, isDurable ? .durable : .deferred(within: .milliseconds(5)))
            if isDurable { try handle.write(contentsOf: Data("\(number)\n".utf8)) }
        }
    }

    /// Opens the file and checks it against the promise (S066).
    static func check(file: URL, writer: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file))
        #expect(try container.coordinator.store.verify().isEmpty)
        let noted = try String(contentsOf: note(file.deletingLastPathComponent(), writer), encoding: .utf8)
        // A last line without a line break was being written when the process died.
        let durable = noted.split(separator: "\n").compactMap { Int($0) }.max() ?? -1
        let counts = try await container.coordinator.newBackgroundContext().perform { context in
            var counts: [Int: Int] = [:]
            for album in try context.objects("Album") {
                guard case .string(let title) = album["title"], title.hasPrefix("\(writer)/") else { continue }
                let number = try #require(Int(title.dropFirst(2)))
                counts[number] = album.relatedObjects("tracks").count
            }
            return counts
        }
        #expect(counts.values.allSatisfy { $0 == tracksPerSave }, "each save is whole")
        #expect(counts.keys.sorted() == Array(0..<counts.count), "a prefix of the saves")
        #expect(counts.count > durable, "every durable save is there: \(counts.count) saves, \(durable) was durable")
    }
}

@Suite(.serialized) struct KillTests {
    @Test(arguments: [ContextStack.siblings, .nested, .split])
    func S066_akilledImportLeavesAPrefixOfItsSavesWhole(_ stack: ContextStack) async throws {
        for round in 0..<Self.rounds {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            let name = stack.rawValue
            let delay = 20_000 + (round * 7_919 + stack.rawValue.count * 104_729) % 60_000
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [file = file as URL, name = name as String, delay = delay as Int, round = round as Int] in
                let stack = try #require(ContextStack(rawValue: name))
                try await CrashScript.run(
                    file: file, writer: 0, stack: stack, alwaysDurable: round % 2 == 0, killAfter: delay)
            }
            try await CrashScript.check(file: file, writer: 0)
        }
    }

    @Test func S066_twoProcessesKilledWhileBothImportLeaveTheirPrefixes() async throws {
        for round in 0..<Self.rounds {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            // The file exists before both processes open it, so that each finds the other's lock.
            _ = try await bed.container()
            async let first: Void = Self.killed(file, writer: 0, delay: 40_000 + round * 9_000)
            async let second: Void = Self.killed(file, writer: 1, delay: 60_000 - round * 3_000)
            _ = await (first, second)
            try await CrashScript.check(file: file, writer: 0)
            try await CrashScript.check(file: file, writer: 1)
        }
    }

    private static func killed(_ file: URL, writer: Int, delay: Int) async {
        await #expect(processExitsWith: .signal(SIGKILL)) { [file = file as URL, writer = writer as Int, delay = delay as Int] in
            try await CrashScript.run(
                file: file, writer: writer, stack: .siblings, alwaysDurable: writer == 0, killAfter: delay)
        }
    }

    /// Few in `make test`, and many with STRATA_LONG=1.
    private static var rounds: Int { Rounds.of(4, long: 60) }
}
