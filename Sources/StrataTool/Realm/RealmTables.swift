import Datasets
import Foundation
import StoreInterface
import StoreModel

/// Makes tables of the classes of an export. Types are inferred from the values.
struct RealmTables {
    private typealias Value = RealmGraph.Value

    /// The values of a property, one per object.
    private struct Column {
        var name: String
        var values: [RealmGraph.Value]
    }

    private let classes: RealmClasses
    private let file: String
    private let size: Int
    private var names: PropertyNames
    private var columns: [[Column]] = []
    /// The primary key of each class, with the row of each value.
    private var keys: [(name: String, rows: [String: Int32])?] = []
    private var result: Dataset
    /// The names of properties of the file, which go before those of inverses.
    private var reserved: [[String: String]] = []

    init(_ classes: RealmClasses, file: String, size: Int) {
        self.classes = classes
        self.file = file
        self.size = size
        names = PropertyNames(tableCount: classes.classes.count)
        result = Dataset(
            name: file, tables: [], notes: ["an export of Realm Studio: types and relationships come from the values"])
    }

    mutating func dataset() throws -> Dataset {
        result.notes += classes.notes
        columns = try classes.classes.map { try self.columns(of: $0) }
        keys = columns.map(Self.key)
        reserved = columns.enumerated().map { table, columns in
            Dictionary(columns.map { ($0.name, names.take($0.name, in: table)) }, uniquingKeysWith: { first, _ in first })
        }
        result.tables = classes.classes.map { Table(name: $0.name, attributes: [], rowCount: $0.nodes.count) }
        for table in columns.indices {
            for column in columns[table] { add(column, to: table) }
        }
        for number in result.tables.indices {
            let table = result.tables[number]
            let types = table.attributes.map { "\($0.name) \($0.type.rawValue)\($0.isOptional ? "?" : "")" }
            result.notes.append("\(table.name): \(table.rowCount) objects: \(types.joined(separator: ", "))")
        }
        return result
    }

    /// Returns the properties of a class. Embedded objects and dictionaries may have different members.
    private func columns(of type: RealmClasses.Class) throws -> [Column] {
        var places: [String: Int] = [:]
        var order: [String] = []
        for node in type.nodes {
            for member in classes.graph.nodes[node] where places[member.name] == nil {
                places[member.name] = order.count
                order.append(member.name)
            }
        }
        guard order.count <= EntitySchema.maximumColumns, order.count * type.nodes.count <= 16 * size + 4096 else {
            throw classes.graph.failure("the objects of \(type.name) have too many different members (\(order.count))")
        }
        var columns = order.map { Column(name: $0, values: Array(repeating: .null, count: type.nodes.count)) }
        for (row, node) in type.nodes.enumerated() {
            for member in classes.graph.nodes[node] { columns[places[member.name] ?? 0].values[row] = member.value }
        }
        return columns
    }

    // MARK: Keys

    /// Returns the column that is the primary key of a class: one with a different value in each object, and with a usual name.
    private static func key(_ columns: [Column]) -> (name: String, rows: [String: Int32])? {
        for name in ["_id", "id", "uuid", "key", "identifier"] {
            guard let column = columns.first(where: { $0.name.lowercased() == name }), !column.values.isEmpty else { continue }
            var rows: [String: Int32] = [:]
            for (row, value) in column.values.enumerated() {
                guard let text = keyText(value), rows.updateValue(Int32(row), forKey: text) == nil else { break }
            }
            if rows.count == column.values.count { return (column.name, rows) }
        }
        return nil
    }

    /// Returns a value that can be a primary key as text; nil for other values.
    private static func keyText(_ value: Value) -> String? {
        switch value {
        case .number(let number): "n" + number
        case .text(let text): "t" + text
        default: nil
        }
    }

    /// Returns the class whose primary keys a property contains, in exports of old versions. Numbers and short texts must have a name like
    /// that of the class: every small number is a key somewhere.
    private func keyedClass(_ name: String, of table: Int, _ values: [Value]) -> Int? {
        let texts = values.compactMap { Self.keyText($0) }
        guard !texts.isEmpty, texts.count == values.count, keys[table]?.name != name else { return nil }
        let isLong = texts.allSatisfy { $0.hasPrefix("t") && $0.utf8.count > 16 }
        let found = keys.indices.filter { type in
            guard let rows = keys[type]?.rows, texts.allSatisfy({ rows[$0] != nil }) else { return false }
            return isLong || name.lowercased().contains(classes.classes[type].name.lowercased())
        }
        return found.count == 1 ? found[0] : nil
    }

