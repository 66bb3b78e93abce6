import Datasets
import Figures
import Floors

/// The work in C calls. After the work each file is reopened and checked.
extension Storage {
    func runSQLite() throws -> EngineFigures {
        var figures = EngineFigures()
        let folder = try RunFolder()
        figures.costs[.importing] = try importSQLite(folder.path("import.sqlite"))
        try SQLiteFloor.verify(folder.path("import.sqlite"), imported)
        let other = try RunFolder()
        try workSQLite(other, &figures)
        try SQLiteFloor.verify(other.path("records.sqlite"), updated)
        return figures
    }

    private func importSQLite(_ path: String) throws -> Double {
        let floor = try SQLiteFloor(path: path, durability: durability)
        try floor.makeTables(imported)
        return try cost(imported.rowCount) { try floor.run(importedData, saveEvery: saveEvery) }
    }

    private func workSQLite(_ folder: RunFolder, _ figures: inout EngineFigures) throws {
        let floor = try SQLiteFloor(path: folder.path("records.sqlite"), durability: durability)
        try floor.makeTables(records)
        figures.costs[.insert] = try cost(records.rowCount) { try floor.run(recordData, saveEvery: saveEvery) }
        figures.fileBytes = folder.fileBytes()
        try use(SQLiteRecords(floor), .sqliteRaw, &figures)
    }

    func runLMDB() throws -> EngineFigures {
        var figures = EngineFigures()
        let folder = try RunFolder()
        figures.costs[.importing] = try importLMDB(folder.path("import.lmdb"))
        try LMDBFloor.verify(folder.path("import.lmdb"), imported)
        let other = try RunFolder()
        try workLMDB(other, &figures)
        try LMDBFloor.verify(other.path("records.lmdb"), updated)
        return figures
    }

    private func importLMDB(_ path: String) throws -> Double {
        let floor = try LMDBFloor(path: path, durability: durability)
        try floor.makeTables(imported)
        return try cost(imported.rowCount) { try floor.run(importedData, saveEvery: saveEvery) }
    }

    private func workLMDB(_ folder: RunFolder, _ figures: inout EngineFigures) throws {
        let floor = try LMDBFloor(path: folder.path("records.lmdb"), durability: durability)
        try floor.makeTables(records)
        figures.costs[.insert] = try cost(records.rowCount) { try floor.run(recordData, saveEvery: saveEvery) }
        figures.fileBytes = folder.fileBytes()
        try use(LMDBRecords(floor.environment, floor.firstTable), .lmdbRaw, &figures)
    }

    /// Reads, scans and updates existing records.
    private func use(_ floor: some RecordFloor, _ engine: Engine, _ figures: inout EngineFigures) throws {
        try floor.beginReading()
        var sum = 0
        figures.costs[.pointRead] = try cost(picks.count) { for row in picks { sum += try floor.count(row) } }
        try check(engine, "point reads", sum, pickedSum)
        var count = 0
        figures.costs[.scan] = try cost(records.rowCount) { count = try floor.matching() }
        try check(engine, "the scan", count, matching)
        try floor.endReading()
        figures.costs[.update] = try cost(picks.count) { try floor.update(picks, saveEvery: saveEvery) }
    }
}
