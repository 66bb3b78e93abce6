import Datasets
import Figures
import Baselines

/// The work in C calls. After the work each file is reopened and checked.
extension Storage {
    func runSQLite() throws -> EngineFigures {
        var figures = EngineFigures()
        let folder = try RunFolder()
        figures.costs[.importing] = try importSQLite(folder.path("import.sqlite"))
        try SQLiteBaseline.verify(folder.path("import.sqlite"), imported)
        let other = try RunFolder()
        try workSQLite(other, &figures)
        try SQLiteBaseline.verify(other.path("records.sqlite"), updated)
        return figures
    }

    private func importSQLite(_ path: String) throws -> Double {
        let baseline = try SQLiteBaseline(path: path, durability: durability)
        try baseline.makeTables(imported)
        return try cost(imported.rowCount) { try baseline.run(importedData, saveEvery: saveEvery) }
    }

    private func workSQLite(_ folder: RunFolder, _ figures: inout EngineFigures) throws {
        let baseline = try SQLiteBaseline(path: folder.path("records.sqlite"), durability: durability)
        try baseline.makeTables(records)
        figures.costs[.insert] = try cost(records.rowCount) { try baseline.run(recordData, saveEvery: saveEvery) }
        figures.fileBytes = folder.fileBytes()
        try use(SQLiteRecords(baseline), engine: .sqliteRaw, figures: &figures)
    }

    func runLMDB() throws -> EngineFigures {
        var figures = EngineFigures()
        let folder = try RunFolder()
        figures.costs[.importing] = try importLMDB(folder.path("import.lmdb"))
        try LMDBBaseline.verify(folder.path("import.lmdb"), imported)
        let other = try RunFolder()
        try workLMDB(other, &figures)
        try LMDBBaseline.verify(other.path("records.lmdb"), updated)
        return figures
    }

    private func importLMDB(_ path: String) throws -> Double {
        let baseline = try LMDBBaseline(path: path, durability: durability)
        try baseline.makeTables(imported)
        return try cost(imported.rowCount) { try baseline.run(importedData, saveEvery: saveEvery) }
    }

    private func workLMDB(_ folder: RunFolder, _ figures: inout EngineFigures) throws {
        let baseline = try LMDBBaseline(path: folder.path("records.lmdb"), durability: durability)
        try baseline.makeTables(records)
        figures.costs[.insert] = try cost(records.rowCount) { try baseline.run(recordData, saveEvery: saveEvery) }
        figures.fileBytes = folder.fileBytes()
        try use(LMDBRecords(baseline.environment, baseline.firstTable), engine: .lmdbRaw, figures: &figures)
    }

    /// Reads, scans and updates existing records.
    private func use(_ baseline: some RecordBaseline, engine: Engine, figures: inout EngineFigures) throws {
        try baseline.beginReading()
        var sum = 0
        figures.costs[.pointRead] = try cost(picks.count) { for row in picks { sum += try baseline.count(row) } }
        try check(engine, what: "point reads", found: sum, expected: pickedSum)
        var count = 0
        figures.costs[.scan] = try cost(records.rowCount) { count = try baseline.matching() }
        try check(engine, what: "the scan", found: count, expected: matching)
        try baseline.endReading()
        figures.costs[.update] = try cost(picks.count) { try baseline.update(picks, saveEvery: saveEvery) }
    }
}
