import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A process compacts, saves and copies until it is killed. Afterwards the file must have every durable save, and further
/// compactions must work.
enum CompactionCrashScript {
    static let tracks = 6000

    static func title(_ number: Int) -> String { "track \(number) of a long list" }

    static func fill(_ file: URL) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file))
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            for number in 0..<tracks { context.makeTrack(title(number), plays: 0) }
        }
        try await worker.save(through: .store, .durable)
    }

    /// Packs pages, unpacks them by writing to them, and packs them again, until killed. Records each durable save.
    static func run(file: URL, killAfter: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file))
        let note = CrashScript.note(file.deletingLastPathComponent(), 0)
        _ = FileManager.default.createFile(atPath: note.path, contents: nil)
        let handle = try FileHandle(forWritingTo: note)
        let worker = await container.newBackgroundContext()
        let ids = try await worker.perform { context in try context.objects("Track").map(\.objectID) }
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(killAfter)) { kill(getpid(), SIGKILL) }
        for round in 1..<1_000_000 {
            async let packing = container.compact(CompactionOptions(age: .any, effort: round % 2 == 0 ? .usual : .fast))
            for part in 0..<4 {
                await worker.perform { context in
                    for index in stride(from: part, to: ids.count, by: 97) {
                        context.object(with: ids[index])["plays"] = .int(Int64(round * 4 + part))
                    }
                }
                try await worker.save(through: .store, .durable)
                try handle.write(contentsOf: Data("\(round * 4 + part)\n".utf8))
            }
            _ = try await packing
            let copy = file.deletingLastPathComponent().appendingPathComponent("copy-\(round)")
            try await container.compactCopy(to: copy)
        }
    }

    static func check(_ file: URL) async throws {
        let folder = file.deletingLastPathComponent()
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file))
        #expect(try container.coordinator.store.verify().isEmpty)
        let noted = try String(contentsOf: CrashScript.note(folder, 0), encoding: .utf8)
        let durable = noted.split(separator: "\n").compactMap { Int($0) }.max() ?? 0
        let context = container.coordinator.newBackgroundContext()
        let (titles, plays) = try await context.perform { context in
            let tracks = try context.objects("Track")
            let titles = tracks.compactMap { if case .string(let text) = $0["title"] { text } else { nil } }
            let plays = tracks.compactMap { if case .int(let number) = $0["plays"] { Int(number) } else { nil } }
            return (titles.sorted(), plays.max() ?? 0)
        }
        #expect(titles == (0..<tracks).map(title).sorted())
        // The save that was running may be there too.
        #expect(plays >= durable)
        // Every file with a final name is whole.
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where name.hasPrefix("copy-") && !name.hasSuffix("-lock") {
            let copy = try LMDBStore.open(folder.appendingPathComponent(name), schema: Music.model.storeSchema)
            #expect(try copy.verify().isEmpty)
        }
        _ = try await container.compact(CompactionOptions(age: .any, effort: .fast))
        #expect(try container.coordinator.store.verify().isEmpty)
    }
}

@Suite(.serialized) struct CompactionKillTests {
    @Test func aKilledCompactionLosesNothingAndGoesOn() async throws {
        for round in 0..<Self.rounds {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            try await CompactionCrashScript.fill(file)
            let delay = 10_000 + (round * 104_729) % 250_000
            await #expect(processExitsWith: .signal(SIGKILL)) { [file = file as URL, delay = delay as Int] in
                try await CompactionCrashScript.run(file: file, killAfter: delay)
            }
            try await CompactionCrashScript.check(file)
        }
    }

    /// Few in `make test`, and many with STRATA_LONG=1.
    private static var rounds: Int { ProcessInfo.processInfo.environment["STRATA_LONG"] == "1" ? 60 : 4 }
}
