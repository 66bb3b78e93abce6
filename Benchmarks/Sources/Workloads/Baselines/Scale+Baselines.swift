import Datasets
import Figures
import StoreInterface

/// The same work in C calls.
extension Scale {
    func run<Baseline: RecordBaseline>(_ type: Baseline.Type, _ size: Int) throws -> Figures {
        let folder = try RunFolder()
        let path = folder.path("records")
        let (reads, updates) = (randomRows(size, seed &+ 1), randomRows(size, seed &+ 2))
        var figures = Figures()
        try fill(type, path: path, size: size, figures: &figures)
        figures.fileBytes = folder.fileBytes()
        let expected = ExpectedRecords(size, seed: checkedSeed, picks: reads, updates: updates)
        try use(type, path: path, size: size, reads: reads, updates: updates, expected: expected, figures: &figures)
        try Baseline(path: path, durability: durability).checksum()
            .check("scale, \(Baseline.engine.rawValue): \(size) records after the updates", expected.checksum)
        return figures
    }

    private func fill<Baseline: RecordBaseline>(_ type: Baseline.Type, path: String, size: Int, figures: inout Figures)
        throws
    {
        let baseline = try Baseline(path: path, durability: durability)
        var random = SeededNumbers(seed: seed)
        var spent: UInt64 = 0
        Memory.resetPeak()
        let before = Memory.anonymousBytes()
        for begin in stride(from: 0, to: size, by: saveEvery) {
            let rows = (begin..<min(size, begin + saveEvery)).map { _ in RecordData.values(&random) }
            let start = Clock.now()
            try baseline.insert(rows, from: begin)
            spent += Clock.now() - start
        }
        figures.insert = Double(spent) / Double(size)
        figures.memoryBytes = max(0, Memory.anonymousBytes() - before)
    }

    private func use<Baseline: RecordBaseline>(
        _ type: Baseline.Type, path: String, size: Int, reads: [Int], updates: [Int], expected: ExpectedRecords,
        figures: inout Figures
    ) throws {
        let start = Clock.now()
        let baseline = try Baseline(path: path, durability: durability)
        figures.openNanoseconds = Double(Clock.now() - start)
        try baseline.beginReading()
        var sum = 0
        figures.read = try cost(reads.count) { for row in reads { sum += try baseline.count(row) } }
        try check(Baseline.engine, what: "point reads", found: sum, expected: expected.pickedSum)
        var count = 0
        figures.scan = try cost(size) { count = try baseline.matching() }
        try check(Baseline.engine, what: "the scan", found: count, expected: expected.matching)
        try baseline.endReading()
        figures.update = try cost(updates.count) { try baseline.update(updates, saveEvery: saveEvery) }
    }
}
