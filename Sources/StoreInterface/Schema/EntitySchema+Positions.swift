/// The columns of positions in ordered relationships. A position is in the row of the member, beside its reference to the object that
/// has the list. Files do not mark these columns: their names do, which no property can have.
extension ColumnSchema {
    /// Returns the name of the column of positions beside a to-one relationship.
    package static func positionName(in reference: String) -> String { "position in \(reference)" }

    /// Returns the column of positions beside a to-one relationship.
    package static func position(in reference: String, renamedFrom former: String?) -> ColumnSchema {
        ColumnSchema(
            name: positionName(in: reference), type: .data, isOptional: true, renamedFrom: former.map(positionName))
    }
}

extension EntitySchema {
    /// Returns the column of the positions beside a reference; nil if its inverse is not ordered. These columns are the last ones.
    package func position(in reference: Int) -> Int? {
        guard let last = columns.last, last.type == .data, last.name.hasPrefix("position in ") else { return nil }
        let name = ColumnSchema.positionName(in: columns[reference].name)
        return columns.lastIndex { $0.name == name }
    }

    /// Returns whether a column has positions beside a reference.
    func isPosition(_ column: Int) -> Bool {
        columns[column].type == .data
            && columns.contains { $0.type == .reference && ColumnSchema.positionName(in: $0.name) == columns[column].name }
    }
}
