import Foundation
import LMDBStore
import SQLiteStore
import StoreContract
import StoreInterface
import StoreModel
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Files over which another program copies another file while a store has them open or suspended. Name and identity stay.
@Suite struct OverwrittenFileTests {
    enum Content: String, CaseIterable, Sendable { case backup, plainCopy, otherStore }
    enum Use: String, CaseIterable, Sendable { case open, suspended }

    private static let before = 3

    private static func save(_ store: any ObjectStore, _ numbers: Range<Int>, bytes: Int) throws {
        for number in numbers {
            // Repeating a text takes several times as long.
            let name = "\(number) " + String(decoding: [UInt8](repeating: 120, count: bytes), as: UTF8.self)
            try ContractStore.save(store, durability: .durable) {
                $0.insertItem(ObjectKey(64 + number), name: name, number: Int64(number))
            }
        }
    }

    /// Writes over a file like `cp`. The descriptor stays open, because closing it would release the locks that this process has.
    private static func overwrite(_ path: String, with source: String) throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: source))
        let descriptor = open(path, O_WRONLY | O_TRUNC)
        try #require(descriptor >= 0)
        bytes.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let count = write(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done)
                if count <= 0 { return }
                done += count
            }
        }
    }

    /// Creates a store with some saves, a copy of its closed file, and a backup.
    private static func prepare(_ kind: FileKind, _ path: String, bytes: Int, saves: Int) throws {
        let store = try kind.open(path)
        try save(store, 0..<before, bytes: bytes)
        _ = try store.backup(to: URL(fileURLWithPath: path + " backup"), existing: .refuse)
        try store.shutDown()
        try FileManager.default.copyItem(atPath: path, toPath: path + " plainCopy")
        let other = try kind.open(path + " otherStore")
        try save(other, 0..<saves, bytes: bytes)
        try other.shutDown()
    }

    /// Catches: saves that are acknowledged and lost, because they were written over another state.
    @Test(arguments: [FileKind.lmdb, .sqlite].flatMap { kind in Content.allCases.map { (kind, $0) } }, Use.allCases)
    func `S066: a file that is overwritten in place loses no save that is acknowledged later`(
        _ subject: (kind: FileKind, content: Content), _ use: Use
    ) throws {
        // With large values, SQLite copies its log into the file from time to time.
        for (bytes, saves) in [(10, 10), (60_000, 140)] {
            let folder = try TemporaryFolder()
            let path = folder.url.appendingPathComponent("store").path
            try Self.prepare(subject.kind, path, bytes: bytes, saves: saves)
            let store = try subject.kind.open(path)
            try Self.save(store, Self.before..<saves, bytes: bytes)
            if use == .suspended { try store.suspend() }
            try Self.overwrite(path, with: path + " \(subject.content)")
            var codes: [StoreError.Code] = []
            for _ in 0..<2 {
                do { try Self.save(store, saves..<(saves + 1), bytes: bytes) } catch let error as StoreError {
                    codes.append(error.code)
                }
            }
            if subject.kind == .sqlite, use == .open, codes.count < 2 {
                // The log has all that differs from the copy. Then nothing is lost.
                try store.shutDown()
                let keys = try subject.kind.open(path).snapshot().keys(StoreQuery(entity: Sample.item))
                #expect(keys.count == saves + 1, "\(bytes) bytes: \(codes)")
                continue
            }
            #expect(codes == [.fileReplaced, .fileReplaced], "\(bytes) bytes")
            if subject.kind == .sqlite, use == .suspended, subject.content == .backup {
                // The file stays as the other program has written it.
                let written = try Data(contentsOf: URL(fileURLWithPath: path + " \(subject.content)"))
                #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == written)
            }
            if subject.kind == .lmdb || use == .suspended {
                let error = #expect(throws: StoreError.self) { try store.snapshot() }
                #expect(error?.code == .fileReplaced)
            }
        }
    }

    @Test(arguments: FileKind.allCases)
    func `S167: a suspended file that is written back goes on`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        try Self.prepare(kind, path, bytes: 10, saves: 10)
        let store = try kind.open(path)
        try Self.save(store, Self.before..<10, bytes: 10)
        try store.suspend()
        try FileManager.default.copyItem(atPath: path, toPath: path + " newest")
        try Self.overwrite(path, with: path + " plainCopy")
        #expect(throws: StoreError.self) { try store.snapshot() }
        try Self.overwrite(path, with: path + " newest")
        #expect(try store.snapshot().generation == 10)
        try Self.save(store, 10..<11, bytes: 10)
        #expect(try store.verify() == [])
    }
}
