/// A relationship of the model, which distinguishes a relationship whose kind has changed from a removed relationship.
///
/// Files do not store it. They have columns and links, the names of the relationships that are inverses of each other, and the destinations
/// that are a part of a hierarchy.
public struct RelationshipSchema: Sendable, Hashable {
    /// The entity that has the relationship.
    public var entity: EntityIndex
    /// The name of the relationship in its entity.
    public var name: String
    /// The name that the relationship had in older models.
    public var renamedFrom: String?
    /// The entity at the far end.
    public var destination: EntityIndex
    /// The column of a to-one relationship; nil for a to-many relationship.
    public var column: ColumnIndex?
    /// The position of the inverse in ``StoreSchema/relationships``.
    public var inverse: Int?
    /// A Boolean value that indicates whether deletions leave dangling references in ``column``.
    public var mayDangle: Bool
    /// The types of the objects at the far end, if they are those of an inheriting entity; nil if the relationship leads to all objects of
    /// ``destination``.
    package var destinationTypes: Set<Int64>?

    /// Creates a relationship. Entity, destination and column are positions in the same schema.
    public init(
        entity: EntityIndex, name: String, renamedFrom: String? = nil, destination: EntityIndex, column: ColumnIndex? = nil,
        inverse: Int? = nil,
        mayDangle: Bool = false
    ) {
        self.entity = entity
        self.name = name
        self.renamedFrom = renamedFrom
        self.destination = destination
        self.column = column
        self.inverse = inverse
        self.mayDangle = mayDangle
    }
}

/// The developer's instructions for migrating a file of another schema, beyond the model itself.
public struct SchemaMigration: Sendable, Hashable {
    /// The data that a migration may drop although it has values.
    public enum AllowedLoss: Sendable, Hashable {
        /// Entities ("Playlist"), attributes and relationships ("Track.rating"), by their names in the file.
        case named(Set<String>)
        /// All data, because a custom stage of a plan has seen the values.
        case everything
    }

    /// The data with values that the migration may drop. By default none: a migration that would lose data throws.
    public var allowedLoss = AllowedLoss.named([])
    /// The schemas on the way to this schema, oldest first, with this schema last. A file that has one of them is migrated to
    /// each following schema in turn. Any other file is migrated to the last schema directly.
    public var way: [StoreSchema] = []
    /// Whether the model was read from the file and does not know its inverses, which the file then keeps.
    package var keepsInverses = false
    /// Whether the schema is a step of a plan with custom stages and not the program's model. A file that had this schema before is not
    /// newer than it.
    package var isIntermediate = false

    /// Creates instructions that allow no loss and have no schemas on the way.
    public init() {}
}
