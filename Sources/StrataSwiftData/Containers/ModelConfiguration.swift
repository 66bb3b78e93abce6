import LMDBStore
import Logging
import MemoryStore
import SQLiteStore
import StoreInterface
import StoreModel

/// Where and how a container stores its models.
///
/// Without a URL, the store is `default.store` in the program's folder: `$XDG_DATA_HOME/NAME`, or `~/.local/share/NAME`, where NAME is
/// the name of the executable. On Apple's systems it is the folder for application support.
///
/// ```swift
/// let configuration = ModelConfiguration(url: file, allowsSave: false)
/// let container = try ModelContainer(for: Trip.self, configurations: configuration)
/// ```
public struct ModelConfiguration: Sendable, Hashable {
    /// The name, which is the name of the file unless a URL says otherwise.
    public let name: String
    /// The file of the store.
    public let url: URL
    /// The schema, whose models the schema of the container must have; nil for that of the container.
    public var schema: Schema?
    /// A Boolean value that indicates whether the store is in memory only and ends with the container.
    public let isStoredInMemoryOnly: Bool
    /// A Boolean value that indicates whether the store may be written. If false, an existing file is opened and never changed, and saves throw.
    public let allowsSave: Bool
    /// The kind of the file. Ignored in memory.
    public let store: Store
    /// Ignored.
    public let groupContainer: GroupContainer
    /// Ignored.
    public let cloudKitDatabase: CloudKitDatabase

    /// The identifier of the app group; always nil.
    public var groupAppContainerIdentifier: String? { nil }
    /// The identifier of the CloudKit container; always nil.
    public var cloudKitContainerIdentifier: String? { nil }

    /// Creates a configuration with the default file, or a file of this name in the default folder.
    ///
    /// `store` is the kind of the file. An existing file of the other kind is not opened.
    public init(
        _ name: String? = nil, schema: Schema? = nil, isStoredInMemoryOnly: Bool = false, allowsSave: Bool = true,
        groupContainer: GroupContainer = .automatic, cloudKitDatabase: CloudKitDatabase = .automatic, store: Store = .lmdb
    ) {
        self.init(
            name: name, schema: schema, file: nil, isStoredInMemoryOnly: isStoredInMemoryOnly, allowsSave: allowsSave,
            groupContainer: groupContainer, cloudKitDatabase: cloudKitDatabase, store: store)
    }

    /// Creates a configuration with a file.
    ///
    /// `store` is the kind of the file. An existing file of the other kind is not opened.
    public init(
        _ name: String? = nil, schema: Schema? = nil, url: URL, allowsSave: Bool = true,
        cloudKitDatabase: CloudKitDatabase = .automatic, store: Store = .lmdb
    ) {
        self.init(
            name: name, schema: schema, file: url, isStoredInMemoryOnly: false, allowsSave: allowsSave,
            groupContainer: .automatic, cloudKitDatabase: cloudKitDatabase, store: store)
    }

    /// Creates a configuration of these models.
    @_disfavoredOverload
    public init(for types: any PersistentModel.Type..., isStoredInMemoryOnly: Bool = false) {
        self.init(
            name: nil, schema: types.isEmpty ? nil : Schema(types), file: nil, isStoredInMemoryOnly: isStoredInMemoryOnly,
            allowsSave: true, groupContainer: .automatic, cloudKitDatabase: .automatic, store: .lmdb)
    }

    private init(
        name: String?, schema: Schema?, file: URL?, isStoredInMemoryOnly: Bool, allowsSave: Bool,
        groupContainer: GroupContainer, cloudKitDatabase: CloudKitDatabase, store: Store
    ) {
        let stem = name ?? "default"
        self.name = stem
        self.schema = schema
        url = isStoredInMemoryOnly ? URL(filePath: "/dev/null") : file ?? Self.folder.appending(path: "\(stem).store")
        self.isStoredInMemoryOnly = isStoredInMemoryOnly
        self.allowsSave = allowsSave
        self.groupContainer = groupContainer
        self.cloudKitDatabase = cloudKitDatabase
        self.store = store
    }

    private static var folder: URL {
        let program = URL(filePath: CommandLine.arguments.first ?? "program").lastPathComponent
        #if canImport(Darwin)
            return URL.applicationSupportDirectory.appending(path: program)
        #else
            let given = ProcessInfo.processInfo.environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            let base = given.map { URL(filePath: $0) } ?? URL.homeDirectory.appending(path: ".local/share")
            return base.appending(path: program)
        #endif
    }
}

extension ModelConfiguration {
    /// The kind of a file in which models are stored.
    ///
    /// ```swift
    /// let configuration = ModelConfiguration(url: file, store: .sqlite)
    /// let container = try ModelContainer(for: Trip.self, configurations: configuration)
    /// ```
    public enum Store: Sendable, Hashable, CaseIterable {
        /// A memory-mapped file of LMDB.
        case lmdb
        /// A file of SQLite, with a table per model. SwiftData's own files have other tables and cannot be opened.
        case sqlite
    }

    /// An app group, which exists on Apple's systems only.
    public struct GroupContainer: Sendable, Hashable {
        fileprivate let name: String

        /// The default.
        public static let automatic = GroupContainer(name: "automatic")
        /// No group.
        public static let none = GroupContainer(name: "none")
        /// Returns a group, which is ignored.
        public static func identifier(_ name: String) -> GroupContainer { GroupContainer(name: "identifier \(name)") }
    }

    /// A CloudKit database, which exists on Apple's systems only.
    public struct CloudKitDatabase: Sendable, Hashable {
        fileprivate let name: String

        /// The default.
        public static let automatic = CloudKitDatabase(name: "automatic")
        /// No database.
        public static let none = CloudKitDatabase(name: "none")
        /// Returns a private database, which is ignored.
        public static func `private`(_ name: String) -> CloudKitDatabase { CloudKitDatabase(name: "private \(name)") }
    }
}

extension ModelConfiguration: Identifiable, CustomDebugStringConvertible {
    /// The URL of the store.
    public var id: URL { url }
    /// The name and the location.
    public var debugDescription: String { "configuration \(name): \(place)" }
    /// The place of the store, in words.
    var place: String { isStoredInMemoryOnly ? "memory" : url.path(percentEncoded: false) }
}

extension ModelConfiguration {
    /// Returns the description of the store, after creating its folder if it may be written.
    func storeDescription() throws -> StoreDescription {
        logWhatIsIgnored()
        if isStoredInMemoryOnly { return .memory }
        if allowsSave {
            try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        }
        switch store {
        case .lmdb: return .lmdb(url, readOnly: !allowsSave)
        case .sqlite: return .sqlite(url, readOnly: !allowsSave)
        }
    }

    /// Throws if the configuration has models that are not in the schema of the container.
    func checkModels(in container: Schema) throws {
        guard let schema else { return }
        let missing = schema.modelNames.subtracting(container.modelNames).sorted().joined(separator: ", ")
        guard !missing.isEmpty else { return }
        throw SwiftDataError.configurationSchemaNotFoundInContainerSchema.saying(
            "the configuration \(name) has models that the schema of the container does not contain: \(missing). Add them to the "
                + "container, or remove them from the configuration")
    }

    private func logWhatIsIgnored() {
        if cloudKitDatabase != .automatic, cloudKitDatabase != .none {
            Log.once("CloudKit", "the models are not synchronized with CloudKit: it exists on Apple's systems only")
        }
        if groupContainer != .automatic, groupContainer != .none {
            Log.once("group", "the store is in the program's folder: app groups exist on Apple's systems only")
        }
    }
}
