import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// The choice of a dictionary for packing an entity's pages: an existing dictionary, or a newly trained one.
struct CompactionDictionary {
    /// The minimum number of pages. With fewer pages, a dictionary takes more space than it saves.
    private static let fewestPages = 64
    /// The growth factor of the entity after which a new dictionary is trained.
    private static let growth = 8
    private static let sampleByteCount = 8 << 20
    private static let maximumByteCount = 64 << 10

    private enum Choice {
        /// The entity has too few pages for a dictionary.
        case noDictionary
        case stored(DictionaryRecord, number: UInt32)
        /// A new dictionary, which is not in the file yet.
        case trained(DictionaryRecord)
    }

    let store: LMDBStore
    let entity: EntityIndex
    let options: CompactionOptions
    let cancellation: Cancellation

    /// Returns a packer with the dictionary, or nil if the entity has no pages.
    func packer() throws -> PagePacker? {
        do {
            guard let choice = try chosen() else { return nil }
            switch choice {
            case .noDictionary: return try PagePacker(dictionary: nil, number: 0, level: options.effort.level)
            case .stored(let record, let number): return try packer(record, number)
            case .trained(let record):
                let number = try store.writeTables(pages: Self.maximumByteCount / store.pageSize + 16) {
                    try store.dictionaries.add(record.encoded(), entity, in: $0)
                }
                return try packer(record, number)
            }
        } catch let error as PageError {
            let name = store.schema.entities[entity].name
            throw StoreError.damaged(store, "the dictionary of \(name): \(error)", cause: error)
        }
    }

    /// Returns the dictionary to use, or nil if the entity has no pages. Its snapshot ends before a new dictionary is written, so
    /// that the map can grow.
    private func chosen() throws -> Choice? {
        let snapshot = try store.newestSnapshot()
        let pages = try snapshot.pageCount(entity)
        guard pages > 0 else { return nil }
        let newest = try store.mappingErrors { try store.dictionaries.newest(entity, in: snapshot.transaction) }
        if let newest, pages / Self.growth < newest.record.pageCount { return .stored(newest.record, number: newest.number) }
        guard pages >= Self.fewestPages, let trained = try train(snapshot, pages) else { return .noDictionary }
        return .trained(DictionaryRecord(trained, pageCount: pages))
    }

    /// Multiplies without overflow, because the number of pages comes from the file.
    private static func product(_ pages: Int, _ byteCount: Int) -> Int {
        let (product, overflow) = pages.multipliedReportingOverflow(by: byteCount)
        return overflow ? .max : product
    }

    private func packer(_ record: DictionaryRecord, _ number: UInt32) throws -> PagePacker {
        try PagePacker(dictionary: record.dictionary(), number: number, level: options.effort.level)
    }

    /// Trains a dictionary from raw pages spread over the entity. A dictionary takes at most a fiftieth of the pages' size.
    private func train(_ snapshot: LMDBSnapshot, _ pages: Int) throws -> [UInt8]? {
        var training = DictionaryTraining()
        var byteCount = 0
        var seen = 0
        try snapshot.forEachPage(entity) { _, bytes in
            byteCount += bytes.count
            seen += 1
            // Selects one of every `share` pages, so that the samples represent the whole entity.
            let share = max(1, Self.product(pages, byteCount / seen) / Self.sampleByteCount)
            if seen % share == 0 { training.add(bytes) }
            if seen % 1024 == 0 { try cancellation.check() }
            return training.byteCount < Self.sampleByteCount ? .next : .stop
        }
        try cancellation.check()
        let whole = Self.product(pages, byteCount / max(seen, 1))
        return training.dictionary(maximumByteCount: min(Self.maximumByteCount, whole / 50), level: options.effort.level)
    }
}

extension CompactionOptions.Effort {
    /// The zstd level.
    fileprivate var level: Int {
        switch self {
        case .fast: 3
        case .usual: 16
        }
    }
}
