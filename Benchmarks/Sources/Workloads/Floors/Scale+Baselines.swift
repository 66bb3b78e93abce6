import Datasets
import Figures
import StoreInterface

/// The same work in C calls.
extension Scale {
    func run<Floor: RecordFloor>(_ type: Floor.Type, _ size: Int) throws -> Figures {
        let folder = try RunFolder()
        let path = folder.path("records")
        let (reads, updates) = (randomRows(size, seed &+ 1), randomRows(size, seed &+ 2))
        var figures = Figures()
        try fill(type, path, size, &figures)
        figures.fileBytes = folder.fileBytes()
        let expected = ExpectedRecords(size, seed: checkedSeed, picks: reads, updates: updates)
        try use(type, path, size, reads, updates, expected, &figures)
        try Floor(path: path, durability: durability).checksum()
            .check("scale, \(Floor.engine.rawValue): \(size) records after the updates", expected.checksum)
        return figures
    }

    private func fill<Floor: RecordFloor>(_ type: Floor.Type, _ path: String, _ size: Int, _ figures: inout Figures) throws {
        let floor = try Floor(path: path, durability: durability)
        var random = SeededNumbers(seed: seed)
        var spent: UInt64 = 0
        Memory.resetPeak()
        let before = Memory.anonymousBytes()
        for begin in stride(from: 0, to: size, by: saveEvery) {
            let rows = (begin..<min(size, begin + saveEvery)).map { _ in RecordData.values(&random) }
            let start = Clock.now()
            try floor.insert(rows, from: begin)
            spent += Clock.now() - start
        }
        figures.insert = Double(spent) / Double(size)
        figures.memoryBytes = max(0, Memory.anonymousBytes() - before)
    }

    private func use<Floor: RecordFloor>(
        _ type: Floor.Type, _ path: String, _ size: Int, _ reads: [Int], _ updates: [Int], _ expected: ExpectedRecords,
        _ figures: inout Figures
    ) throws {
        let start = Clock.now()
        let floor = try Floor(path: path, durability: durability)
        figures.openNanoseconds = Double(Clock.now() - start)
        try floor.beginReading()
        var sum = 0
        figures.read = try cost(reads.count) { for row in reads { sum += try floor.count(row) } }
        try check(Floor.engine, "point reads", sum, expected.pickedSum)
        var count = 0
        figures.scan = try cost(size) { count = try floor.matching() }
        try check(Floor.engine, "the scan", count, expected.matching)
        try floor.endReading()
        figures.update = try cost(updates.count) { try floor.update(updates, saveEvery: saveEvery) }
    }
}
