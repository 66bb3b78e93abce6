import LMDB
import StoreInterface
import StoreModel

/// The names of the sub-databases that a schema needs, for comparing two versions of a schema.
struct StoredTables {
    struct Index {
        var name: String
        /// The position of the entity, and of the columns in the entity.
        var entity: EntityIndex
        var columns: [ColumnIndex]
        var isReference: Bool
        var isUnique: Bool

        var kind: Database.Kind { isReference ? .integersToIntegers : .bytesToIntegers }
    }

    /// The indexes per entity: indexes over one column, ascending, then indexes over several columns in the schema's order.
    private(set) var indexes: [[Index]] = []
    private(set) var pages: [String] = []
    private(set) var large: [String] = []
    private(set) var links: [(forward: String, backward: String)] = []

    /// The tables beside `meta` that every store has, whatever its schema. Their keys are numbers.
    static let ofEveryStore = ["history", "dictionaries", "tails"]

    private static let pagesPrefix = "pages."

    /// Returns the number in the file of the entity whose pages a table has; nil for another table.
    static func entityNumber(ofPages name: String) -> Int? {
        name.hasPrefix(pagesPrefix) ? Int(name.dropFirst(pagesPrefix.count)) : nil
    }

    /// Returns the kind of a table with this name. The kind of an index depends on its column, and is nil here.
    static func kind(ofTable name: String) -> Database.Kind? {
        if name == MetaTable.name { return .bytes }
        if name.hasPrefix("link.") { return .integersToIntegers }
        let isNumbered = name.hasPrefix(pagesPrefix) || name.hasPrefix("large.") || ofEveryStore.contains(name)
        return isNumbered ? .integers : nil
    }

    init(_ stored: StoredSchema) {
        for (position, (entity, numbers)) in zip(stored.schema.entityIndices, zip(stored.schema.entities, stored.entities)) {
            pages.append("\(Self.pagesPrefix)\(numbers.number)")
            large.append("large.\(numbers.number)")
            func index(_ columns: [ColumnIndex], isReference: Bool, _ kind: IndexKind) -> Index {
                Index(
                    name: "index.\(numbers.number)." + columns.map { String(numbers.columns[$0].number) }.joined(separator: "+"),
                    entity: position, columns: columns, isReference: isReference, isUnique: kind == .unique)
            }
            var own: [Index] = []
            for (column, definition) in entity.columns.enumerated(as: ColumnIndex.self) where Tables.isIndexed(definition) {
                own.append(index([column], isReference: definition.type == .reference, definition.index))
            }
            own += entity.indexes.map { index($0.columns, isReference: false, $0.kind) }
            indexes.append(own)
        }
        for link in stored.links {
            let names = (forward: "link.\(link.number).forward", backward: "link.\(link.number).backward")
            links.append(link.isReversed ? (names.backward, names.forward) : names)
        }
    }

    /// All names with their kinds.
    var all: [String: Database.Kind] {
        var all: [String: Database.Kind] = [:]
        for name in pages + large { all[name] = .integers }
        for index in indexes.joined() { all[index.name] = index.kind }
        for link in links {
            all[link.forward] = .integersToIntegers
            all[link.backward] = .integersToIntegers
        }
        return all
    }
}
