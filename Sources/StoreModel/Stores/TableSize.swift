/// The size of one part of a store: the objects of an entity, an index, a link, or the store's records about itself.
///
/// ```swift
/// for table in try await container.coordinator.tableSizes() { print(table.name, table.bytes) }
/// ```
public struct TableSize: Sendable, Hashable {
    /// The content of a table.
    public enum Content: String, Sendable, Hashable {
        /// The objects of an entity, in pages.
        case objects
        /// Strings and data of an entity that are stored outside of the pages.
        case largeValues
        /// An index, or the links of a to-many relationship.
        case index, link
        /// The history of saves.
        case history
        /// The schema, dictionaries for packed pages, and other records of the store.
        case records
    }

    /// The entity, `entity(columns)` of an index, the name of a link, or the name of a record table.
    public var name: String
    /// The content of the table.
    public var content: Content
    /// The number of entries: pages of objects, parts of large values, entries of an index.
    public var entries: Int
    /// The number of bytes of the file that the table occupies.
    public var bytes: Int

    /// Creates the size of a table.
    public init(name: String, content: Content, entries: Int, bytes: Int) {
        self.name = name
        self.content = content
        self.entries = entries
        self.bytes = bytes
    }
}
