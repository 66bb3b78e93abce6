import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A count of the data in a file that a changed model drops, before the change is written (S165).
///
/// It reads each page of the affected entities once per loss. It reads nothing if nothing is lost.
struct LossCount {
    /// All versions of the schema up to the file's version.
    let versions: [StoredSchema]
    let meta: Database
    /// The format of the file.
    let format: UInt64
    let path: String

    func check(_ losses: [SchemaLoss], in transaction: WriteTransaction) throws {
        guard let found = versions.last else { return }
        try losses.check(path: path) { subject in
            switch subject {
            case .objects(let entity):
                return try sum(found, entity: entity, in: transaction) { page, _ in page.presence.nonzeroBitCount }
            case .objectsOfType(let entity, let column, let type):
                return try sum(found, entity: entity, in: transaction) { page, _ in
                    try SlotIterator(page.presence).reduce(0) { try page.value($1, column) == .int(type) ? $0 + 1 : $0 }
                }
            case .values(let entity, let column):
                return try sum(found, entity: entity, in: transaction) { page, _ in
                    try SlotIterator(page.presence).reduce(0) { try page.isNull($1, column) ? $0 : $0 + 1 }
                }
            case .valuesOfTypes(let entity, let column, let typeColumn, let types):
                return try sum(found, entity: entity, in: transaction) { page, _ in
                    try SlotIterator(page.presence).reduce(0) { sum, slot in
                        try !page.isNull(slot, column) && types.contains(page.type(slot, typeColumn)) ? sum + 1 : sum
                    }
                }
            case .unanswered(let entity, let column, let backEntity, let backColumn):
                return try unanswered(found, place: (entity, column), back: (backEntity, backColumn), in: transaction)
            case .pairs(let link):
                let name = StoredTables(found).links[link].forward
                return try transaction.statistics(transaction.open(name, .integersToIntegers)).entries
            case .pairsOfTypes(let link, let entity, let typeColumn, let types):
                let ends: Ends = (entity: entity, typeColumn: typeColumn, types: types)
                return try pairs(StoredTables(found).links[link].forward, of: ends, found, in: transaction)
            case .referencesToTypes(let entity, let column, let farEntity, let typeColumn, let types):
                let far = try keys(of: (entity: farEntity, typeColumn: typeColumn, types: types), found, in: transaction)
                return try sum(found, entity: entity, in: transaction) { page, _ in
                    try SlotIterator(page.presence).reduce(0) { sum, slot in
                        guard let target = try page.value(slot, column).referenceKey else { return sum }
                        return far.contains(target) ? sum + 1 : sum
                    }
                }
            case .pairsToTypes(let link, let entity, let typeColumn, let types):
                let ends: Ends = (entity: entity, typeColumn: typeColumn, types: types)
                return try pairs(StoredTables(found).links[link].backward, of: ends, found, in: transaction)
            }
        }
    }

    private func sum(
        _ found: StoredSchema, entity: EntityIndex, in transaction: WriteTransaction,
        _ count: (ObjectPage, PageNumber) throws -> Int
    ) throws -> Int {
        var sum = 0
        try pages(of: entity, found, transaction).forEachPage(of: 0, in: transaction) { number, page in
            sum += try count(page, number)
        }
        return sum
    }

    /// The objects of some types of a hierarchy. Without a column of types, all objects have the type 0.
    private typealias Ends = (entity: EntityIndex, typeColumn: ColumnIndex?, types: Set<Int64>)

    /// Returns the keys of the objects.
    private func keys(of ends: Ends, _ found: StoredSchema, in transaction: WriteTransaction) throws -> Set<ObjectKey> {
        var keys: Set<ObjectKey> = []
        _ = try sum(found, entity: ends.entity, in: transaction) { page, number in
            for slot in SlotIterator(page.presence) {
                guard try ends.types.contains(page.type(slot, ends.typeColumn)) else { continue }
                keys.insert(PageAddress.key(page: number, slot: slot))
            }
            return 0
        }
        return keys
    }

    /// Returns the number of the objects' pairs.
    /// - Parameter table: The table of the pairs that has the keys of these objects first.
    private func pairs(
        _ table: String, of ends: Ends, _ found: StoredSchema, in transaction: WriteTransaction
    ) throws -> Int {
        let pairs = try transaction.open(table, .integersToIntegers)
        return try transaction.withCursor(pairs) { cursor in
            try sum(found, entity: ends.entity, in: transaction) { page, number in
                try SlotIterator(page.presence).reduce(0) { sum, slot in
                    guard try ends.types.contains(page.type(slot, ends.typeColumn)),
                        try cursor.find(PageAddress.key(page: number, slot: slot)) != nil
                    else { return sum }
                    return try sum + cursor.valueCount()
                }
            }
        }
    }

    private func unanswered(
        _ found: StoredSchema, place: (entity: EntityIndex, column: ColumnIndex),
        back: (entity: EntityIndex, column: ColumnIndex),
        in transaction: WriteTransaction
    ) throws -> Int {
        var answers: [ObjectKey: ObjectKey] = [:]
        _ = try sum(found, entity: back.entity, in: transaction) { page, number in
            for slot in SlotIterator(page.presence) {
                guard let target = try page.value(slot, back.column).referenceKey else { continue }
                answers[PageAddress.key(page: number, slot: slot)] = target
            }
            return 0
        }
        return try sum(found, entity: place.entity, in: transaction) { page, number in
            try SlotIterator(page.presence).reduce(0) { sum, slot in
                guard let target = try page.value(slot, place.column).referenceKey else { return sum }
                return answers[target] == PageAddress.key(page: number, slot: slot) ? sum : sum + 1
            }
        }
    }

    /// Returns the pages of one entity only, so that few tables are opened.
    private func pages(of entity: EntityIndex, _ found: StoredSchema, _ transaction: WriteTransaction) throws -> OpeningPages {
        var alone = found
        var definition = found.schema.entities[entity]
        let layout = try PageLayout(
            definition, schemaNumber: UInt32(versions.count),
            entityNumber: format > 1 ? found.entities[entity].number : nil,
            older: versions.dropLast().enumerated().compactMap { position, older in
                found.sources(of: older, number: position + 1, entity: entity)
            })
        definition.indexes = []
        for column in definition.columns.indices { definition.columns[column].index = .none }
        alone.schema.entities = [definition]
        alone.entities = [found.entities[entity]]
        alone.links = []
        let tables = try Tables(alone, meta: meta, in: transaction)
        return OpeningPages(
            tables: tables, dictionaries: Dictionaries(tables), layouts: [layout], schema: alone.schema, path: path)
    }
}

extension ObjectPage {
    /// Returns the type of an object in a hierarchy. Objects that are older than the hierarchy have none.
    fileprivate func type(_ slot: Int, _ column: ColumnIndex?) throws -> Int64 {
        if let column, case .int(let type) = try value(slot, column) { type } else { 0 }
    }
}
