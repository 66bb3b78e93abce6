import StoreInterface
import StoreModel

/// The treatment of changes that were made since the group that is undone or redone.
///
/// ```swift
/// let left = try history.undo(onConflict: .skip)
/// for conflict in left { print("not undone: \(conflict)") }
/// ```
public enum UndoPolicy: Sendable, Hashable {
    /// The undo throws ``UndoError/conflicts(_:)`` and changes nothing.
    case error
    /// Properties and objects in conflict stay as they are. All others are undone.
    case skip
    /// The group's values replace the newer ones. What cannot be replaced, such as a property of a deleted object, is skipped.
    case force
}

/// A conflict: a property or object that no longer is as the group left it that is undone or redone.
///
/// ```swift
/// do {
///     try history.undo()
/// } catch UndoError.conflicts(let conflicts) {
///     for conflict in conflicts { print(conflict) }
///     try history.undo(onConflict: .skip)
/// }
/// ```
public struct UndoConflict: Sendable, Equatable, CustomStringConvertible {
    /// The kind of a conflict.
    public enum Kind: Sendable, Hashable {
        /// The property was changed since.
        case changed
        /// The object was deleted since.
        case deleted
        /// The object, or another object with its key in a collection, was inserted since.
        case exists
        /// Another object was related since to the object that would be deleted.
        case referenced
        /// The object that the property would refer to was deleted since.
        case missingDestination
        /// The change cannot be undone, because the value before it is not known.
        case unknownValue
    }

    /// The kind of the conflict.
    public var kind: Kind
    /// The id of the object.
    public var objectID: ObjectID
    /// The name of the object's entity.
    public var entityName: String
    /// The name of the attribute or relationship; nil if the conflict concerns the whole object.
    public var property: String?
    /// The value that the group left; nil if the conflict is about no value.
    public var expected: Value?
    /// The present value; nil if the conflict is about no value.
    public var present: Value?
    /// The value that the undo would write; nil if the conflict is about no value.
    public var wanted: Value?

    /// The object, the property and the reason, as one line.
    public var description: String {
        let place = "\(entityName)(id: \(objectID.key))" + (property.map { ".\($0)" } ?? "")
        switch kind {
        case .changed:
            return
                "\(place) was changed since: it is \(text(present)) instead of \(text(expected)), and would become \(text(wanted))"
        case .deleted: return "\(place) was deleted since"
        case .exists: return "\(place) exists again"
        case .referenced: return "\(place) is related to objects that were inserted or changed since"
        case .missingDestination: return "\(place) would refer to \(text(wanted)), which was deleted since"
        case .unknownValue: return "\(place) cannot be undone: the value before the change is not known"
        }
    }

    private func text(_ value: Value?) -> String { value.map { "\($0)" } ?? "nothing" }
}

/// The reason why nothing was undone or redone. The context is unchanged.
///
/// ```swift
/// do {
///     try history.undo()
/// } catch UndoError.groupTooLarge {
///     print("this import cannot be undone")
/// }
/// ```
public enum UndoError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Objects were changed since, by another context or without being recorded.
    case conflicts([UndoConflict])
    /// The newest group was larger than ``UndoHistory/byteLimit``, so it was not kept.
    case groupTooLarge(context: String, limit: Int)
    /// Groups that the program has opened are not closed.
    case groupIsOpen(context: String, levels: Int)
    /// The history was removed from its context, or the context was released.
    case noContext

    /// The reason for the error, and the remedy.
    public var description: String {
        switch self {
        case .conflicts(let conflicts):
            let shown = conflicts.prefix(4).map(\.description).joined(separator: "; ")
            let rest = conflicts.count > 4 ? "; … (\(conflicts.count) conflicts)" : ""
            return "cannot undo without losing newer changes: \(shown)\(rest). Undo with the policy skip or force"
        case .groupTooLarge(let context, let limit):
            return
                "cannot undo the newest changes of \(context): they are larger than the limit of \(limit) bytes. Raise byteLimit before such "
                + "changes, or roll back"
        case .groupIsOpen(let context, let levels):
            return "cannot undo in \(context): groups are open, \(levels) of them. Call endGroup() first, or undoNestedGroup()"
        case .noContext: return "cannot undo: the history belongs to no context. Set it as undoHistory of a context"
        }
    }
}
