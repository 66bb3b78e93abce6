import StoreInterface
import StoreModel

/// The model of the checks.
package enum Sample {
    package static let item = 0
    package static let owner = 1
    package static let everything = 2
    package static let tags = 0

    // Columns of an item.
    package static let name = 0
    package static let number = 1
    package static let ratio = 2
    package static let unsigned = 3
    package static let flag = 4
    package static let note = 5
    package static let parent = 6
    package static let owned = 7
    package static let second = 8

    package static let schema = StoreSchema(
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

extension Layer {
    package func insert(_ entity: Int, key: ObjectKey, values: [Value]) {
        let row = Row.make(kind: .insert, layer: id, columnCount: values.count)
        for (column, value) in values.enumerated() { row[column] = value }
        put(row, entity: entity, key: key)
    }

    package func insertItem(_ key: ObjectKey, name: String = "", number: Int64? = nil, changing: [Int: Value] = [:]) {
        var values: [Value] = [
            .string(name), number.map { .int($0) } ?? .null, .null, .null, .bool(false), .null, .null, .null, .null,
        ]
        for (column, value) in changing { values[column] = value }
        insert(Sample.item, key: key, values: values)
    }

    package func insertOwner(_ key: ObjectKey, _ title: String) { insert(Sample.owner, key: key, values: [.string(title)]) }

    package func update(_ entity: Int, key: ObjectKey, of count: Int, values: [Int: Value]) {
        let row = Row.make(kind: .update, layer: id, columnCount: count)
        for (column, value) in values { row[column] = value }
        put(row, entity: entity, key: key)
    }

    package func updateItem(_ key: ObjectKey, _ values: [Int: Value]) {
        update(Sample.item, key: key, of: Sample.schema.entities[Sample.item].columns.count, values: values)
    }

    package func delete(_ entity: Int, _ key: ObjectKey) {
        put(Row.make(kind: .delete, layer: id, columnCount: 0), entity: entity, key: key)
    }
}

extension StoreSnapshot {
    /// Returns the values of an object from its page, or nil if the page does not have it.
    package func pageValues(_ entity: Int, _ key: ObjectKey) throws -> [Value]? {
        let slot = key.slot
        guard let page = try page(entity, key.page), try page.contains(slot) else { return nil }
        return try schema.entities[entity].columns.indices.map { try page.value(slot, $0) }
    }

    package func all(_ entity: Int) throws -> [ObjectKey] { try keys(StoreQuery(entity: entity)) }
}
