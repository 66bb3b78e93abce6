import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Opening with little room on the disk, and with few free descriptors.
@Suite struct OpeningLimitTests {
    /// Catches: a process that a full disk ends when a reader takes a slot, because the lock file had holes. Earlier versions have left
    /// such files.
    @Test(arguments: [false, true])
    func `S166: the lock file of an open store has room on the disk for all readers`(_ hasHoles: Bool) throws {
        let scratch = try Scratch()
        let lock = URL(fileURLWithPath: scratch.url.path + "-lock")
        let readers = LMDBStore.Options().maximumReaders
        if hasHoles {
            try scratch.store().insertTracks(1)
            try Data().write(to: lock)
            let file = try FileHandle(forWritingTo: lock)
            try file.truncate(atOffset: UInt64(readers * 64 + 64))
            try file.close()
        }
        let store = try scratch.store()
        var status = stat()
        let code = stat(lock.path, &status)
        try #require(code == 0)
        let bytes = Int(status.st_blocks) * 512
        #expect(bytes >= readers * 64, "\(bytes) bytes on the disk")
        withExtendedLifetime(store) {}
    }

    /// Opens a file while some descriptors are free. Returns the number of its incarnations after the first; nil if it was not opened.
    private static func copies(_ url: URL, whileFree count: Int) -> Int? {
        var taken: [Int32] = []
        while let next = Optional(open("/dev/null", O_RDONLY)), next >= 0 { taken.append(next) }
        // The address sanitizer needs one to look for leaks when the process ends.
        defer { for descriptor in taken { close(descriptor) } }
        for _ in 0..<count { close(taken.removeLast()) }
        return (try? LMDBStore.open(url, schema: Samples.schema))?.lineage.copies.count
    }

    /// Catches: a copy that goes on as its original, because its mark could not be read when it was opened.
    @Test func `S168: a copy that is opened with few free descriptors begins an incarnation, or is not opened`() async throws {
        let scratch = try Scratch()
        let backup = scratch.folder.appendingPathComponent("backup")
        let store = try scratch.store()
        try store.insertTracks(1)
        _ = try store.backup(to: backup, existing: .refuse)
        await #expect(processExitsWith: .success) { [path = backup.path as String] in
            var limit = rlimit(rlim_cur: 256, rlim_max: 256)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            for free in 1...8 {
                let copy = URL(fileURLWithPath: "\(path)-\(free)")
                try FileManager.default.copyItem(at: URL(fileURLWithPath: path), to: copy)
                let copies = OpeningLimitTests.copies(copy, whileFree: free)
                try #require(copies == nil || copies == 1, "\(free) free descriptors")
                // An opening that has failed has changed nothing, and one that has not is the first of the copy.
                try #require(
                    try LMDBStore.open(copy, schema: Samples.schema).lineage.copies.count == 1, "\(free) free descriptors")
            }
        }
    }

    /// Catches: a map that grows when a file is opened, and not when it is created.
    @Test func `a file is created with a map that is too small for its schema`() throws {
        let scratch = try Scratch()
        var options = LMDBStore.Options()
        options.mapSize = 1 << 20
        let schema = StoreSchema(
            entities: (0..<100).map { entity in
                EntitySchema(
                    name: "Entity\(entity)",
                    columns: (0..<128).map { ColumnSchema(name: "a long name of column \($0)", type: .string) })
            })
        let store = try LMDBStore.open(scratch.url, schema: schema, options: options)
        #expect(try store.verify() == [])
    }
}
