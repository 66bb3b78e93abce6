/// A relationship as the model has it, so that one whose kind has changed can be told from one that was removed.
///
/// Files do not store it: they have columns and links only.
public struct RelationshipSchema: Sendable, Hashable {
    /// The number of the entity that has the relationship.
    public var entity: Int
    public var name: String
    /// The name that the relationship had in older models.
    public var renamedFrom: String?
    /// The number of the entity at the far end.
    public var destination: Int
    /// The column of a to-one relationship; nil for a to-many relationship.
    public var column: Int?
    /// The position of the inverse in ``StoreSchema/relationships``.
    public var inverse: Int?
    /// Whether deletions leave references in ``column`` that lead to nothing.
    public var mayDangle: Bool

    public init(
        entity: Int, name: String, renamedFrom: String? = nil, destination: Int, column: Int? = nil, inverse: Int? = nil,
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

/// How a file of another schema may be brought to a schema: what its owner says beside the model.
public struct SchemaMigration: Sendable, Hashable {
    /// What may be dropped although it holds values.
    public enum AllowedLoss: Sendable, Hashable {
        /// Entities ("Playlist"), attributes and relationships ("Track.rating") by their names in the file.
        case named(Set<String>)
        /// Everything: a custom stage of a plan has seen the values.
        case everything
    }

    public var allowedLoss = AllowedLoss.named([])
    /// The schemas on the way to this one, oldest first, this one last. A file that has one of them takes each of the following in
    /// turn; any other file takes the last one directly.
    public var way: [StoreSchema] = []

    public init() {}
}
