import StoreInterface
import StoreModel

/// The properties that are in a column of a Core Data table.
struct CoreDataColumn {
    /// The declaration in the model; nil if there is none.
    var property: CoreDataModel.Property?
    /// The entities that declare the property, as positions in the family. None inherits from another.
    var owners = [0]

    /// The prefix of columns that contain positions of objects in an ordered relationship: `Z_FOK_BOOK` beside `ZBOOK`.
    static let positionPrefix = "Z_FOK_"

    /// Returns whether a column is not a property: keys, versions, positions, and the entity numbers beside references (`Z4_BOOK`).
    static func isInternal(_ column: String) -> Bool {
        guard column.hasPrefix("Z"), !column.hasPrefix("Z_") else { return true }
        let rest = column.dropFirst().drop { $0.isASCII && $0.isNumber }
        return rest.hasPrefix("_") && rest.count < column.count - 1
    }

    /// Returns whether a column with a declared type can contain values of a property.
    static func accepts(_ declared: String, _ property: CoreDataModel.Property) -> Bool {
        guard case .attribute(let type) = property.kind else { return declared == "INTEGER" }
        return switch type {
        case 100, 200, 300, 800: declared == "INTEGER"
        case 400: declared == "DECIMAL"
        case 500, 600: declared == "FLOAT"
        case 700, 1200: declared == "VARCHAR"
        case 900: declared == "TIMESTAMP"
        case 1000, 1100, 1800: declared == "BLOB"
        default: true
        }
    }
}

extension CoreDataRoot {
    /// Finds the property of each column. Sub-entities may declare properties of the same name, whose columns end in numbers from the
    /// second on. Which column belongs to which sub-entity follows from the types and from the objects that have values.
    func assignedColumns() -> [CoreDataColumn] {
        var columns = table.columns.map { _ in CoreDataColumn() }
        var groups: [String: [Int]] = [:]
        for (number, column) in table.columns.enumerated() where !CoreDataColumn.isInternal(column.name) {
            if let name = declaredName(column.name.dropFirst()) { groups[name, default: []].append(number) }
        }
        for (name, numbers) in groups {
            let all = (declarations[name] ?? []).filter { if case .toMany = $0.property.kind { false } else { true } }
            var open = all
            let kinds = numbers.map { kindsWithValues($0) }
            // Columns with values can be told apart better than empty ones.
            for place in numbers.indices.filter({ !kinds[$0].isEmpty }) + numbers.indices.filter({ kinds[$0].isEmpty }) {
                func distance(_ declaration: CoreDataDeclaration) -> Int {
                    let isOther = !CoreDataColumn.accepts(table.columns[numbers[place]].declaredType, declaration.property)
                    return kinds[place].count { !family.inherits($0, from: declaration.member) } + (isOther ? 10_000 : 0)
                }
                guard let best = (open.isEmpty ? all : open).min(by: { distance($0) < distance($1) }) else { continue }
                var owners = [best.member]
                if numbers.count == 1 {
                    owners = open.filter { $0.property.hasType(of: best.property) }.map(\.member)
                }
                open.removeAll { owners.contains($0.member) }
                columns[numbers[place]] = CoreDataColumn(property: best.property, owners: covering(kinds[place], owners))
            }
        }
        return columns
    }

    /// Returns the name in capitals of the declarations that a column may belong to: without digits at its end, if need be.
    private func declaredName(_ column: Substring) -> String? {
        var name = column
        while !name.isEmpty {
            if declarations[String(name)] != nil { return String(name) }
            guard let last = name.last, last.isASCII, last.isNumber else { return nil }
            name.removeLast()
        }
        return nil
    }

    func kindsWithValues(_ column: Int) -> Set<Int> {
        var found: Set<Int> = []
        for (row, value) in cells[column].enumerated() where !value.isNull { found.insert(kinds[row]) }
        return found
    }

    /// Returns the owners, or an ancestor of theirs if an object of another entity has a value, as in damaged files.
    private func covering(_ kinds: Set<Int>, _ owners: [Int]) -> [Int] {
        let isCovered = kinds.allSatisfy { kind in owners.contains { family.inherits(kind, from: $0) } }
        return isCovered ? owners : [family.ancestor(of: owners[0], including: kinds.union(owners))]
    }
}

extension CoreDataModel.Property {
    fileprivate func hasType(of other: Self) -> Bool {
        switch (kind, other.kind) {
        case (.attribute(let type), .attribute(let otherType)): type == otherType
        case (.toOne(let destination, _), .toOne(let otherDestination, _)): destination == otherDestination
        default: false
        }
    }
}
