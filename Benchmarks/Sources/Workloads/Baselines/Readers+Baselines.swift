import Datasets
import Figures
import Foundation

/// The same work in C calls. Each reader and the writer has a thread, because the calls block.
extension Readers {
    func run<Baseline: RecordBaseline>(_ type: Baseline.Type, count: Int, writer: Writer) async throws -> Figures {
        let folder = try RunFolder()
        let path = folder.path("records")
        let (figures, updates) = try await work(type, path: path, count: count, writer: writer)
        try Baseline(path: path, durability: durability).checksum()
            .check("readers, \(Baseline.engine.rawValue): records after \(updates) updates", expected(updates))
        return figures
    }

    private func work<Baseline: RecordBaseline>(
        _ type: Baseline.Type, path: String, count: Int, writer: Writer
    ) async throws -> (Figures, updates: Int) {
        let baseline = try Baseline(path: path, durability: durability)
        var random = SeededNumbers(seed: seed)
        try baseline.insert((0..<objects).map { _ in RecordData.values(&random) }, from: 0)
        let another = baseline.another
        let counts = counts
        let result = try await figures(count, writer) { number, end in
            try await onThread { try read(another(), counts, seed: seed &+ UInt64(number), until: end) }
        } write: { end in
            try await onThread { try write(another(), until: end) }
        }
        // LMDB's file stays open until here.
        withExtendedLifetime(baseline) {}
        return result
    }

    private func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread { continuation.resume(with: Swift.Result { try body() }) }.start()
        }
    }

    private func read(_ baseline: some RecordBaseline, _ counts: [Int], seed: UInt64, until end: UInt64) throws -> Part {
        var latencies = Self.emptyHistogram
        var random = SeededNumbers(seed: seed)
        var count = 0
        while Clock.now() < end {
            let picks = (0..<Self.readsAState).map { _ in random.below(counts.count) }
            var sum = 0
            try baseline.beginReading()
            for row in picks {
                let start = Clock.now()
                sum += try baseline.count(row)
                latencies.record(Clock.now() - start)
            }
            try baseline.endReading()
            let expected = picks.reduce(0) { $0 + counts[$1] }
            guard sum == expected else { throw VerificationError("readers: raw reads gave \(sum), expected \(expected)") }
            count += picks.count
        }
        return .reads(latencies, count)
    }

    private func write(_ baseline: some RecordBaseline, until end: UInt64) throws -> Part {
        var rows = updatedRows.makeIterator()
        var all: [Int] = []
        while Clock.now() < end {
            let first = all.count
            for _ in 0..<min(saveEvery, objects) { if let row = rows.next() { all.append(row) } }
            try baseline.update(all[first...])
        }
        return .updates(all.count, end: Clock.now())
    }
}
