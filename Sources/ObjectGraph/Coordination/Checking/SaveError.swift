internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An error of a save. The context keeps its pending changes, and the store is unchanged.
///
/// ```swift
/// do {
///     try await context.save()
/// } catch SaveError.conflicts {
///     context.refreshAllObjects()
/// }
/// ```
public enum SaveError: Error, Sendable, CustomStringConvertible {
    /// Objects changed in the store since the context read them, and the merge policy is ``MergePolicy/error``.
    case conflicts([MergeConflict])
    /// Another object already has these values of the properties of a unique constraint (S108).
    case uniqueConstraint(entity: String, properties: [String], values: [Value], objects: [ObjectID])
    /// An object cannot be deleted, because a relationship with delete rule deny still has destinations.
    case deleteDenied(object: ObjectID, relationship: String, blocking: [ObjectID])
    /// A relationship leads to an object that does not exist: this save or an earlier save deleted it (S050).
    case danglingReference(object: ObjectID, property: String, target: ObjectID)
    /// The validation of one or more objects failed. Lists each error with its object: broken rules of properties
    /// (``RuleViolation``), values of another type (``InvalidValue``), and errors of the model's hooks.
    case validation(ValidationErrors)
    /// `willSave` changed objects in every round.
    case willSaveDoesNotSettle(rounds: Int)
    /// The parent of the context was released or reset.
    case parentGone(context: String)
    /// Acknowledged deferred saves could not be written. Thrown by a flush; all other saves are on disk.
    case deferredSavesFailed([DeferredSaveFailure])

    /// The kind of failure, without its values.
    public enum Code: String, Sendable, Hashable {
        case conflicts, uniqueConstraint, deleteDenied, danglingReference, validation, willSaveDoesNotSettle, parentGone
        case deferredSavesFailed
    }

    /// The kind of failure, without its values.
    public var code: Code {
        switch self {
        case .conflicts: .conflicts
        case .uniqueConstraint: .uniqueConstraint
        case .deleteDenied: .deleteDenied
        case .danglingReference: .danglingReference
        case .validation: .validation
        case .willSaveDoesNotSettle: .willSaveDoesNotSettle
        case .parentGone: .parentGone
        case .deferredSavesFailed: .deferredSavesFailed
        }
    }

    /// One line: what failed, why, and what to do.
    public var message: String { text.line }

    /// The first underlying error: of a validation, or of a deferred save. nil for other codes.
    public var cause: (any Error)? {
        switch self {
        case .validation(let failures): failures.first?.1
        case .deferredSavesFailed(let failures): failures.first?.error
        default: nil
        }
    }

    /// The objects whose changes were refused. Empty for codes that concern no single object.
    public var objectIDs: [ObjectID] {
        switch self {
        case .conflicts(let conflicts): conflicts.map(\.objectID)
        case .uniqueConstraint(_, _, _, let objects): objects
        case .deleteDenied(let object, _, _), .danglingReference(let object, _, _): [object]
        case .validation(let failures): failures.map(\.0)
        case .willSaveDoesNotSettle, .parentGone, .deferredSavesFailed: []
        }
    }

    /// The message.
    public var description: String { message }
}

extension SaveError: LocalizedError {
    /// The message.
    public var errorDescription: String? { message }
    /// The message without the remedy.
    public var failureReason: String? { text.reason }
    /// The remedy alone; nil if the message has none.
    public var recoverySuggestion: String? { text.suggestion }

