import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Two processes save values that are written ahead of their saves, until they are killed.
enum LargeValueScript {
    static var options: LMDBStore.Options {
        var options = LMDBStore.Options()
        options.mapSize = 1 << 32
        options.valueBytesOfTransaction = 1 << 17
        return options
    }

    private static let noise: String = {
        var random = SystemRandomNumberGenerator()
        return String(decoding: (0..<90_000).map { _ in UInt8.random(in: 32..<127, using: &random) }, as: UTF8.self)
    }()

    /// Returns a title of six chunks. Each transaction writes two of them.
    private static func title(_ writer: Int, _ number: Int) -> String {
        "\(writer)/\(number)/" + String(repeating: noise, count: 4) + "/\(number)"
    }

    static func run(file: URL, writer: Int, killAfter: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file, options: options))
        let note = CrashScript.note(file.deletingLastPathComponent(), writer)
        _ = FileManager.default.createFile(atPath: note.path, contents: nil)
        let handle = try FileHandle(forWritingTo: note)
        let worker = await container.newBackgroundContext()
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(killAfter)) { kill(getpid(), SIGKILL) }
        for number in 0..<1_000_000 {
            await worker.perform { context in
                context.insert("Album")["title"] = .string(title(writer, number))
                context.insert("Album")["title"] = .string("\(writer)/\(number)/\(number)")
            }
            let isDurable = number % 3 > 0
            try await worker.save(through: .store, isDurable ? .durable : .deferred(within: .milliseconds(5)))
            if isDurable { try handle.write(contentsOf: Data("\(number)\n".utf8)) }
        }
    }

    static func check(_ file: URL, writers: Int) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(file, options: options))
        let before = try container.coordinator.store.verify()
        #expect(before == [])
        let worker = await container.newBackgroundContext()
        let saves = await worker.perform { context in
            // For each writer and save, the byte counts of the titles that are complete.
            var saves: [[Int: [Int]]] = Array(repeating: [:], count: writers)
            for album in (try? context.objects("Album")) ?? [] {
                guard case .string(let title) = album["title"] else { continue }
                let parts = title.split(separator: "/", maxSplits: 2).compactMap { Int($0) }
                guard let end = title.lastIndex(of: "/"), Int(title[title.index(after: end)...]) == parts[1] else { continue }
                saves[parts[0]][parts[1], default: []].append(title.utf8.count)
            }
            return saves
        }
        for (writer, found) in saves.enumerated() {
            let noted = try String(contentsOf: CrashScript.note(file.deletingLastPathComponent(), writer), encoding: .utf8)
            let durable = noted.split(separator: "\n").compactMap { Int($0) }.max() ?? -1
            #expect(found.keys.sorted() == Array(0..<found.count) && found.count > durable, "a prefix, with all durable ones")
            #expect(found.values.allSatisfy { $0.count == 2 && $0.reduce(0, +) > 360_000 }, "each whole")
        }
        // This save deletes the values that the killed processes left.
        await worker.perform { $0.insert("Album")["title"] = .string(title(0, -1)) }
        try await worker.save(through: .store)
        let after = try container.coordinator.store.verify()
        #expect(after == [])
    }
}

@Suite(.serialized) struct LargeValueKillTests {
    @Test func S066_twoProcessesKilledWhileTheySaveLargeValuesLeaveWholeSaves() async throws {
        for round in 0..<Rounds.of(3, long: 60) {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            do { _ = try await bed.container() }
            try await bed.closed()
            async let first: Void = Self.killed(file, writer: 0, delay: 30_000 + round * 31_013 % 200_000)
            async let second: Void = Self.killed(file, writer: 1, delay: 50_000 + round * 47_017 % 200_000)
            _ = await (first, second)
            try await LargeValueScript.check(file, writers: 2)
        }
    }

    private static func killed(_ file: URL, writer: Int, delay: Int) async {
        await #expect(processExitsWith: .signal(SIGKILL)) { [file = file as URL, writer = writer as Int, delay = delay as Int] in
            try await LargeValueScript.run(file: file, writer: writer, killAfter: delay)
        }
    }
}
