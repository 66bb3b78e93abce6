import ObjectGraph

/// The ids of inserted rows, by row. It has one entry per run of adjacent keys, and one importer makes few runs.
struct RowIDs: Sendable {
    private struct Run {
        var row: Int
        var first: ObjectID
        var count: Int
    }

    private var runs: [Run] = []
    private(set) var count = 0

    init() {}

    init(_ ids: some Sequence<ObjectID>) {
        for id in ids { append(id) }
    }

    mutating func append(_ id: ObjectID) {
        if let last = runs.indices.last, runs[last].first.key.advanced(by: runs[last].count) == id.key {
            runs[last].count += 1
        } else {
            runs.append(Run(row: count, first: id, count: 1))
        }
        count += 1
    }

    subscript(row: Int) -> ObjectID {
        var (low, high) = (0, runs.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if runs[middle].row <= row { low = middle } else { high = middle }
        }
        let run = runs[low]
        return ObjectID(store: run.first.store, entity: run.first.entity, key: run.first.key.advanced(by: row - run.row))
    }

    /// Returns the row of an object, or nil if the object is not one of these rows.
    func row(of id: ObjectID) -> Int? {
        runs.lazy.compactMap { run in
            let offset = run.first.key.distance(to: id.key)
            return 0..<run.count ~= offset ? run.row + offset : nil
        }.first
    }
}