    private var text: ErrorText {
        switch self {
        case .conflicts(let conflicts):
            ErrorText(
                "\(conflicts.count) object(s) changed in the store since they were read: "
                    + conflicts.map(\.description).joined(separator: "; "),
                separator: "; ", remedy: "merge and save again, or choose a merge policy")
        case .uniqueConstraint(let entity, let properties, let values, let objects):
            ErrorText(
                "\(entity).\(properties.joined(separator: " + ")) must be unique, but "
                    + objects.map { "\(entity)(id: \($0.key))" }.joined(separator: " and ") + " have "
                    + zip(properties, values).map { "\($0): \(UniqueForms.form(of: $0, in: entity).text($1))" }
                    .joined(separator: ", "),
                remedy: "Give one of them another value, or choose a merge policy")
        case .deleteDenied(let object, let relationship, let blocking):
            ErrorText(
                "\(EntityNames.text(object)) cannot be deleted: its \(relationship) still has "
                    + KeyText.list(blocking.map(EntityNames.text)),
                separator: "; ", remedy: "delete or move them first")
        case .danglingReference(let object, let property, let target):
            ErrorText(
                "\(property) of \(EntityNames.text(object)) leads to \(EntityNames.text(target)), which does not exist: it was deleted, or never saved",
                separator: "; ", remedy: "set another object or nil and save again")
        case .validation(let failures):
            ErrorText("\(failures)")
        case .willSaveDoesNotSettle(let rounds):
            ErrorText(
                "willSave changed objects in each of \(rounds) rounds", separator: "; ",
                remedy: "it must stop changing them at some point")
        case .parentGone(let context):
            ErrorText(
                "cannot save the context \(context): its parent was released or reset, and nothing was saved",
                remedy: "Keep the parent, and make the changes again in a new child of it")
        case .deferredSavesFailed(let failures):
            ErrorText(
                "\(failures.count) deferred save(s) could not be written: " + failures.map(\.description).joined(separator: "; "),
                remedy: "Save those changes again")
        }
    }
}

extension SaveError: Equatable {
    /// Returns whether two errors have the same code and values. Underlying errors that are not `Equatable` are compared by type and text.
    public static func == (a: SaveError, b: SaveError) -> Bool {
        switch (a, b) {
        case (.conflicts(let a), .conflicts(let b)): a == b
        case (.uniqueConstraint(let a, let b, let c, let d), .uniqueConstraint(let e, let f, let g, let h)):
            (a, b, c, d) == (e, f, g, h)
        case (.deleteDenied(let a, let b, let c), .deleteDenied(let d, let e, let f)): (a, b, c) == (d, e, f)
        case (.danglingReference(let a, let b, let c), .danglingReference(let d, let e, let f)): (a, b, c) == (d, e, f)
        case (.validation(let a), .validation(let b)):
            a.elementsEqual(b) { $0.0 == $1.0 && ErrorComparison.areEqual($0.1, $1.1) }
        case (.willSaveDoesNotSettle(let a), .willSaveDoesNotSettle(let b)): a == b
        case (.parentGone(let a), .parentGone(let b)): a == b
        case (.deferredSavesFailed(let a), .deferredSavesFailed(let b)): a == b
        default: false
        }
    }
}

/// The ways in which people read the values of unique properties. Errors have the values alone.
enum UniqueForms {
    private static let forms = Mutex<[String: ValueForm]>([:])

    /// Remembers the form of a property, before an error with its values is made.
    static func note(_ form: ValueForm, of property: String, in entity: String) {
        forms.withLock { $0["\(entity).\(property)"] = form }
    }

    static func form(of property: String, in entity: String) -> ValueForm {
        forms.withLock { $0["\(entity).\(property)"] } ?? ValueForm()
    }
}

/// The names of entities whose objects errors name. An id has the number of its entity alone.
enum EntityNames {
    private struct Place: Hashable {
        var store: StoreIdentity
        var entity: EntityIndex
    }

    private static let names = Mutex<[Place: String]>([:])

    /// Remembers the names of the entities of some objects, before an error with their ids is made.
    static func note(_ ids: some Sequence<ObjectID>, in schema: StoreSchema) {
        names.withLock { names in
            for id in ids { names[Place(store: id.store, entity: id.entity)] = schema.entities[id.entity].name }
        }
    }

    /// Returns an object as people read it: `Shop(id: 3)`, or its id if the name of its entity is not known.
    static func text(_ id: ObjectID) -> String {
        names.withLock { $0[Place(store: id.store, entity: id.entity)] }.map { "\($0)(id: \(id.key))" } ?? "\(id)"
    }
}

/// The one line of an error, in its two halves.
struct ErrorText {
    var reason: String
    var separator: String
    var remedy: String?

    init(_ reason: String, separator: String = ". ", remedy: String? = nil) {
        self.reason = reason
        self.separator = separator
        self.remedy = remedy
    }

    var line: String { remedy.map { reason + separator + $0 } ?? reason }
    /// The remedy as a sentence of its own.
    var suggestion: String? { remedy.map { $0.prefix(1).uppercased() + $0.dropFirst() } }
}
