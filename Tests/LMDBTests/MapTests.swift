import Foundation
import LMDB
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The map of a file, and its address space.
@Suite struct MapTests {
    /// If a larger map is refused, LMDB has no map any more and crashes.
    @Test func aMapThatFindsNoRoomLeavesTheOldOne() async throws {
        await #expect(processExitsWith: .success) {
            let file = try TemporaryEnvironment(mapSize: 1 << 20)
            let table = try file.open("t", .integers)
            try file.environment.write { transaction in try bytes("a") { try transaction.put(table, key: 1, value: $0) } }
            // A sanitizer has mapped terabytes already.
            let mapped = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ").first
            let used = mapped.flatMap { rlim_t($0) }.map { $0 * rlim_t(getpagesize()) } ?? 0
            var limit = rlimit(rlim_cur: used + (1 << 40), rlim_max: rlim_t.max)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
            try #require(try !file.environment.resizeMap(to: 1 << 41))
            try #require(try file.environment.information().mapSize == 1 << 20)
            try file.environment.write { transaction in try bytes("b") { try transaction.put(table, key: 2, value: $0) } }
            try #require(try text(ReadTransaction(file.environment).get(table, 1)) == "a")
            try #require(try file.environment.resizeMap(to: 1 << 21))
            try #require(try file.environment.information().mapSize == 1 << 21)
        }
    }

    @Test func theMapStaysWhileSubDatabasesAreOpened() throws {
        let file = try TemporaryEnvironment()
        _ = try file.open("t", .integers)
        try file.environment.openDatabases { transaction in
            let table = try #require(try transaction.open("t", .integers))
            #expect(file.environment.liveReaders == 1)
            #expect(try !file.environment.resizeMap(to: 1 << 25))
            #expect(try transaction.get(table, 1) == nil)
        }
        #expect(file.environment.liveReaders == 0)
        #expect(try file.environment.resizeMap(to: 1 << 25))
    }

    @Test func anyNumberOfReaderSlotsCanBeAskedFor() throws {
        for count in [0, -1, Int.max, Int.min] {
            let file = try TemporaryEnvironment(maximumReaders: count)
            #expect(try file.environment.information().readerSlots >= 1)
        }
    }
}
