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

    /// The columns of a hidden entity: the object that has the list, the member, and its position.
    public static let orderColumns: (owner: ColumnIndex, member: ColumnIndex, position: ColumnIndex) = (0, 1, 2)

    /// Returns the name of the hidden entity with the order of a relationship.
    package static func orderName(of relationship: String) -> String { orderPrefix + relationship }

    /// Returns the name of the relationship whose order a hidden entity with a name has; nil for the name of another entity.
    static func relationship(ofOrder name: String) -> String? {
        name.hasPrefix(orderPrefix) ? String(name.dropFirst(orderPrefix.count)) : nil
    }

    /// Returns the hidden entity with the order of a many-to-many relationship.
    ///
    /// - Parameters:
    ///   - relationship: The name of the ordered relationship: "Playlist.tracks".
    ///   - formerNames: The names that the relationship may have in older models, from the newest to the oldest.
    ///   - owner: The entity that has the relationship.
    ///   - member: The entity that it leads to.
    package static func order(of relationship: String, formerNames: [String], owner: EntityIndex, member: EntityIndex)
        -> EntitySchema
    {
        func reference(_ name: String, _ destination: EntityIndex) -> ColumnSchema {
            ColumnSchema(name: name, type: .reference, isOptional: true, index: .indexed, destination: destination)
        }
        var order = EntitySchema(
            name: orderName(of: relationship),
            columns: [reference("owner", owner), reference("member", member), .position(in: "owner", renamedFrom: nil)],
            renamedFrom: formerNames.last.map(orderName))
        order.otherFormerNames = formerNames.dropLast().map(orderName)
        return order
    }

    /// A Boolean value that indicates whether this is a hidden entity with the order of a many-to-many relationship.
    public var isOrder: Bool {
        name.hasPrefix(Self.orderPrefix)
            && columns.map(\.name) == ["owner", "member", ColumnSchema.positionName(in: "owner")]
            && columns.map(\.type) == [.reference, .reference, .data]
    }

    /// The name of the relationship whose order a hidden entity has, in the entity that it belongs to; nil for other entities.
    /// It may contain dots, as properties of imported files do.
    public var orderedRelationship: String? {
        isOrder ? name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).last.map(String.init) : nil
    }

    /// Returns the column of the positions beside a reference; nil if its inverse is not ordered.
    /// - Parameter reference: The reference's column.
    public func position(in reference: ColumnIndex) -> ColumnIndex? {
        // Only the types of a hierarchy's objects follow these columns.
        let last = columns.count - (typeColumn == nil ? 1 : 2)
        guard last > 0, columns[last].type == .data, columns[last].name.hasPrefix("position in ") else { return nil }
        let name = ColumnSchema.positionName(in: columns[reference].name)
        return columnIndices.last { columns[$0].name == name }
    }

    /// Returns whether a column has the positions of objects in an ordered relationship. A reference of the same entity leads to the object
    /// that has the list.
    /// - Parameter column: The column.
    public func isPosition(_ column: ColumnIndex) -> Bool { reference(ofPosition: column) != nil }

    /// Returns the reference to the objects whose lists a column has positions in; nil for other columns.
    func reference(ofPosition column: ColumnIndex) -> ColumnIndex? {
        columnIndices.first { columns[$0].type == .reference && position(in: $0) == column }
    }
}
