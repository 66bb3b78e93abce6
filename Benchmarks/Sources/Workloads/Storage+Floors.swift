import Datasets
import Figures
import Floors

/// The work in C calls. Each file is opened anew and checked when the work on it is over.
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
        return try cost(imported.rowCount) { try floor.run(imported, saveEvery: saveEvery) }
    }

    private func workSQLite(_ folder: RunFolder, _ figures: inout EngineFigures) throws {
        let floor = try SQLiteFloor(path: folder.path("records.sqlite"), durability: durability)
        try floor.makeTables(records)
        figures.costs[.insert] = try cost(records.rowCount) { try floor.run(records, saveEvery: saveEvery) }
        figures.fileBytes = folder.fileBytes()
        let database = floor.database
        var sum = 0
        let get = try database.prepare("SELECT \"count\" FROM \"Record\" WHERE id_key = ?")
        try database.execute("BEGIN")
        figures.costs[.pointRead] = try cost(picks.count) {
            for row in picks {
                get.bind(1, Int64(row + 1))
                if try get.step() { sum += Int(get.int(0)) }
                get.reset()
            }
        }
        try check(.sqliteRaw, "point reads", sum, pickedSum)
        let scan = try database.prepare("SELECT COUNT(*) FROM \"Record\" WHERE \"count\" >= ? AND kind = ?")
        scan.bind(1, RecordData.leastCount)
        scan.bind(2, RecordData.kind)
        var count = 0
        figures.costs[.scan] = try cost(records.rowCount) {
            if try scan.step() { count = Int(scan.int(0)) }
            scan.reset()
        }
        try database.execute("COMMIT")
        try check(.sqliteRaw, "the scan", count, matching)
        figures.costs[.update] = try cost(picks.count) { try floor.updateAmounts(picks, saveEvery) }
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
        return try cost(imported.rowCount) { try floor.run(imported, saveEvery: saveEvery) }
    }

    private func workLMDB(_ folder: RunFolder, _ figures: inout EngineFigures) throws {
        let floor = try LMDBFloor(path: folder.path("records.lmdb"), durability: durability)
        try floor.makeTables(records)
        figures.costs[.insert] = try cost(records.rowCount) { try floor.run(records, saveEvery: saveEvery) }
        figures.fileBytes = folder.fileBytes()
        try floor.environment.begin(.reading)
        var sum = 0
        // In a row, "count" is the first value: a byte that says whether there is one, then eight bytes.
        figures.costs[.pointRead] = try cost(picks.count) {
            for row in picks {
                sum +=
                    try floor.environment.get(floor.firstTable, key: UInt64(row + 1)) { bytes in
                        Int(bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self))
                    } ?? 0
            }
        }
        try check(.lmdbRaw, "point reads", sum, pickedSum)
        var count = 0
        figures.costs[.scan] = try cost(records.rowCount) {
            try floor.environment.forEach(floor.firstTable) { bytes in
                if bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self) >= RecordData.leastCount,
                    bytes.loadUnaligned(fromByteOffset: 10, as: Int64.self) == RecordData.kind
                {
                    count += 1
                }
            }
        }
        try floor.environment.commit()
        try check(.lmdbRaw, "the scan", count, matching)
        figures.costs[.update] = try cost(picks.count) { try floor.updateAmounts(picks, saveEvery) }
    }
}
