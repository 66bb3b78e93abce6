import Datasets
import Dispatch
import Figures

/// The same work in SQLite's C calls.
extension Saves {
    func runRaw(_ importer: Importer) async throws -> Figures {
        let folder = try RunFolder()
        let path = folder.path("records")
        let records = try RawRecords(path: path, seed: seed, importer.durability)
        try await records.insert(Self.records)
        let (rows, saveEvery) = (changedRows, saveEvery)
        let figures = try await measure(importer) {
            try await records.insert(saveEvery)
            return saveEvery
        } saves: {
            try await save(rows, into: records)
        }
        try SQLiteRecords(path: path, durability: .durable).checksum()
            .check("saves, \(Engine.sqliteRaw.rawValue): records after \(count) saves", expected(records.count))
        return figures
    }

    @MainActor
    private func save(_ rows: [Int], into records: RawRecords) async throws -> [UInt64] {
        var times: [UInt64] = []
        for number in rows.indices {
            let start = Clock.now()
            try records.update(rows[number...number])
            times.append(Clock.now() - start)
            try await Task.sleep(for: Self.pause)
        }
        return times
    }
}

/// Two connections to one file, whose transactions take turns on a serial queue.
///
/// `@unchecked`: connections and counts are used on `queue` only. `random` is used by one importer at a time.
private final class RawRecords: @unchecked Sendable {
    private let queue = DispatchQueue(label: "writes")
    private let importing: SQLiteRecords
    private let saving: SQLiteRecords
    private var random: SeededNumbers
    private var inserted = 0

    init(path: String, seed: UInt64, _ durability: DurabilityKind) throws {
        importing = try SQLiteRecords(path: path, durability: durability)
        saving = try SQLiteRecords(path: path, durability: .deferred)
        random = SeededNumbers(seed: seed)
    }

    var count: Int { queue.sync { inserted } }

    func insert(_ count: Int) async throws {
        // Before the queue, so that saves do not wait for it.
        let rows = (0..<count).map { _ in RecordData.values(&random) }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async {
                continuation.resume(
                    with: Result {
                        try self.importing.insert(rows, from: self.inserted)
                        self.inserted += count
                    })
            }
        }
    }

    func update(_ rows: ArraySlice<Int>) throws { try queue.sync { try saving.update(rows) } }
}
