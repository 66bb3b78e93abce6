import StoreInterface
import StoreModel

/// The model of the checks.
package enum Sample {
    package static let item: EntityIndex = 0
    package static let owner: EntityIndex = 1
    package static let everything: EntityIndex = 2
    package static let tags: LinkIndex = 0

    // Columns of an item.
    package static let name: ColumnIndex = 0
    package static let number: ColumnIndex = 1
    package static let ratio: ColumnIndex = 2
    package static let unsigned: ColumnIndex = 3
    package static let flag: ColumnIndex = 4
    package static let note: ColumnIndex = 5
    package static let parent: ColumnIndex = 6
    package static let owned: ColumnIndex = 7
    package static let second: ColumnIndex = 8

    /// Returns the column of ``everything`` with a type.
    static func column(of type: ColumnType) -> ColumnIndex {
        guard let position = ColumnType.allCases.firstIndex(of: type) else { preconditionFailure("no column of \(type)") }
        return ColumnIndex(rawValue: position)
    }

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
    package func insert(_ entity: EntityIndex, key: ObjectKey, values: [Value]) {
        let row = Row.make(kind: .insert, layer: id, columnCount: values.count)
        for (column, value) in values.enumerated(as: ColumnIndex.self) { row[column] = value }
        put(row, entity: entity, key: key)
    }

    package func insertItem(_ key: ObjectKey, name: String = "", number: Int64? = nil, changing: [ColumnIndex: Value] = [:]) {
        var values: [Value] = [
            .string(name), number.map { .int($0) } ?? .null, .null, .null, .bool(false), .null, .null, .null, .null,
        ]
        for (column, value) in changing { values[column] = value }
        insert(Sample.item, key: key, values: values)
    }

    package func insertOwner(_ key: ObjectKey, _ title: String) { insert(Sample.owner, key: key, values: [.string(title)]) }

    package func update(_ entity: EntityIndex, key: ObjectKey, of count: Int, values: [ColumnIndex: Value]) {
        let row = Row.make(kind: .update, layer: id, columnCount: count)
        for (column, value) in values { row[column] = value }
        put(row, entity: entity, key: key)
    }

    package func updateItem(_ key: ObjectKey, _ values: [ColumnIndex: Value]) {
        update(Sample.item, key: key, of: Sample.schema.entities[Sample.item].columns.count, values: values)
    }

    package func delete(_ entity: EntityIndex, _ key: ObjectKey) {
        put(Row.make(kind: .delete, layer: id, columnCount: 0), entity: entity, key: key)
    }
}

extension StoreSnapshot {
    /// Returns the values of an object from its page, or nil if the page does not have it.
    package func pageValues(_ entity: EntityIndex, _ key: ObjectKey) throws -> [Value]? {
        let slot = key.slot
        guard let page = try page(entity, key.page), try page.contains(slot) else { return nil }
        return try schema.entities[entity].columnIndices.map { try page.value(slot, $0) }
    }

    package func all(_ entity: EntityIndex) throws -> [ObjectKey] { try keys(StoreQuery(entity: entity)) }
}
