import ObjectGraph
import StoreInterface
import StoreModel

/// The model classes of a container, with what they store.
///
/// A schema also contains the models that its models have relationships to.
///
/// ```swift
/// let schema = Schema([Trip.self])  // and Stop, to which trips have a relationship
/// let container = try ModelContainer(for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
/// ```
public final class Schema: Sendable {
    /// The version of the schema.
    public let version: Version
    /// The version of schemas without one.
    public static let version = Version(1, 0, 0)
    /// The model classes, with those that relationships lead to.
    let types: [any PersistentModel.Type]
    let model: Result<Model, ModelError>
    /// The names of the models and of their superclasses, which a list of classes may leave out.
    var modelNames: Set<String> {
        Set((types as [any ObjectGraph.PersistentModel.Type]).withSuperclasses.map { $0.entityName })
    }

    /// Creates a schema of model classes.
    public convenience init(_ types: any PersistentModel.Type..., version: Version = Schema.version) {
        self.init(types, version: version)
    }

    /// Creates a schema of model classes.
    public init(_ types: [any PersistentModel.Type], version: Version = Schema.version) {
        let types = Self.withDestinations(types)
        self.types = types
        self.version = version
        model = Result { () throws(ModelError) in
            try Model(types, version: SchemaVersion(version.major, version.minor, version.patch))
        }
    }

    /// Creates the schema of a version of the models.
    public convenience init(versionedSchema: any VersionedSchema.Type) {
        self.init(versionedSchema.models, version: versionedSchema.versionIdentifier)
    }

    /// Returns the types, each once, and the types that their relationships lead to.
    private static func withDestinations(_ types: [any PersistentModel.Type]) -> [any PersistentModel.Type] {
        var found: [any PersistentModel.Type] = []
        var known: Set<ObjectIdentifier> = []
        var waiting = types
        while !waiting.isEmpty {
            let type = waiting.removeFirst()
            guard known.insert(ObjectIdentifier(type)).inserted else { continue }
            found.append(type)
            waiting += type.destinations
        }
        return found
    }

    /// The version of a schema.
    public struct Version: Sendable, Hashable, Codable, Comparable, CustomStringConvertible {
        /// The first and most significant number.
        public let major: Int
        /// The second number.
        public let minor: Int
        /// The third number.
        public let patch: Int

        /// Creates a version.
        public init(_ major: Int, _ minor: Int, _ patch: Int) {
            self.major = major
            self.minor = minor
            self.patch = patch
        }

        /// Returns whether a version is older.
        public static func < (a: Version, b: Version) -> Bool {
            (a.major, a.minor, a.patch) < (b.major, b.minor, b.patch)
        }

        /// The numbers: `1.2.0`.
        public var description: String { "\(major).\(minor).\(patch)" }
    }
}

extension Schema: Hashable, CustomDebugStringConvertible {
    /// Returns whether two schemas have the same version and store the same.
    public static func == (a: Schema, b: Schema) -> Bool {
        a.version == b.version && (try? a.model.get().storeSchema) == (try? b.model.get().storeSchema)
    }
    /// Hashes the version and the names of the entities, which include superclasses that the list of classes leaves out.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(version)
        hasher.combine((try? model.get())?.storeSchema.entities.map(\.name))
    }
    /// The version and the entities.
    public var debugDescription: String {
        switch model {
        case .success(let model): "schema \(model)"
        case .failure(let error): "schema \(version), which is not valid: \(error)"
        }
    }
}

extension PersistentModel {
    /// The model classes that relationships lead to.
    fileprivate static var destinations: [any PersistentModel.Type] {
        let names = columnsByKeyPath.sorted { $0.value < $1.value }
        return names.compactMap { RelationshipType(type(of: $0.key).valueType)?.model }
    }
}
