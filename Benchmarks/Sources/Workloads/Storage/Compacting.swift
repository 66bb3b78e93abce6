import Datasets
import Figures
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface

/// Compares the size of a file after every step that reduces it with the size of SQLite's file after VACUUM. Data and indexes
/// are the same.
public struct Compacting: Sendable {
    private let dataset: Dataset
    private let effort: CompactionOptions.Effort

    public init(_ dataset: Dataset, effort: CompactionOptions.Effort) {
        self.dataset = dataset
        self.effort = effort
    }

    /// Uses one table without indexes: the data of `storage`.
    public init(records: Int, seed: UInt64, effort: CompactionOptions.Effort) {
        self.init(RecordData.make(records, seed: seed), effort: effort)
    }

    /// Returns the rows, and notes about the compaction.
    public func rows(progress: ProgressBar) async throws -> (rows: [Report.Row], notes: [String]) {
        progress.step("compaction: raw SQLite")
        var rows = try sqlite()
        progress.step("compaction: strata")
        let (more, notes) = try await strata()
        rows += more
        let sizes = rows.map { "\($0.engine ?? "") \($0.operation ?? "") \($0.fileBytes ?? 0)" }.joined(separator: ", ")
        let vacuumed = rows.first { $0.operation == "vacuumed" }?.fileBytes ?? 1
        let copied = rows.first { $0.operation == "copied" }?.fileBytes ?? 0
        let ratio = (Double(copied) / Double(vacuumed) * 1000).rounded() / 1000
        return (rows, ["File bytes: \(sizes). Copied / vacuumed: \(ratio)."] + notes)
    }

    private func row(_ engine: String, operation: String, bytes: Int, seconds: Double? = nil) -> Report.Row {
        var row = Report.Row(benchmark: "compaction", durability: "deferred", objects: dataset.rowCount, verified: true)
        row.engine = engine
        row.operation = operation
        row.fileBytes = bytes
        row.totalSeconds = seconds.map { Spread([$0]) }
        row.nanosecondsPerObject = seconds.map { Spread([$0 * 1e9 / Double(dataset.rowCount)]) }
        return row
    }

    private func sqlite() throws -> [Report.Row] {
        let folder = try RunFolder()
        let path = folder.path("store.sqlite")
        let rows = try vacuum(SQLiteBaseline(path: path, durability: .deferred), folder)
        try SQLiteBaseline.verify(path, dataset)
        return rows
    }

    private func vacuum(_ floor: SQLiteBaseline, _ folder: RunFolder) throws -> [Report.Row] {
        try floor.makeTables(dataset)
        try floor.run(PreparedDataset(dataset), saveEvery: 500)
        try floor.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let imported = folder.fileBytes()
        let start = Clock.now()
        try floor.database.execute("VACUUM")
        try floor.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let seconds = Double(Clock.now() - start) / 1e9
        return [
            row("sqlite-raw", operation: "imported", bytes: imported),
            row("sqlite-raw", operation: "vacuumed", bytes: folder.fileBytes(), seconds: seconds),
        ]
    }

    private func strata() async throws -> ([Report.Row], [String]) {
        let folder = try RunFolder()
        let other = try RunFolder()
        let model = try DatasetModel(dataset)
        let copy = URL(filePath: other.path("store.strata"))
        return try await folder.run(.siblings(.lmdb), importing: dataset, model: model) { container, _ in
            let importer = Importer(data: PreparedDataset(dataset), model: model, savePoints: .every(500), durability: .deferred)
            let ids = try await importer.run(container.importContext(name: "import")).ids
            try await container.flush()
            var rows = [row("strata", operation: "imported", bytes: folder.fileBytes())]
            var start = Clock.now()
            let result = try await container.compact(CompactionOptions(age: .any, effort: effort))
            rows.append(row("strata", operation: "packed", bytes: folder.fileBytes(), seconds: Double(Clock.now() - start) / 1e9))
            start = Clock.now()
            try await container.compactCopy(to: copy)
            rows.append(row("strata", operation: "copied", bytes: other.fileBytes(), seconds: Double(Clock.now() - start) / 1e9))
            try await Verification(dataset: dataset, model: model, ids: ids).run(
                PersistentContainer(model: model.model, store: .lmdb(copy), stack: .siblings))
            let note =
                "Packed \(result.pagesPacked) of \(result.pages) pages, from \(result.bytesBefore) to \(result.bytesAfter) bytes; the "
                + "longest write transaction took \(result.longestWrite)."
            return ((rows, [note]), ids)
        }
    }
}
