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

/// The entities of the positions in ordered many-to-many relationships. A pair of a link has no row, so each pair has an object of a hidden
/// entity beside it, as seen from the ordered end. Files do not mark these entities: their names and columns do.
extension EntitySchema {
    private static let orderPrefix = "order of "

    /// Returns the name of the hidden entity with the order of a relationship.
    package static func orderName(of relationship: String) -> String { orderPrefix + relationship }

    /// Returns the hidden entity with the order of a many-to-many relationship.
    ///
    /// - Parameters:
    ///   - relationship: The name of the ordered relationship: "Playlist.tracks".
    ///   - former: The name in older models.
    ///   - owner: The number of the entity that has the relationship.
    ///   - member: The number of the entity that it leads to.
    package static func order(of relationship: String, renamedFrom former: String?, owner: Int, member: Int) -> EntitySchema {
        func reference(_ name: String, _ destination: Int) -> ColumnSchema {
            ColumnSchema(name: name, type: .reference, isOptional: true, index: .indexed, destination: destination)
        }
        return EntitySchema(
            name: orderName(of: relationship),
            columns: [reference("owner", owner), reference("member", member), .position(in: "owner", renamedFrom: nil)],
            renamedFrom: former.map(orderName))
    }

    /// A Boolean value that indicates whether this is a hidden entity with the order of a relationship.
    package var isOrder: Bool {
        name.hasPrefix(Self.orderPrefix)
            && columns.map(\.name) == ["owner", "member", ColumnSchema.positionName(in: "owner")]
            && columns.map(\.type) == [.reference, .reference, .data]
    }

    /// The name of the relationship whose order a hidden entity has, in the entity that it belongs to; nil for other entities.
    package var orderedRelationship: String? {
        isOrder ? name.split(separator: ".", omittingEmptySubsequences: false).last.map(String.init) : nil
    }

    /// Returns the column of the positions beside a reference; nil if its inverse is not ordered. These columns are the last ones.
    package func position(in reference: Int) -> Int? {
        guard let last = columns.last, last.type == .data, last.name.hasPrefix("position in ") else { return nil }
        let name = ColumnSchema.positionName(in: columns[reference].name)
        return columns.lastIndex { $0.name == name }
    }

    /// Returns whether a column has positions beside a reference.
    package func isPosition(_ column: Int) -> Bool {
        columns[column].type == .data
            && columns.contains { $0.type == .reference && ColumnSchema.positionName(in: $0.name) == columns[column].name }
    }
}
