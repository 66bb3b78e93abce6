import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Keyed values in the store's file: its pages, compactions, backups and restores, and batches on the objects next to them.
@Suite struct KeyedFileTests {
    /// The contents of two collections, and the titles of the tracks.
    private struct Contents: Sendable {
        var numbers: [String: Int] = [:]
        var blobs: [Int: Data] = [:]
        var titles: [String] = []
    }

    private static func bytes(_ count: Int, seed: UInt64) -> Data {
        var random = SeededGenerator(seed: seed)
        return Data((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }

    /// Compares a new context with the expected contents, and verifies the store.
    private static func check(_ container: PersistentContainer, _ expected: Contents, _ moment: String) async throws {
        try await container.coordinator.newBackgroundContext().perform { context throws in
            let numbers = try context.collection("numbers", of: Int.self).all.entries().map { "\($0.key)=\($0.value)" }
            #expect(numbers == expected.numbers.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }, "\(moment)")
            let blobs = try context.collection("blobs", of: Data.self, key: Int.self)
            let found = try blobs.all.entries()
            let keys = expected.blobs.keys.sorted()
            #expect(found.map(\.key) == keys && found.map(\.value) == keys.map { expected.blobs[$0] }, "\(moment)")
            for key in keys { #expect(blobs[key] == expected.blobs[key], "\(moment)") }
            let titles = try context.trackTitles().sorted()
            #expect(titles == expected.titles.sorted(), "\(moment)")
        }
        #expect(try await container.coordinator.verify() == [], "\(moment)")
    }

    /// Saves two collections and tracks in one save, and changes some of the entries in a second one.
    private static func fill(_ container: PersistentContainer) async throws -> Contents {
        var contents = Contents()
        for number in 0..<1000 { contents.numbers["key \(number)"] = number }
        for number in 0..<6 { contents.blobs[number] = bytes(number.isMultiple(of: 2) ? 100_000 : 10, seed: UInt64(number)) }
        contents.titles = (0..<200).map { "track \($0)" }
        let first = contents
        try await container.write { context in
            let numbers = try context.collection("numbers", of: Int.self)
            for (key, value) in first.numbers { try numbers.setValue(value, forKey: key) }
            let blobs = try context.collection("blobs", of: Data.self, key: Int.self)
            for (key, value) in first.blobs { try blobs.setValue(value, forKey: key) }
            for (number, title) in first.titles.enumerated() { context.makeTrack(title, plays: number) }
        }
        let replaced = bytes(70_000, seed: 9)
        try await container.write { context in
            let numbers = try context.collection("numbers", of: Int.self)
            for number in stride(from: 0, to: 1000, by: 5) { try numbers.removeValue(forKey: "key \(number)") }
            for number in stride(from: 1, to: 1000, by: 5) { try numbers.setValue(-number, forKey: "key \(number)") }
            let blobs = try context.collection("blobs", of: Data.self, key: Int.self)
            try blobs.removeValue(forKey: 0)
            try blobs.setValue(replaced, forKey: 2)
        }
        for number in stride(from: 0, to: 1000, by: 5) { contents.numbers["key \(number)"] = nil }
        for number in stride(from: 1, to: 1000, by: 5) { contents.numbers["key \(number)"] = -number }
        (contents.blobs[0], contents.blobs[2]) = (nil, replaced)
        return contents
    }

    /// Catches: batches and compactions that leave out the hidden entity, or take its pages for those of another one.
    @Test(arguments: Combination.all.filter { $0.stack == .siblings || $0.stack == .hybrid })
    func `S192: keyed values stay through batches on objects, a compaction, a backup and its restore`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let backup = bed.folder.appending(path: "backup")
        var expected = Contents()
        do {
            let container = try await bed.container(combination.stack)
            expected = try await Self.fill(container)
            try await Self.check(container, expected, "after the saves")
            let coordinator = container.coordinator
            try await coordinator.batchUpdate(
                EntityFetchRequest("Track", matching: .compare("plays", .less, to: .int(50))), set: ["title": "updated"])
            let deleted = try await coordinator.batchDelete(
                EntityFetchRequest("Track", matching: .compare("plays", .greater, to: .int(149))))
            #expect(deleted.deletedCount == 50)
            expected.titles = Array(repeating: "updated", count: 50) + (50..<150).map { "track \($0)" }
            try await Self.check(container, expected, "after the batches")
            let compaction = try await container.compact(CompactionOptions(age: .any))
            #expect((compaction.pagesPacked > 0) == (combination.store == .lmdb))
            try await Self.check(container, expected, "after the compaction")
            guard combination.store != .memory else { return }
            try await coordinator.backup(to: backup)
            // The backup has none of these changes.
            try await container.write { context in
                try context.collection("numbers", of: Int.self).removeAll()
                try context.collection("blobs", of: Data.self, key: Int.self).setValue(Data([1]), forKey: 2)
                try context.collection("later", of: String.self).setValue("text", forKey: "a")
            }
            try await container.close()
        }
        try await PersistentContainer.restore(bed.description, from: backup)
        let container = try await bed.container(combination.stack)
        try await Self.check(container, expected, "after the restore")
        let collections = try await container.read { try $0.storedCollections().map(\.name) }
        #expect(collections == ["blobs", "numbers"])
        // New entries get numbers of their own.
        try await container.write { context in
            let numbers = try context.collection("numbers", of: Int.self)
            for number in 0..<100 { try numbers.setValue(number, forKey: "new \(number)") }
        }
        for number in 0..<100 { expected.numbers["new \(number)"] = number }
        try await container.compact(CompactionOptions(age: .any))
        try await Self.check(container, expected, "after new entries")
        try await container.close()
    }

    private static func size(
        _ content: TableSize.Content, in container: PersistentContainer
    ) async throws -> (entries: Int, bytes: Int) {
        let sizes = try await container.coordinator.tableSizes()
        let own = sizes.filter { $0.content == content && $0.name == EntitySchema.keyedValues.name }
        return (own.reduce(0) { $0 + $1.entries }, own.reduce(0) { $0 + $1.bytes })
    }

    /// Whether the store knows the sizes of its tables. SQLite can be compiled without them.
    private static func knowsSizes(_ container: PersistentContainer) async throws -> Bool {
        try await !container.coordinator.tableSizes().isEmpty
    }

    /// Catches: a page per value, and pages of values that a compaction leaves out.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S193: small values share pages, and compaction packs the pages with a dictionary`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        guard try await Self.knowsSizes(container) else { return }
        let count = 6400
        try await container.write { context in
            let notes = try context.collection("notes", of: String.self)
            for number in 0..<count { try notes.setValue("value \(number) of the collection", forKey: "key \(number)") }
        }
        let raw = try await Self.size(.objects, in: container)
        #expect(raw.bytes < count * 256, "\(raw)")
        #expect(try await Self.size(.largeValues, in: container).bytes < 1 << 16)
        guard kind == .lmdb else { return }
        // 64 values per page, and the record of the types.
        #expect(raw.entries <= count / 64 + 2, "\(raw)")
        let dictionaries = { try await container.coordinator.tableSizes().first { $0.name == "dictionaries" }?.bytes ?? 0 }
        let before = try await dictionaries()
        let compaction = try await container.compact(CompactionOptions(age: .any))
        #expect(compaction.pagesPacked >= count / 64)
        let packed = try await Self.size(.objects, in: container)
        #expect(packed.entries == raw.entries && packed.bytes < raw.bytes / 2, "\(packed), \(raw)")
        #expect(try await dictionaries() > before)
        try await container.close()
    }

    /// Catches: long values within the pages that they share with others, which each change of a neighbour would write again.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S193: a long value is stored out of line, and a change of its neighbours leaves it there`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        guard try await Self.knowsSizes(container) else { return }
        let long = Self.bytes(1_000_000, seed: 1)
        try await container.write { context in
            let blobs = try context.collection("blobs", of: Data.self, key: Int.self)
            for number in 0..<64 { try blobs.setValue(Data([UInt8(number)]), forKey: number) }
            try blobs.setValue(long, forKey: 7)
        }
        let large = try await Self.size(.largeValues, in: container)
        // SQLite keeps the first bytes of a long value next to the others.
        #expect(large.bytes > long.count * 9 / 10 && large.bytes < long.count * 5 / 4, "\(large)")
        #expect(try await Self.size(.objects, in: container).bytes < 1 << 16)
        try await container.write { context in
            let blobs = try context.collection("blobs", of: Data.self, key: Int.self)
            for number in 0..<64 where number != 7 { try blobs.setValue(Data([0, UInt8(number)]), forKey: number) }
        }
        #expect(try await Self.size(.largeValues, in: container) == large)
        #expect(try await container.read { try $0.collection("blobs", of: Data.self, key: Int.self)[7] } == long)
        // A short value gives the space back to the file.
        try await container.write { context in
            try context.collection("blobs", of: Data.self, key: Int.self).setValue(Data([1]), forKey: 7)
        }
        #expect(try await Self.size(.largeValues, in: container).bytes < 1 << 16)
        try await container.close()
    }
}
