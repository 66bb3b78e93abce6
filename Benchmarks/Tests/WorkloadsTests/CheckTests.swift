import Datasets
import Figures
import Baselines
import ObjectGraph
import StoreInterface
import Testing

@testable import Workloads

/// Every figure is checked before it is shown. Each test expects other data than was written, or changes the data during the
/// run.
@Suite(.serialized) struct CheckTests {
    private static let progress = ProgressBar(steps: 1, style: .silent)

    private static func storage() -> Storage {
        Storage(imported: MusicLibrary.make(rows: 300), objects: 400, seed: 5, saveEvery: 50, durability: .deferred)
    }

    /// Returns the error of the check of a run, or nil if it passed.
    private func refusal(_ storage: Storage, _ engine: Engine) async throws -> String? {
        do { _ = try await storage.rows([engine], repeats: 1, progress: Self.progress) } catch let error as VerificationError {
            return error.description
        }
        return nil
    }

    // MARK: Workloads

    @Test func aWrongValueOrPartnerFailsTheCheckOfAnImport() async throws {
        let data = MusicLibrary.make(rows: 300)
        let model = try DatasetModel(data)
        func run(expecting expected: Dataset) async throws {
            try await RunFolder().run(.siblings(.lmdb), importing: expected, model: model) { container, _ in
                let importer = Importer(data: PreparedDataset(data), model: model, savePoints: .every(100), durability: .durable)
                return ((), try await importer.run(container.importContext(name: "import")).ids)
            }
        }
        try await run(expecting: data)
        for wrong in Self.wrong(data) {
            await #expect(throws: VerificationError.self) { try await run(expecting: wrong) }
        }
    }

    @Test(arguments: Engine.allCases)
    func storageIsRightOnEveryEngine(engine: Engine) async throws {
        let rows = try await Self.storage().rows([engine], repeats: 1, progress: Self.progress)
        #expect(Set(rows.compactMap(\.operation)) == Set(StorageOperation.allCases.map(\.rawValue)))
    }

    @Test(arguments: Engine.allCases)
    func storageFindsAnUpdateThatIsNotInTheFile(engine: Engine) async throws {
        var storage = Self.storage()
        storage.updated.tables[0].attributes[RecordData.amount].values[storage.picks[3]] = .double(-1)
        #expect(try await refusal(storage, engine)?.contains("other values in the file") == true)
    }

    @Test(arguments: Engine.allCases)
    func storageFindsAnInsertedValueThatIsNotInTheFile(engine: Engine) async throws {
        var storage = Self.storage()
        storage.updated.tables[0].attributes[6].values[7] = .string("another note")
        #expect(try await refusal(storage, engine) != nil)
    }

    @Test(arguments: Engine.allCases)
    func storageFindsAnItemThatWasNotDeletedOrDeletedTooMuch(engine: Engine) async throws {
        var storage = Self.storage()
        storage.shelves.left.add(0, column: 0, value: .int(1))
        #expect(try await refusal(storage, engine)?.contains("after deleting") == true)
    }

    @Test(arguments: Engine.allCases)
    func `storage finds a keyed value that is not in the file`(engine: Engine) async throws {
        var storage = Self.storage()
        storage.keyed[1].left.add(0, column: 0, value: .data(storage.keyed[1].value(0)))
        #expect(try await refusal(storage, engine)?.contains("after deleting") == true)
    }

