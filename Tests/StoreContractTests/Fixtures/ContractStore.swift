import Foundation
import StoreInterface

/// The model of the contract suite.
enum Sample {
    static let item = 0
    static let owner = 1
    static let everything = 2
    static let tags = 0

    // Columns of an item.
    static let name = 0
    static let number = 1
    static let ratio = 2
    static let unsigned = 3
    static let flag = 4
    static let note = 5
    static let parent = 6
    static let owned = 7
    static let second = 8

    static let schema = StoreSchema(
        entities: [
            EntitySchema(
                name: "Item",
                columns: [
                    ColumnSchema(name: "name", type: .string, index: .indexed),
                    ColumnSchema(name: "number", type: .int64, isOptional: true, index: .indexed),
                    ColumnSchema(name: "ratio", type: .double, isOptional: true, index: .indexed),
                    ColumnSchema(name: "unsigned", type: .uint64, isOptional: true, index: .indexed),
                    ColumnSchema(name: "flag", type: .bool),
                    ColumnSchema(name: "note", type: .string, isOptional: true),
                    ColumnSchema(name: "parent", type: .reference, isOptional: true, destination: 0),
                    ColumnSchema(name: "owned", type: .reference, isOptional: true, destination: 1),
                    ColumnSchema(name: "second", type: .int32, isOptional: true),
                ],
                indexes: [
                    IndexSchema(columns: [name, number]), IndexSchema(columns: [flag, second, note]),
                    IndexSchema(columns: [owned, ratio], kind: .unique),
                ]),
            EntitySchema(name: "Owner", columns: [ColumnSchema(name: "title", type: .string, index: .unique)]),
            EntitySchema(
                name: "Everything",
                columns: ColumnType.allCases.map { type in
                    ColumnSchema(
                        name: type == .data ? "Version" : type.rawValue, type: type, isOptional: true,
                        index: type == .reference ? .none : .indexed, destination: type == .reference ? 1 : nil)
                }),
        ],
        links: [LinkSchema(name: "Item.tags", source: 0, destination: 1)])
}

/// An open store, with short methods to write to it.
struct ContractStore {
    let folder: TemporaryFolder
    let kind: StoreKind
    var store: any ObjectStore

    init(_ kind: StoreKind) throws {
        folder = try TemporaryFolder()
        self.kind = kind
        store = try kind.description(in: folder).open(Sample.schema)
    }

    /// A second store object on the same file.
    func openAgain() throws -> any ObjectStore { try kind.description(in: folder).open(Sample.schema) }

    func snapshot() throws -> any StoreSnapshot { try store.snapshot() }

    @discardableResult
    func save(_ durability: Durability = .deferred, author: String = "", _ build: (Layer) -> Void) throws -> Generation {
        try Self.save(store, durability, origin: SaveOrigin(author: author), build)
    }

    @discardableResult
    func save(origin: SaveOrigin, _ build: (Layer) -> Void) throws -> Generation {
        try Self.save(store, .deferred, origin: origin, build)
    }

    @discardableResult
    static func save(
        _ store: any ObjectStore, _ durability: Durability = .deferred, origin: SaveOrigin = SaveOrigin(),
        _ build: (Layer) -> Void
    ) throws -> Generation {
        try store.write(durability) { transaction in
            let layer = Layer(schema: store.schema)
            build(layer)
            layer.stamp(transaction.generation + 1)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet(origin: origin))
            return layer.generation
        }
    }
}

extension Layer {
    func insert(_ entity: Int, _ key: ObjectKey, _ values: [Value]) {
        let row = Row.make(kind: .insert, layer: id, columnCount: values.count)
        for (column, value) in values.enumerated() { row[column] = value }
        put(row, entity: entity, key: key)
    }

    func insertItem(_ key: ObjectKey, name: String = "", number: Int64? = nil, changing: [Int: Value] = [:]) {
        var values: [Value] = [
            .string(name), number.map { .int($0) } ?? .null, .null, .null, .bool(false), .null, .null, .null, .null,
        ]
        for (column, value) in changing { values[column] = value }
        insert(Sample.item, key, values)
    }

    func insertOwner(_ key: ObjectKey, _ title: String) { insert(Sample.owner, key, [.string(title)]) }

    func update(_ entity: Int, _ key: ObjectKey, of count: Int, _ values: [Int: Value]) {
        let row = Row.make(kind: .update, layer: id, columnCount: count)
        for (column, value) in values { row[column] = value }
        put(row, entity: entity, key: key)
    }

    func updateItem(_ key: ObjectKey, _ values: [Int: Value]) {
        update(Sample.item, key, of: Sample.schema.entities[Sample.item].columns.count, values)
    }

    func delete(_ entity: Int, _ key: ObjectKey) {
        put(Row.make(kind: .delete, layer: id, columnCount: 0), entity: entity, key: key)
    }
}

extension StoreSnapshot {
    /// Returns the values of an object from its page, or nil if the page does not have it.
    func pageValues(_ entity: Int, _ key: ObjectKey) throws -> [Value]? {
        let slot = PageAddress.slot(of: key)
        guard let page = try page(entity, PageAddress.page(of: key)), try page.contains(slot) else { return nil }
        return try schema.entities[entity].columns.indices.map { try page.value(slot, $0) }
    }

    func all(_ entity: Int) throws -> [ObjectKey] { try keys(StoreQuery(entity: entity)) }
}