    // MARK: Properties

    private mutating func add(_ column: Column, to table: Int) {
        let lists = column.values.filter { if case .list = $0 { true } else { false } }
        let present = column.values.count { if case .null = $0 { false } else { true } }
        let targets = column.values.map { Self.rows($0, classes) }
        if targets.contains(where: { !$0.isEmpty }) {
            if lists.isEmpty {
                addReferences(column.name, targets.map(\.first), to: table)
            } else {
                addLinks(column.name, targets, to: table)
            }
            let others = column.values.map(Self.withoutObjects)
            if others.contains(where: { if case .null = $0 { false } else { true } }) {
                addAttribute(column.name + "Value", others, to: table)
            }
            return
        }
        let elements = column.values.flatMap { if case .list(let elements) = $0 { elements } else { [$0] } }
        let texts = elements.filter { if case .null = $0 { false } else { true } }
        if !lists.isEmpty, lists.count == present, elements.isEmpty || texts.isEmpty {
            result.notes.append("\(classes.classes[table].name).\(column.name) is left out: all of its lists are empty")
        } else if lists.isEmpty || lists.count == present, let type = keyedClass(column.name, of: table, texts),
            let rows = keys[type]?.rows
        {
            func target(_ value: Value) -> (type: Int, row: Int32)? {
                Self.keyText(value).flatMap { rows[$0] }.map { (type, $0) }
            }
            if lists.isEmpty {
                addReferences(column.name, column.values.map(target), to: table)
            } else {
                let found = column.values.map { value -> [(type: Int, row: Int32)] in
                    if case .list(let elements) = value { elements.compactMap(target) } else { [] }
                }
                addLinks(column.name, found, to: table)
            }
        } else {
            addAttribute(column.name, column.values, to: table)
        }
    }

    /// Returns what a value has besides objects; null if that is nothing.
    private static func withoutObjects(_ value: Value) -> Value {
        switch value {
        case .object, .reference: return .null
        case .list(let elements):
            let others = elements.filter { RealmClasses.objects($0).isEmpty }
            return others.isEmpty ? .null : .list(others)
        default: return value
        }
    }

    private static func rows(_ value: Value, _ classes: RealmClasses) -> [(type: Int, row: Int32)] {
        RealmClasses.objects(value).compactMap { classes.rows[$0] }.map { ($0.type, Int32($0.row)) }
    }

    private mutating func take(_ name: String, in table: Int) -> String {
        reserved[table].removeValue(forKey: name) ?? names.take(name, in: table)
    }

    /// Returns the name of a relationship to a class. A property with objects of several classes becomes several relationships.
    private func name(_ property: String, to type: Int, of types: Set<Int>) -> String {
        types.count == 1 ? property : "\(property)As\(classes.classes[type].name)"
    }

    private mutating func addReferences(_ name: String, _ targets: [(type: Int, row: Int32)?], to table: Int) {
        let types = Set(targets.compactMap { $0?.type })
        for type in types.sorted() {
            result.tables[table].references.append(
                TableReference(
                    name: take(self.name(name, to: type, of: types), in: table),
                    inverse: names.take(PropertyNames.plural(ofTable: classes.classes[table].name), in: type), destination: type,
                    rows: targets.map { $0?.type == type ? $0?.row ?? TableReference.nobody : TableReference.nobody }))
            result.notes.append("\(classes.classes[table].name).\(name) refers to \(classes.classes[type].name)")
        }
    }

