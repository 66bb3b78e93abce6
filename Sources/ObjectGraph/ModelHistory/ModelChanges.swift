import Dispatch
import StoreInterface
import StoreModel

/// The changes that opening a file with a model would make, found without changing the file (S202).
///
/// ```swift
/// let changes = try await models.v3.changes(opening: .lmdb(file), migrationPlan: plan)
/// for line in changes.lines { print(line) }
/// if let refusal = changes.refusal { print(refusal) }
/// ```
/// Whether the values of a new unique constraint are unique, and whether the work of a custom stage leaves objects that contradict its
/// target, is found only by opening the file, or a copy of it: see ``ModelHistory``.
public struct ModelChanges: Sendable {
    /// One difference between two schemas.
    public struct Change: Sendable, Hashable {
        /// The kind of a difference.
        public enum Kind: String, Sendable, Hashable {
            /// An entity, property or index that only the newer schema has, or only the older one. Also removed: an attribute that stays,
            /// but not in all entities of its hierarchy; it has the name that `allowsDataLoss` takes.
            case added, removed
            /// An entity or a property with another name.
            case renamed
            /// A property of another type, with or without nil, with another index, with or without a derivation, or that leads to another
            /// number of objects. A property that other entities of its hierarchy declare. An entity that becomes abstract or concrete, or
            /// has another superentity.
            case changed
            /// A derived attribute whose values are computed for all objects.
            case computed
        }

        /// The kind of the difference.
        public var kind: Kind
        /// The entity, such as `Track`, the property, such as `Track.title`, or the index, such as `Track(album, title)`. The new name of
        /// something that was renamed. In a hierarchy, other properties have the name of the entity at its head.
        public var name: String
        /// A description of the former state; the former name of something that was renamed; nil for something new.
        public var before: String?
        /// A description of the new state; nil for something removed.
        public var after: String?
        /// The number of objects, values or pairs that the file has and that are dropped; nil if nothing is dropped, or if it is unknown.
        public var droppedCount: Int?
    }

    /// One step from a schema to the next.
    public struct Step: Sendable, Hashable {
        /// The version of the model before the step.
        public var from: SchemaVersion
        /// The version of the model after the step.
        public var to: SchemaVersion
        /// A Boolean value that indicates whether the step has custom work, which runs on a copy of the file.
        public var isCustom: Bool
        /// The differences, entity by entity.
        public var changes: [Change]
    }

    /// The version of the model in the file; nil if there is no file, or an empty one.
    public var fileVersion: SchemaVersion?
    /// The version of the model.
    public var modelVersion: SchemaVersion
    /// The steps, oldest first. Empty if the file has the model's schema, or does not exist.
    public var steps: [Step]
    /// The error that opening the file would throw; nil if it would succeed.
    public var refusal: StoreError?

    /// The differences of all steps.
    public var changes: [Change] { steps.flatMap(\.changes) }
    /// A Boolean value that indicates whether opening changes nothing in the schema.
    public var isEmpty: Bool { steps.isEmpty && refusal == nil }
    /// The differences as text, one line each.
    public var lines: [String] {
        var lines = changes.map(\.description)
        if let fileVersion, fileVersion != modelVersion { lines.append("~ version \(fileVersion) → \(modelVersion)") }
        return lines
    }
}

extension ModelChanges: CustomStringConvertible {
    /// The differences and the refusal, separated by semicolons.
    public var description: String {
        let parts = lines + (refusal.map { ["opening would fail: \($0)"] } ?? [])
        return parts.isEmpty ? "no changes" : parts.joined(separator: "; ")
    }
}

extension ModelChanges.Change: CustomStringConvertible {
    /// A line that begins with `+`, `-` or `~`.
    public var description: String {
        let dropped = droppedCount.map { $0 == 0 ? ", which is empty" : ", and drops \($0)" } ?? ""
        return switch kind {
        case .added: "+ \(name)\(after.map { $0.hasPrefix("with") ? ", \($0)" : ": \($0)" } ?? "")"
        case .removed: "- \(name)\(dropped)"
        case .renamed: "~ \(before ?? "") → \(name)"
        case .changed: "~ \(name): \(before ?? "") → \(after ?? "")\(dropped)"
        case .computed: "~ \(name): computed for all objects"
        }
    }
}

extension Model {
    /// Returns the changes that opening a file with this model would make. The file stays as it is.
    ///
    /// Runs on a background queue. Reads the file's schema, and counts what would be dropped. The parameters are those with which the
    /// container is to be opened.
    /// - Parameters:
    ///   - store: The file.
    ///   - migrationPlan: The stages of the migration.
    ///   - allowsDataLoss: The names of entities and properties whose values may be dropped.
    /// - Throws: `StoreError` if the file cannot be read, and `.unsupported` for a store without a file. An error that opening would throw
    ///   because of the schema is in ``ModelChanges/refusal``.
    public func changes(
        opening store: StoreDescription, migrationPlan: MigrationPlan? = nil, allowsDataLoss: Set<String> = []
    ) async throws -> ModelChanges {
        try await DispatchQueue.blocking {
            try ModelComparison(model: self, store: store, plan: migrationPlan, allowsDataLoss: allowsDataLoss).changes()
        }
    }
}
