import SQLiteStore
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension CoreDataFile {
    mutating func addAttributes(to number: Int) throws {
        let root = roots[number]
        var attributes: [TableAttribute] = []
        for (position, column) in root.table.columns.enumerated() where !CoreDataColumn.isInternal(column.name) {
            guard destination(of: position, in: root) == nil else { continue }
            let attribute = try attribute(position, root)
            if let note = noteOfUnknownDestination(position, in: root) { result.notes.append(note) }
            // Entities that inherit from one entity share an attribute of one name and type.
            if let shared = attributes.firstIndex(where: { $0.canShare(attribute, in: root) }) {
                try attributes[shared].share(attribute)
            } else {
                attributes.append(attribute)
            }
        }
        for var attribute in attributes {
            attribute.name = take(attribute.name, of: attribute.owners[0], in: number)
            result.tables[number].attributes.append(attribute)
        }
    }

    private mutating func attribute(_ position: Int, _ root: CoreDataRoot) throws -> TableAttribute {
        let column = root.table.columns[position]
        let values = try withoutMarkers(position, root)
        let known = root.columns[position]
        var type: Int?
        if case .attribute(let found)? = known.property?.kind { type = found }
        let name = known.property?.name ?? column.name.dropFirst().lowercased()
        var attribute = try Self.converted(name, type: type, declared: column.declaredType, values: values)
        attribute.owners = known.owners
        attribute.defaultValue = known.property?.defaultValue.flatMap { Self.value($0, attribute.type) } ?? .null
        if let note = SQLiteTypes.note(attribute, values) {
            result.notes.append("\(root.table.name).\(column.name): \(note)")
        }
        let rows = values.indices.filter { root.isKind($0, of: known.owners) }
        attribute.isOptional =
            rows.isEmpty
            ? known.property?.isOptional ?? true
            : known.property?.isOptional == true || rows.contains { attribute.values[$0].isNull }
        return attribute
    }

    /// Returns the entity from which all these entities inherit.
    func commonOwner(_ owners: [Int], kinds: Set<Int>, in root: CoreDataRoot) -> Int {
        root.family.ancestor(of: owners[0], including: kinds.union(owners))
    }

    /// Converts values to the type that Core Data's number of a type means. Falls back to the type of the values.
    /// - Throws: `StoreError` if there is no room for a temporary file.
    private static func converted(
        _ name: String, type: Int?, declared: String, values: ValueColumn
    ) throws -> TableAttribute {
        func made(_ type: ColumnType, _ convert: (Value) -> Value?) throws -> TableAttribute? {
            guard let converted = try values.mapped({ $0.isNull ? .null : convert($0) }) else { return nil }
            return TableAttribute(name: name, type: type, isOptional: values.contains(.null), values: converted)
        }
        func number(_ value: Value) -> Value? {
            switch value {
            // nil if it is no double.
            case .int(let number): Double(exactly: number).map { .double($0) }
            case .double: value
            default: nil
            }
        }
        let hasValues = values.contains { !$0.isNull }
        let found: TableAttribute? =
            switch (type, declared) {
            case (100, _): try made(.int16) { ColumnType.int16.accepts($0, isOptional: false) ? $0 : nil }
            case (200, _): try made(.int32) { ColumnType.int32.accepts($0, isOptional: false) ? $0 : nil }
            case (300, _): try made(.int64) { ColumnType.int64.accepts($0, isOptional: false) ? $0 : nil }
            case (400, _), (500, _), (600, _): try made(.double, number)
            case (700, _), (1200, _): try made(.string) { if case .string = $0 { $0 } else { nil } }
            case (800, _): try made(.bool) { if case .int(let flag) = $0 { .bool(flag != 0) } else { nil } }
            case (900, _), (nil, "TIMESTAMP"): try made(.date, number)
            case (1000, _), (1800, _): try made(.data) { if case .data = $0 { $0 } else { nil } }
            case (1100, _): try made(.uuid, uuid)
            case (nil, "BLOB") where hasValues: try made(.uuid, uuid)
            default: nil
            }
        return try found ?? SQLiteTypes.attribute(name, declared: declared, values: values)
    }

    /// Returns the default of an attribute; null if it is none, or of a class that has no literal.
    private static func value(_ object: KeyedArchive.Object, _ type: ColumnType) -> Value {
        let value: Value =
            switch (object, type) {
            case (.bool(let flag), .bool): .bool(flag)
            case (.integer(let number), .bool): .bool(number != 0)
            case (.integer(let number), .double): Double(exactly: number).map { .double($0) } ?? .null
            case (.integer(let number), _): .int(Int64(number))
            case (.bool(let flag), _): .int(flag ? 1 : 0)
            case (.real(let number), .double): .double(number)
            case (.string(let text), .string) where text != "$null": .string(text)
            default: .null
            }
        return type.accepts(value, isOptional: true) ? value : .null
    }

    private static func uuid(_ value: Value) -> Value? {
        guard case .data(let data) = value, data.count == 16 else { return nil }
        return data.withUnsafeBytes { .uuid(UUID(uuid: $0.loadUnaligned(as: uuid_t.self))) }
    }
}

extension TableAttribute {
    /// Returns whether an attribute of entities beside those of this one can be the same attribute.
    fileprivate func canShare(_ other: TableAttribute, in root: CoreDataRoot) -> Bool {
        guard name == other.name, type == other.type else { return false }
        let areApart = owners.allSatisfy { owner in
            other.owners.allSatisfy { !root.family.inherits($0, from: owner) && !root.family.inherits(owner, from: $0) }
        }
        return areApart && zip(values, other.values).allSatisfy { $0.isNull || $1.isNull }
    }

    fileprivate mutating func share(_ other: TableAttribute) throws {
        owners += other.owners
        isOptional = isOptional || other.isOptional
        var others = other.values.makeIterator()
        values = try values.mapped { value in others.next().map { value.isNull ? $0 : value } } ?? values
    }
}
