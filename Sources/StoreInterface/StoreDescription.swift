import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A description of how to open a store, made by `.lmdb(url)`, `.memory` or `.sqlite(url)` in the modules of those stores.
///
/// ```swift
/// let store: StoreDescription = isPreview ? .memory : .lmdb(file)
/// ```
public struct StoreDescription: Sendable {
    /// The name of the store in messages, such as the path of its file.
    public var name: String
    /// Opens the store. Blocks; called off the cooperative threads.
    public var open: @Sendable (StoreSchema) throws -> any ObjectStore
    /// The file of the store, for migrations in stages; nil if the data does not outlive the process.
    public var migration: (any MigratableFile)?
    /// Reads the schema of the store's file without opening or changing the store, also for a description that is read-only. Returns
    /// nil if there is no file, or one without a schema. nil for stores without files. Blocks.
    public var storedSchema: (@Sendable () throws -> StoreSchema?)? {
        get {
            guard let recordedSchemas else { return nil }
            return { try recordedSchemas()?.current }
        }
        set {
            guard let newValue else { return recordedSchemas = nil }
            recordedSchemas = { try newValue().map { RecordedSchemas($0) } }
        }
    }
    /// The path of the store's file, for messages.
    package var path: String?
    /// Reads what the file has recorded of its schemas, as ``storedSchema`` does.
    package var recordedSchemas: (@Sendable () throws -> RecordedSchemas?)?
    /// Opens an existing file with its own schema, without changing it; nil if ``open`` changes nothing then.
    package var openForReading: (@Sendable (StoreSchema) throws -> any ObjectStore)?

    /// Creates a description, without opening the store.
    ///
    /// The closure `open` opens the store with a schema. It runs off the cooperative threads, and may block and throw. Unless it is
    /// set, ``storedSchema`` asks `migration`.
    public init(
        name: String, migration: (any MigratableFile)? = nil,
        open: @escaping @Sendable (StoreSchema) throws -> any ObjectStore
    ) {
        self.name = name
        self.migration = migration
        self.open = open
        if let migration { storedSchema = { try migration.storedSchema() } }
    }
}
