import StoreInterface
import StoreModel

/// A policy that resolves conflicts in a save.
///
/// In a conflict, the store's version of an object is newer than the version that the context read.
///
/// A policy also settles a new object whose unique value a saved object has (S108). `objectTrump` and `overwrite` write all of its values,
/// initial values included, to the saved object, which keeps its id. `storeTrump` and `rollback` drop the new object. `error` and `custom`
/// throw ``SaveError/uniqueConstraint(entity:properties:values:objects:)``.
///
/// ```swift
/// context.mergePolicy = .custom { conflicts in
///     conflicts.reduce(into: [:]) { resolutions, conflict in
///         resolutions[conflict.objectID] = conflict.isDeletedInStore ? .rollback : .objectTrump
///     }
/// }
/// ```
public enum MergePolicy: Sendable {
    /// The save throws ``SaveError/conflicts(_:)``, and nothing is written.
    case error
    /// Merges by property. A property changed on both sides takes the store's value; one changed on one side takes that side's value.
    case storeTrump
    /// Merges by property. A property changed on both sides takes the context's value; one changed on one side takes that side's value.
    case objectTrump
    /// Writes the context's whole object.
    case overwrite
    /// Drops the context's changes to the objects in conflict. The rest of the save is written.
    case rollback
    /// Calls your closure once with all conflicts of the save (S109).
    ///
    /// Return a resolution for each conflict. An unresolved conflict, or an error of the closure, fails the save.
    /// A duplicate value of a unique attribute fails the save too.
    ///
    /// The closure runs on the writer's thread, possibly inside the transaction, and runs again if the transaction is repeated.
    /// It must be fast and free of side effects, and must not wait for a context.
    case custom(@Sendable ([MergeConflict]) throws -> [ObjectID: ConflictResolution])
}

/// The resolution of one conflict by a ``MergePolicy/custom(_:)`` policy.
///
/// ```swift
/// context.mergePolicy = .custom { conflicts in
///     conflicts.reduce(into: [:]) { resolutions, conflict in
///         let title = conflict.properties.first { $0.name == "title" }
///         resolutions[conflict.objectID] = title?.theirs.map { ConflictResolution.values(["title": $0]) } ?? .objectTrump
///     }
/// }
/// ```
public enum ConflictResolution: Sendable, Hashable {
    /// Resolves the conflict like the merge policy of this name.
    case storeTrump, objectTrump, overwrite, rollback
    /// Writes these values of attributes and to-one relationships. Other properties keep the store's values.
    ///
    /// An object deleted in the store is restored with the context's other values. An object deleted in the context is kept.
    case values([String: Value])
}

/// A conflict: an object that the context changed and that also changed in the store since the context read it.
///
/// ```swift
/// do {
///     try await context.save()
/// } catch SaveError.conflicts(let conflicts) {
///     for conflict in conflicts { print(conflict.entityName, conflict.properties.map(\.name)) }
/// }
/// ```
public struct MergeConflict: Sendable, Equatable, CustomStringConvertible {
    /// The values of one property in the three states. A value is nil if the object does not exist in that state.
    public struct Property: Sendable, Equatable, CustomStringConvertible {
        /// The name of the property.
        public var name: String
        /// The value that the context read.
        public var base: Value?
        /// The value in the context.
        public var ours: Value?
        /// The value in the store.
        public var theirs: Value?
        let form: ValueForm

        /// The name and the three values: `title: was "a", here "b", in the store "c"`. An object is shown as its entity and id.
        ///
        /// A position in a list is shown by the sides that have changed it, with the member if the list is many-to-many:
        /// `tracks: Track(id: 5), here moved, in the store moved`.
        public var description: String { text(isDeletedHere: false, isDeletedInStore: false) }

        /// Returns the name and the values, without those of a side that has deleted the object.
        fileprivate func text(isDeletedHere: Bool, isDeletedInStore: Bool) -> String {
            func shown(_ value: Value?) -> String {
                guard let value else { return "deleted" }
                guard form.isPlace else { return form.text(value) }
                return Value.areSame(value, base) ? "not moved" : "moved"
            }
            let before = form.isPlace ? form.member : "was \(shown(base))"
            let here = isDeletedHere ? nil : "here \(shown(ours))"
            let inStore = isDeletedInStore ? nil : "in the store \(shown(theirs))"
            return "\(name): \([before, here, inStore].compactMap(\.self).joined(separator: ", "))"
        }
    }

    /// The id of the object.
    public var objectID: ObjectID
    /// The name of the object's entity; the collection and the key of a keyed value, such as `scores["a"]`.
    public var entityName: String
    /// The properties that one side or both sides changed.
    public var properties: [Property]
    /// A Boolean value that indicates whether the context deleted the object.
    public var isDeletedHere: Bool
    /// A Boolean value that indicates whether the object is deleted in the store.
    public var isDeletedInStore: Bool

    /// The entity, the id, both changes and the changed properties with their values, as one line. The side that has deleted the object
    /// has no values: `Track(id: 5): deleted here, changed in the store (title: was "a", in the store "b")`.
    public var description: String {
        let what =
            isDeletedHere
            ? "deleted here, changed in the store"
            : isDeletedInStore
                ? "changed here, deleted in the store" : "changed here and in the store"
        // Against a deletion, the conflict has every property. The unchanged ones would hide the others.
        let changed = properties.filter { !Value.areSame(isDeletedHere ? $0.theirs : $0.ours, $0.base) }
        let shown = (isDeletedHere || isDeletedInStore) && !changed.isEmpty ? changed : properties
        let changes = shown.map { $0.text(isDeletedHere: isDeletedHere, isDeletedInStore: isDeletedInStore) }
        return "\(entityName)(id: \(objectID.key)): \(what) (\(changes.joined(separator: "; ")))"
    }
}
