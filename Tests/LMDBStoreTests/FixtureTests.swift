import Foundation
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// Files of every released format stay readable. Every value of them is checked here.
///
/// A fixture is made once, when its format is released, and never again: `STRATA_WRITE_FIXTURE=1 swift test --filter
/// FixtureTests`.
@Suite struct FixtureTests {
    /// Returns the fixture of a format. It was written under two versions of a schema: one page is packed, one has the older
    /// schema, one the newer.
    private static func url(format: Int) -> URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Fixtures/format-\(format).lmdb")
    }

    private static let types = ColumnType.allCases.filter { $0 != .reference }
    private static let count = 36

    private static let first = StoreSchema(
        entities: [
            EntitySchema(
                name: "Thing",
                columns: [ColumnSchema(name: "name", type: .string, index: .unique)]
                    + types.map {
                        ColumnSchema(name: $0.rawValue, type: $0, isOptional: true)
                    }
                    + [ColumnSchema(name: "owner", type: .reference, isOptional: true, index: .indexed, destination: 1)],
                indexes: [IndexSchema(columns: [2, 13])]),
            EntitySchema(name: "Owner", columns: [ColumnSchema(name: "title", type: .string)]),
        ],
        links: [LinkSchema(name: "Thing.friends", source: 0, destination: 1)])

    /// `name` is now `label`, `int8` is wider, `float` is gone, `added` is new.
    private static var second: StoreSchema {
        var schema = first
        schema.migration.allowedLoss = .named(["Thing.float"])
        schema.entities[0].columns[0].name = "label"
        schema.entities[0].columns[0].renamedFrom = "name"
        schema.entities[0].columns[2].type = .int32
        schema.entities[0].columns.append(ColumnSchema(name: "added", type: .int16, defaultValue: .int(5)))
        let float = schema.entities[0].columns.firstIndex { $0.name == "float" } ?? 0
        schema.entities[0].columns.remove(at: float)
        schema.entities[0].indexes = [IndexSchema(columns: [2, 12])]
        return schema
    }

    /// Twelve objects per page, so that the file is small.
    private static func key(_ number: Int) -> ObjectKey {
        PageAddress.key(page: PageNumber(rawValue: UInt64(1 + number / 12)), slot: number % 12)
    }

    private static func value(_ type: ColumnType, _ number: Int) -> Value {
        if number % 7 == 3 { return .null }
        return switch type {
        case .bool: .bool(number % 2 == 0)
        case .int8: .int(Int64(number % 100 - 50))
        case .int16, .int32, .int64: .int(Int64(number * 211 - 9_000))
        case .uint8, .uint16, .uint32: .int(Int64(number))
        case .uint64: .uint(UInt64.max - UInt64(number))
        case .float, .double, .date: .double(Double(number) / 8 - 4)
        case .string: .string(String(repeating: "ä", count: number % 5) + "\(number)")
        case .data: .data(Data(repeating: UInt8(number), count: number % 6))
        case .uuid: .uuid(UUID(uuid: (UInt8(number), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)))
        case .reference: .reference(key(number % 3))
        }
    }

    // MARK: Writing

    private static func write(to scratch: Scratch) async throws {
        var store: LMDBStore? = try LMDBStore.open(scratch.url, schema: first)
        try store?.save(author: "first") { layer, transaction in
            _ = try transaction.allocateKeys(0, pages: 3)
            _ = try transaction.allocateKeys(1, pages: 1)
            for number in 0..<3 { layer.put(Samples.row([.string("owner \(number)")], in: layer), entity: 1, key: key(number)) }
            for number in 0..<count {
                let values = [.string("name \(number)")] + (types + [.reference]).map { value($0, number) }
                layer.put(Samples.row(values, in: layer), entity: 0, key: key(number))
                layer.setLink(0, from: key(number), to: key(number % 2), linked: true)
            }
        }
        _ = try await store?.compact(CompactionOptions(age: .any, effort: .fast))
        try store?.save(author: "second") { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: first.entities[0].columns.count)
            row[0] = .string("changed")
            layer.put(row, entity: 0, key: key(15))
        }
        store = nil
        store = try LMDBStore.open(scratch.url, schema: second)
        while try store?.continueMigration() != nil {}
        try store?.save(author: "third") { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: second.entities[0].columns.count)
            row[ColumnIndex(rawValue: second.entities[0].columns.count - 1)] = .int(6)
            layer.put(row, entity: 0, key: key(30))
            layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 0), entity: 0, key: key(35))
        }
        let url = url(format: Int(MetaTable.formatVersion))
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try? FileManager.default.removeItem(at: url)
        try #require(store).environment.copy(to: url.path)
    }

    // MARK: Reading

    @Test(arguments: [1, 2], [false, true])
    func `S163, S166: a file of an older format is read with each of its values`(format: Int, isReadOnly: Bool) async throws {
        if ProcessInfo.processInfo.environment["STRATA_WRITE_FIXTURE"] == "1", format == 2 {
            try await Self.write(to: try Scratch())
        }
        // A copy, because opening writes to a file.
        let scratch = try Scratch()
        try FileManager.default.copyItem(at: Self.url(format: format), to: scratch.url)
        var options = LMDBStore.Options()
        options.isReadOnly = isReadOnly
        let bytes = try Data(contentsOf: scratch.url)
        let store = try LMDBStore.open(scratch.url, schema: Self.second, options: options)
        let snapshot = try store.newestSnapshot()
        #expect(snapshot.generation == 3)
        #expect(try snapshot.keys(StoreQuery(entity: 0)) == (0..<35).map(Self.key))
        for number in 0..<35 {
            let values = Self.second.entities[0].columns.map { column -> Value in
                switch column.name {
                case "label": .string(number == 15 ? "changed" : "name \(number)")
                case "added": .int(number == 30 ? 6 : 5)
                case "int8": Self.value(.int8, number)
                default: Self.value(column.type, number)
                }
            }
            for (column, value) in values.enumerated(as: ColumnIndex.self) {
                let found = try snapshot.value(0, key: Self.key(number), column: column)
                #expect(found == value, "\(Self.second.entities[0].columns[column].name) of \(number)")
            }
            #expect(try snapshot.version(0, Self.key(number)) == (number == 30 ? 3 : number == 15 ? 2 : 1))
            let friends = try snapshot.related(.link(0, .forward, destination: 1), to: Self.key(number))
            #expect(friends == [Self.key(number % 2)])
        }
        #expect(try snapshot.value(1, key: Self.key(2), column: 0) == .string("owner 2"))
        #expect(try snapshot.lookup(0, column: 0, value: .string("changed")) == [Self.key(15)])
        let history = try #require(try store.history(after: 0, limit: 10))
        #expect(history.map(\.author) == ["first", "second", "third"])
        #expect(history[1].change(of: 0)?.updatedKeys == [Self.key(15)])
        let findings = try store.verify()
        #expect(findings == [])
        if isReadOnly { return #expect(try Data(contentsOf: scratch.url) == bytes) }
        // Saves continue in the file's format.
        #expect(store.format == UInt64(format))
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: Self.second.entities[0].columns.count)
            row[0] = .string("again")
            layer.put(row, entity: 0, key: Self.key(15))
        }
        #expect(try store.verify() == [])
        #expect(try store.newestSnapshot().value(0, key: Self.key(15), column: 0) == .string("again"))
        try Self.expectBackup(of: store, in: scratch)
    }

    /// A backup has the format of its store, can be opened and restored.
    private static func expectBackup(of store: LMDBStore, in scratch: Scratch) throws {
        let backup = scratch.url.appendingPathExtension("backup")
        _ = try store.backup(to: backup, existing: .refuse, cancellation: Cancellation())
        let restored = scratch.url.appendingPathExtension("restored")
        try MigratableLMDBFile(restored, LMDBStore.Options()).restore(from: backup, cancellation: Cancellation())
        for url in [backup, restored] {
            let copy = try LMDBStore.open(url, schema: second)
            #expect(copy.format == store.format)
            #expect(try copy.verify() == [])
        }
    }

    /// Catches: sound pages that are called damaged, because their rests are in a table that the file did not have when it was opened.
    @Test func `S166: a file that gets tables from another process must be opened again to be read`() async throws {
        let scratch = try Scratch()
        try FileManager.default.copyItem(at: Self.url(format: 1), to: scratch.url)
        var options = LMDBStore.Options()
        options.isReadOnly = true
        let store = try LMDBStore.open(scratch.url, schema: Self.second, options: options)
        var held: (any StoreSnapshot)? = try store.snapshot()
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String] in
            _ = try LMDBStore.open(URL(fileURLWithPath: path), schema: FixtureTests.second)
        }
        #expect(try held?.count(StoreQuery(entity: 0)) == 35)
        let error = #expect(throws: StoreError.self) { try store.snapshot() }
        #expect(error?.code == .schemaTooNew, "\(String(describing: error))")
        #expect(error?.message.contains("Open it again") == true, "\(String(describing: error))")
        held = nil
        try store.shutDown()
        #expect(try LMDBStore.open(scratch.url, schema: Self.second, options: options).verify() == [])
    }

    @Test(arguments: [1, 2]) func aFixtureIsSmall(format: Int) throws {
        let bytes = try FileManager.default.attributesOfItem(atPath: Self.url(format: format).path)[.size] as? Int
        #expect(try #require(bytes) <= 1 << 16)
    }
}
