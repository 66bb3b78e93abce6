import PageCodec
import StoreInterface
import StoreModel

/// A check of one entity's large values against the pages that refer to them.
struct LargeValueCheck {
    private let snapshot: LMDBSnapshot
    private let entity: EntityIndex
    private var numbers: Set<UInt64> = []
    private var chunks = 0
    private(set) var problems: [String] = []

    init(_ snapshot: LMDBSnapshot, _ entity: EntityIndex) {
        self.snapshot = snapshot
        self.entity = entity
    }

    private var name: String { snapshot.schema.entities[entity].name }

    /// Checks each large value of a page: all of its chunks, its byte count, its hash, and for a string that it is UTF-8.
    mutating func add(_ page: ObjectPage, _ number: PageNumber) throws {
        guard page.hasLargeValues else { return }
        let values = LargeValues(snapshot.reader, entity: entity)
        try page.eachLargeValue { record, kind in
            chunks += record.chunkCount
            guard numbers.insert(record.number).inserted else {
                problems.append("\(name), page \(number): large value \(record.number) is stored twice")
                return
            }
            do {
                var hash = LargeValueHash()
                try values.eachChunk(of: record) { chunk in
                    hash.add(chunk)
                    return true
                }
                if hash.value != record.hash {
                    problems.append("\(name), page \(number): large value \(record.number) has another hash than its record says")
                }
                if kind == .text, !(try values.isText(record)) {
                    problems.append("\(name), page \(number): large string \(record.number) is not UTF-8")
                }
            } catch let error as PageError {
                problems.append("\(name), page \(number): \(error)")
            }
        }
    }

    /// Checks, after all pages were added, that every other chunk belongs to a value that no save has claimed.
    mutating func finish() throws {
        try addUnreferenced()
        guard problems.isEmpty else { return }
        let found = try snapshot.store.mappingErrors {
            try snapshot.transaction.statistics(snapshot.store.tables.large[entity]).entries
        }
        if found != chunks { problems.append("\(name): has \(found) chunks of large values, but its objects have \(chunks)") }
    }

    /// Adds the values not yet claimed by a save. They may be incomplete, and no object refers to them.
    private mutating func addUnreferenced() throws {
        let tables = snapshot.store.tables
        let (transaction, number) = (snapshot.transaction, tables.entityNumbers[entity])
        let values = try snapshot.store.mappingErrors {
            try transaction.withCursor(tables.meta) { try UnreferencedValue.all(at: $0) }
        }
        for value in values where value.entityNumber == number {
            if numbers.contains(value.number) {
                problems.append("\(name): large value \(value.number) is in use, but also marked as unreferenced")
            }
            chunks += try snapshot.store.mappingErrors {
                try transaction.withCursor(tables.large[entity]) { cursor in
                    var count = 0
                    var found = try cursor.seek(LargeChunk.key(value.number, 0))
                    while let chunk = found, LargeChunk.number(ofKey: chunk.number) == value.number {
                        count += 1
                        found = try cursor.move(.next)
                    }
                    return count
                }
            }
        }
    }
}
