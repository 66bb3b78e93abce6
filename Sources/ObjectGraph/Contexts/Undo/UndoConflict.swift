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
        /// The property was changed since, or by others between two changes of the group.
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
    /// The id of the object. A place in a many-to-many relationship belongs to the object that has the list.
    public var objectID: ObjectID
    /// The name of the object's entity; the collection and the key of a keyed value, such as `scores["a"]`.
    public var entityName: String
    /// The name of the attribute or relationship; nil if the conflict concerns the whole object.
    public var property: String?
    /// The value that the group left, or the value of others that it has replaced between two of its changes; nil if the conflict is about
    /// no value.
    public var expected: Value?
    /// The present value; nil if the conflict is about no value.
    public var present: Value?
    /// The value that the undo would write; nil if the conflict is about no value.
    public var wanted: Value?
    /// The form of the values.
    var form = ValueForm()
    /// Whether ``expected`` is a value of others that the group has replaced, so that nothing was changed since.
    var isReplacedByGroup = false

    /// The object, the property and the reason, as one line. A place in a many-to-many relationship is named by its list and member.
    public var description: String {
        let named = "\(entityName)(id: \(objectID.key))" + (property.map { ".\($0)" } ?? "")
        let place = form.member.map { "the place of \($0) in \(named)" } ?? named
        switch kind {
        case .changed where isReplacedByGroup: return "\(place) was changed between two changes of the group\(values)"
        case .changed: return "\(place) was changed since\(values)"
        case .deleted: return "\(place) was deleted since"
        case .exists: return "\(place) exists again"
        case .referenced: return "\(place) is related to objects that were inserted or changed since"
        case .missingDestination:
            return "\(place) would refer to \(wanted.map(form.text) ?? "an object"), which was deleted since"
        case .unknownValue: return "\(place) cannot be undone: the value before the change is not known"
        }
    }

    /// The values of a changed property, as far as they are known.
    private var values: String {
        if isReplacedByGroup, !form.isPlace, let expected {
            return ": it was \(form.text(expected))" + (wanted.map { ", and would become \(form.text($0))" } ?? "")
        }
        guard !form.isPlace, let present else { return "" }
        let former = expected.map { " instead of \(form.text($0))" } ?? ""
        return ": it is \(form.text(present))\(former)" + (wanted.map { ", and would become \(form.text($0))" } ?? "")
    }
}

extension UndoConflict {
    /// Creates a conflict about a column of an object, or about the whole object, with the store's names.
    init(_ kind: Kind, at address: ObjectAddress, column: ColumnIndex?, in context: ManagedObjectContext) {
        let entity = context.storedModel.entities[address.entity]
        self.init(
            kind: kind, objectID: ObjectID(store: context.storeIdentity, entity: address.entity, key: address.key),
            entityName: entity.name, property: column.map { entity.columns[$0].name },
            form: column.map { context.capabilities.rules.form(of: $0, in: address.entity) } ?? ValueForm())
    }

    /// Returns the conflict with the names that people know (S172, S192). The objects of keyed values and of places in many-to-many
    /// relationships belong to hidden entities.
    ///
    /// - Parameters:
    ///   - views: The states that may have the object, the present one first.
    ///   - step: The step of the conflict, which names keyed values and places that no view has.
    func named(in context: ManagedObjectContext, reading views: [LayeredView], step: UndoStep? = nil) throws -> UndoConflict {
        let (entity, object) = (objectID.entity, objectID.key)
        var named = self
        if entity == context.capabilities.keyedValues {
            let keys = try views.compactMap { try $0.value(entity, key: object, column: KeyedColumn.key) }
            guard case .data(let key)? = keys.first ?? step?.keys[object] else { return self }
            // A collection that has begun anew may have other types in each state. Its keys and values are then shown as bytes.
            let types = try views.compactMap { try $0.keyedTypes(entity, key: key) }
            let (keyTypes, forms) = (Set(types.map(\.key)), Set(types.map(\.valueForm)))
            named.entityName = KeyedColumn.text(key, keyType: keyTypes.count == 1 ? keyTypes.first : nil)
            if forms.count == 1, let form = forms.first { named.form = form }
        } else if context.capabilities.rules.isOrder(entity) {
            let pairs = try views.compactMap { try $0.placedPair(of: object, entity) }
            guard let pair = pairs.first ?? step?.places[ObjectAddress(entity: entity, key: object)],
                let place = NamedPlace(pair, order: entity, in: context.storedModel.storeSchema)
            else { return self }
            named.objectID = ObjectID(store: objectID.store, entity: place.list.entity, key: place.list.key)
            named.entityName = place.entityName
            named.property = place.relationship
            named.form = place.form
        }
        return named
    }
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