    private mutating func addLinks(_ name: String, _ targets: [[(type: Int, row: Int32)]], to table: Int) {
        let types = Set(targets.flatMap { $0.map(\.type) })
        for type in types.sorted() {
            var known: Set<Link.Pair> = []
            var pairs: [Link.Pair] = []
            var ranks: [Int32] = []
            var repeated = 0
            for (row, found) in targets.enumerated() {
                var rank: Int32 = 0
                for target in found where target.type == type {
                    let pair = Link.Pair(source: Int32(row), destination: target.row)
                    guard known.insert(pair).inserted else {
                        repeated += 1
                        continue
                    }
                    pairs.append(pair)
                    ranks.append(rank)
                    rank += 1
                }
            }
            var link = Link(
                name: take(self.name(name, to: type, of: types), in: table),
                inverse: names.take(PropertyNames.plural(ofTable: classes.classes[table].name), in: type), source: table,
                destination: type, pairs: pairs)
            link.ranks = ranks
            result.links.append(link)
            let property = "\(classes.classes[table].name).\(name)"
            result.notes.append("\(property): \(pairs.count) links to \(classes.classes[type].name), in their order")
            if repeated > 0 {
                result.notes.append(
                    "\(property): \(repeated) objects were in a list more than once. A list has each at its first place only")
            }
        }
    }

    // MARK: Attributes

    private mutating func addAttribute(_ name: String, _ values: [Value], to table: Int) {
        let name = take(name, in: table)
        let attribute = Self.attribute(name, values)
        let hasLists = values.contains { if case .list = $0 { true } else { false } }
        let property = "\(classes.classes[table].name).\(name)"
        if hasLists {
            result.notes.append("\(property): its lists are JSON texts")
        } else if attribute.type == .string, let note = Self.noteOfJSON(values) {
            result.notes.append("\(property): \(note)")
        }
        result.tables[table].attributes.append(attribute)
    }

    /// Returns a note for values of a column of texts that are not all texts, and therefore became JSON texts.
    private static func noteOfJSON(_ values: [Value]) -> String? {
        var counts: [String: Int] = [:]
        for value in values {
            switch value {
            case .text: counts["texts", default: 0] += 1
            case .number: counts["numbers", default: 0] += 1
            case .bool: counts["booleans", default: 0] += 1
            default: continue
            }
        }
        if counts.isEmpty || counts.keys.elementsEqual(["texts"]) { return nil }
        let list = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        return counts.count > 1
            ? "its values are of several types (\(list)), so they are JSON texts, in which texts have quotes"
            : "its \(list) do not fit a type of numbers, so they are JSON texts"
    }

    /// Returns a number as a double; nil for an integer that a double cannot represent.
    private static func double(_ text: String) -> StoreInterface.Value? {
        guard let number = Double(text), number.isFinite else { return nil }
        let isInteger = text.allSatisfy { $0.isNumber || $0 == "-" }
        if isInteger, Int64(text).map({ Int64(exactly: number) != $0 }) ?? true { return nil }
        return .double(number)
    }

    private static func attribute(_ name: String, _ values: [Value]) -> TableAttribute {
        func made(_ type: ColumnType, _ convert: (Value) -> StoreInterface.Value?) -> TableAttribute? {
            var converted: [StoreInterface.Value] = []
            converted.reserveCapacity(values.count)
            for value in values {
                if case .null = value {
                    converted.append(.null)
                } else if let value = convert(value) {
                    converted.append(value)
                } else {
                    return nil
                }
            }
            return TableAttribute(name: name, type: type, isOptional: converted.contains(.null), values: converted)
        }
        func text(_ read: @escaping (String) -> StoreInterface.Value?) -> (Value) -> StoreInterface.Value? {
            { if case .text(let text) = $0 { read(text) } else { nil } }
        }
        let isEmpty = values.allSatisfy { if case .null = $0 { true } else { false } }
        if !isEmpty {
            let found =
                made(.bool) { if case .bool(let flag) = $0 { .bool(flag) } else { nil } }
                ?? made(.int64) { if case .number(let number) = $0 { Int64(number).map { .int($0) } } else { nil } }
                ?? made(.double) { if case .number(let number) = $0 { double(number) } else { nil } }
                ?? made(.uuid, text { UUID(uuidString: $0).map { .uuid($0) } })
                ?? made(.date, text { $0.utf8.count == 24 && $0.hasSuffix("Z") ? DateText.seconds($0).map { .double($0) } : nil })
                ?? made(.string, text { .string($0) })
            if let found { return found }
        }
        return made(.string) { .string(json($0).text) } ?? TableAttribute(name: name, type: .string, isOptional: true, values: [])
    }

    private static func json(_ value: Value) -> JSON {
        switch value {
        case .null, .object, .reference: .null
        case .bool(let flag): .bool(flag)
        case .number(let number): .number(number)
        case .text(let text): .string(text)
        case .list(let elements): .array(elements.map(json))
        }
    }
}
