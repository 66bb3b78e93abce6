import Foundation
import ObjectGraph
import StoreFiles
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Streams large values in and out of contexts, part by part.
@Suite struct LargeValueStreamTests {
    private static let model: Model = {
        let photo = EntityDescription(
            name: "Photo",
            properties: [
                .attribute(.init(name: "caption", type: .string)),
                .attribute(.init(name: "payload", type: .data, isOptional: true)),
                .attribute(.init(name: "views", type: .int64)),
            ])
        do { return try Model([photo]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    /// Returns 1 MiB that does not compress, different for each number.
    private static func block(_ number: Int) -> Data {
        var state = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
        var words = [UInt64](repeating: 0, count: 1 << 17)
        for index in words.indices {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            words[index] = state ^ state >> 29
        }
        return words.withUnsafeBytes { Data($0) }
    }

    private static func write(_ megabytes: Int, in folder: URL) throws -> Data {
        let writer = try LargeDataWriter(inFolder: folder)
        for number in 0..<megabytes { try writer.append(block(number)) }
        #expect(writer.byteCount == megabytes << 20)
        return try writer.finish()
    }

    /// Compares a stream with the blocks, with one block in memory.
    private static func check(_ stream: ValueStream, megabytes: Int) async throws {
        #expect(stream.byteCount == megabytes << 20)
        var pending = Data()
        var number = 0
        for try await part in stream {
            #expect(part.startIndex == 0 && part.count <= 1 << 16)
            pending.append(part)
            while pending.count >= 1 << 20 {
                // A macro that compares would look for the differences, for hours.
                let isSame = pending.prefix(1 << 20) == block(number)
                try #require(isSame, "block \(number)")
                pending = Data(pending.dropFirst(1 << 20))
                number += 1
            }
        }
        #expect(number == megabytes && pending.isEmpty)
    }

    private static var megabytes: Int { ProcessInfo.processInfo.environment["STRATA_LONG"] == nil ? 64 : 1024 }

    @Test func S152_aStreamKeepsItsSnapshotAmongTheLiveOnes() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        let data = Self.block(0)
        let id = await context.perform { context in
            let photo = context.insert("Photo")
            photo["payload"] = .data(data)
            return photo.objectID
        }
        try await context.save(through: .store, .durable)
        let (stream, generation) = try await context.perform {
            (try $0.object(with: id).stream("payload"), container.coordinator.currentHistoryToken.generation)
        }
        await context.perform { $0.object(with: id)["views"] = .int(1) }
        try await context.save(through: .store, .durable)
        #expect(try container.coordinator.snapshots().contains { $0.generation == generation && !$0.isNewest })
        try await Self.check(stream, megabytes: 1)
    }

    @Test(arguments: StoreKind.allCases)
    func aLargeValueIsStreamedInAndOutAcrossSaveAndReopen(_ kind: StoreKind) async throws {
        // SQLite accepts a little less than 1 GiB. There, and in the store in memory, whole values are in memory.
        let megabytes = kind == .lmdb ? Self.megabytes : 9
        let bed = try TestBed(kind)
        var id: ObjectID?
        // A store in memory is freed with its container.
        var kept: PersistentContainer?
        do {
            let container = try await bed.container(model: Self.model)
            if kind == .memory { kept = container }
            let context = await container.newBackgroundContext()
            let data = try Self.write(megabytes, in: bed.folder)
            id = await context.perform { context in
                let photo = context.insert("Photo")
                photo["payload"] = .data(data)
                photo["caption"] = .string("before")
                return photo.objectID
            }
            let made = try #require(id)
            let pending = try await context.perform { try $0.object(with: made).stream("payload") }
            try await Self.check(pending, megabytes: megabytes)
            try await context.save(through: .store, .durable)
            let saved = try await context.perform { try $0.object(with: made).stream("payload") }
            // Values that are assigned and saved from here on are not in the stream.
            await context.perform { context in
                let photo = context.object(with: made)
                photo["payload"] = .data(Data([1, 2, 3]))
                photo["caption"] = .string("after")
            }
            try await Self.check(saved, megabytes: megabytes)
            let small = try await context.perform { try $0.object(with: made).stream("payload") }
            #expect(small.byteCount == 3)
            await context.perform { $0.rollback() }
            await context.perform { $0.object(with: made)["views"] = .int(5) }
            try await context.save(through: .store, .durable)
        }
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        let made = try #require(id)
        let again = try await context.perform { context in
            #expect(context.object(with: made)["views"] == .int(5))
            #expect(context.object(with: made)["caption"] == .string("before"))
            return try context.object(with: made).stream("payload")
        }
        try await Self.check(again, megabytes: megabytes)
        #expect(try container.coordinator.store.verify().isEmpty)
        _ = kept
    }

    @Test(arguments: StoreKind.allCases)
    func aStreamGivesWhatWasShownWhenItWasMade(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        let first = Self.block(1)
        let id = await context.perform { context in
            let photo = context.insert("Photo")
            photo["payload"] = .data(first)
            photo["caption"] = .string(String(repeating: "é", count: 100_000))
            return photo.objectID
        }
        try await context.save(through: .store, .durable)
        let (stream, caption) = try await context.perform { context in
            (try context.object(with: id).stream("payload"), try context.object(with: id).stream("caption"))
        }
        await context.perform { $0.object(with: id)["payload"] = .data(Self.block(2)) }
        try await context.save(through: .store, .durable)
        await context.perform { $0.delete($0.object(with: id)) }
        try await context.save(through: .store, .durable)
        var bytes = Data()
        for try await part in stream { bytes.append(part) }
        #expect(bytes == first)
        var text = Data()
        for try await part in caption { text.append(part) }
        #expect(String(decoding: text, as: UTF8.self) == String(repeating: "é", count: 100_000))
    }

    @Test func nullIsAnEmptyStreamAndACancelledOneThrows() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        let stream = try await context.perform { try $0.insert("Photo").stream("payload") }
        #expect(stream.byteCount == 0)
        for try await _ in stream { Issue.record("null has no bytes") }
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            for try await _ in stream {}
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func dataOfAWriterIsDataLikeOtherAndLeavesNoFile() throws {
        let bed = try TestBed(.memory)
        let writer = try LargeDataWriter(inFolder: bed.folder)
        try writer.append(Data([1, 2, 3]))
        try writer.append(Data())
        try writer.append(Data(repeating: 9, count: 10_000))
        var data = try writer.finish()
        #expect(try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).isEmpty)
        let copy = data
        #expect(data == Data([1, 2, 3]) + Data(repeating: 9, count: 10_000))
        data[1] = 77
        data.append(5)
        #expect(data.count == 10_004 && data[1] == 77 && data[10_003] == 5)
        #expect(copy[1] == 2 && copy.count == 10_003)
        var alone = try Self.write(1, in: bed.folder)
        alone[70_000] ^= 1
        alone.append(Data(repeating: 1, count: 100_000))
        #expect(alone.count == 1 << 20 + 100_000)
        #expect(try LargeDataWriter(inFolder: bed.folder).finish().isEmpty)
        let error = #expect(throws: StoreError.self) {
            try LargeDataWriter(inFolder: bed.folder.appendingPathComponent("nowhere"))
        }
        #expect(error?.code == .cannotOpen)
    }

    /// Returns data of memory that is never touched, if nothing reads it.
    private static func untouched(byteCount: Int) -> Data {
        let room = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 8)
        return Data(bytesNoCopy: room, count: byteCount, deallocator: .custom { pointer, _ in pointer.deallocate() })
    }