    @Test(arguments: Engine.allCases)
    func scaleAndReadersFindOtherRecords(engine: Engine) async throws {
        var scale = Scale(objects: 500, seed: 1, saveEvery: 5_000, durability: .deferred)
        _ = try await scale.rows([engine], repeats: 1, progress: Self.progress)
        scale.checkedSeed = 2
        let wrongScale = scale
        await #expect(throws: VerificationError.self) {
            try await wrongScale.rows([engine], repeats: 1, progress: Self.progress)
        }
        var readers = Readers(objects: 200, seed: 1, saveEvery: 50, durability: .deferred, seconds: 0.01)
        _ = try await readers.rows([engine], repeats: 1, progress: Self.progress)
        readers.checkedSeed = 2
        let wrongReaders = readers
        await #expect(throws: VerificationError.self) {
            try await wrongReaders.rows([engine], repeats: 1, progress: Self.progress)
        }
    }

    @Test(arguments: Saves.engines)
    func `saves find other records than were saved and imported`(engine: Engine) async throws {
        var saves = Saves(count: 5, seed: 1, saveEvery: 50)
        let rows = try await saves.rows([engine], repeats: 1, progress: Self.progress).rows
        #expect(rows.count == 3 * 4 + 2 && rows.allSatisfy { ($0.nanosecondsPerObject?.median ?? 0) > 0 })
        saves.checkedSeed = 2
        let wrong = saves
        await #expect(throws: VerificationError.self) { try await wrong.rows([engine], repeats: 1, progress: Self.progress) }
    }

    @Test func expectedRecordsTakeTheLastUpdateOfARow() {
        let once = ExpectedRecords(10, seed: 1, picks: [], updates: [3, 4])
        let twice = ExpectedRecords(10, seed: 1, picks: [], updates: [4, 4])
        let data = RecordData.updated(records(10), [3, 4])
        var sum = Checksum()
        for row in 0..<10 {
            for (column, a) in data.tables[0].attributes.enumerated() { sum.add(row, column: column, value: a.values[row]) }
        }
        #expect(once.checksum == sum && once.checksum == Checksum(data.tables[0]))
        #expect(twice.checksum != once.checksum)
    }

    /// Generates the records of seed 1, one at a time.
    private func records(_ count: Int) -> Dataset {
        var data = RecordData.make(count, seed: 1)
        var random = SeededNumbers(seed: 1)
        for row in 0..<count {
            for (column, value) in RecordData.values(&random).enumerated() {
                data.tables[0].attributes[column].values[row] = value
            }
        }
        return data
    }

    // MARK: Floors

    @Test func valuesThatChangedPlacesHaveAnotherChecksum() {
        var (one, other) = (Checksum(), Checksum())
        for (row, number) in [4, 5, 6].enumerated() { one.add(row, column: 0, value: .int(Int64(number))) }
        for (row, number) in [5, 4, 6].enumerated() { other.add(row, column: 0, value: .int(Int64(number))) }
        #expect(one != other)
        #expect(throws: VerificationError.self) { try one.check("x", other) }
    }

    /// Returns copies of the data with one wrong value, reference or link each.
    private static func wrong(_ data: Dataset) -> [Dataset] {
        var (value, reference, link) = (data, data, data)
        value.tables[4].attributes[0].values[1] = .string("another")
        reference.tables[1].references[0].rows.swapAt(0, 1)
        link.links[0].pairs[0].source += 1
        return reference.tables[1].references[0].rows == data.tables[1].references[0].rows
            ? [value, link] : [value, reference, link]
    }

    @Test func theSQLiteFloorIsCheckedFromAFreshOpen() throws {
        let data = MusicLibrary.make(rows: 2_000)
        let folder = try RunFolder()
        func fill() throws {
            let floor = try SQLiteBaseline(path: folder.path("a"), durability: .deferred)
            try floor.makeTables(data)
            try floor.run(PreparedDataset(data), saveEvery: 100)
        }
        try fill()
        try SQLiteBaseline.verify(folder.path("a"), data)
        for wrong in Self.wrong(data) {
            #expect(throws: VerificationError.self) { try SQLiteBaseline.verify(folder.path("a"), wrong) }
        }
        try RawSQLite(path: folder.path("a"), access: .readWrite).execute("UPDATE Track SET bytes = bytes + 1 WHERE id_key = 7")
        #expect(throws: VerificationError.self) { try SQLiteBaseline.verify(folder.path("a"), data) }
    }

    @Test func theLMDBFloorIsCheckedFromAFreshOpen() throws {
        let data = MusicLibrary.make(rows: 2_000)
        let folder = try RunFolder()
        func fill() throws {
            let floor = try LMDBBaseline(path: folder.path("a"), durability: .deferred)
            try floor.makeTables(data)
            try floor.run(PreparedDataset(data), saveEvery: 100)
        }
        try fill()
        try LMDBBaseline.verify(folder.path("a"), data)
        for wrong in Self.wrong(data) {
            #expect(throws: VerificationError.self) { try LMDBBaseline.verify(folder.path("a"), wrong) }
        }
    }

    @Test(arguments: [(DurabilityKind.durable, "2"), (.deferred, "1")])
    func `the SQLite floor has the settings of Strata's store on SQLite`(durability: DurabilityKind, synchronous: String) throws {
        let folder = try RunFolder()
        let database = try SQLiteBaseline(path: folder.path("a"), durability: durability).database
        func setting(_ name: String) throws -> String {
            let statement = try database.prepare("PRAGMA \(name)")
            return try statement.step() ? statement.text(0) : ""
        }
        #expect(try setting("journal_mode") == "wal" && setting("synchronous") == synchronous)
        #expect(try setting("cache_size") == "-65536" && setting("mmap_size") == "1073741824" && setting("temp_store") == "2")
    }

    /// The measured part creates no tables: each would be a commit that no store pays for.
    @Test func theFloorsTablesAreMadeBeforeTheImport() throws {
        let data = MusicLibrary.make(rows: 300)
        let folder = try RunFolder()
        let floor = try SQLiteBaseline(path: folder.path("a"), durability: .durable)
        #expect(throws: RawSQLite.Failure.self) { try floor.run(PreparedDataset(data), saveEvery: 100) }
        let other = try SQLiteBaseline(path: folder.path("b"), durability: .durable)
        func made() throws -> Int64 {
            let count = try other.database.prepare("SELECT COUNT(*) FROM sqlite_master")
            return try count.step() ? count.int(0) : 0
        }
        try other.makeTables(data)
        let before = try made()
        try other.run(PreparedDataset(data), saveEvery: 100)
        #expect(try made() == before && before > 20)
    }
}