    /// Catches: a deferred save that is acknowledged and cannot be written.
    @Test(arguments: StoreKind.allCases, [Durability.durable, .deferred(within: .seconds(600))])
    func `S067: a value of more than 1 GiB is refused by the save, also by a deferred one`(
        _ kind: StoreKind, _ durability: Durability
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        await context.perform {
            let photo = $0.insert("Photo")
            photo["payload"] = .data(Self.untouched(byteCount: 1 << 30 + 1))
        }
        let error = await #expect(throws: StoreError.self) { try await context.save(through: .store, durability) }
        #expect(error?.code == .valueTooLarge)
        #expect(error?.message.hasPrefix("Photo.payload was set to 1073741825 bytes; a value has at most 1 GiB") == true)
        #expect(await context.perform { $0.insertedObjects.count } == 1, "nothing is discarded")
        await context.perform { $0.rollback() }
        try await container.flush()
    }

    @Test func aWriterRefusesMoreThanOneGibibyte() throws {
        let bed = try TestBed(.memory)
        let writer = try LargeDataWriter(inFolder: bed.folder)
        try writer.append(Data([1]))
        let huge = Self.untouched(byteCount: 1 << 30)
        let error = #expect(throws: StoreError.self) { try writer.append(huge) }
        #expect(error?.code == .valueTooLarge)
        #expect(try writer.finish() == Data([1]))
    }

    /// Catches: an archive of a deleted object that is empty.
    @Test(arguments: StoreKind.allCases)
    func `S054: a stream of a deleted object has its last value until the save`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Self.model)
        let context = await container.newBackgroundContext()
        let id = await context.perform { context in
            let photo = context.insert("Photo")
            photo["payload"] = .data(Self.block(0))
            return photo.objectID
        }
        try await context.save(through: .store, .durable)
        let stream = try await context.perform { context throws in
            let photo = context.object(with: id)
            context.delete(photo)
            return try photo.stream("payload")
        }
        try await Self.check(stream, megabytes: 1)
    }
}
