import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel
import NIOConcurrencyHelpers

/// One edit: an object, or a new one, in a child context.
final class Edit: Sendable {
    /// The author of the saves in the history.
    static let author = "strata studio"

    struct State {
        /// Whether the changes in the child were previewed, and can be saved.
        var isReady = false
        /// Whether a save is running. Until it ends, the changes in the child stay as they are.
        var isSaving = false
        /// The number of previews. Of several at one time, only the last one makes the changes ready.
        var previews = 0
        /// The new object of the last preview.
        var inserted: ObjectID?
    }

    let entity: Entity
    /// The edited object; nil for a new one.
    let id: ObjectID?
    /// The root context, whose state the child shows.
    let parent: BackgroundContext
    let child: BackgroundContext
    let state = NIOLockedValueBox(State())

    init(entity: Entity, id: ObjectID?, parent: BackgroundContext, child: BackgroundContext) {
        self.entity = entity
        self.id = id
        self.parent = parent
        self.child = child
    }

    /// Begins a preview, whose changes are not ready before it ends.
    ///
    /// - Returns: The number of the preview.
    func beginPreview() throws -> Int {
        try state.withLockedValue { state in
            guard !state.isSaving else { throw PageError(.conflict, "the changes are being saved. Wait for the end of the save") }
            state.isReady = false
            state.previews += 1
            return state.previews
        }
    }

    /// Throws if a newer preview has begun. Its changes are in the child, or will be.
    func checkIsNewest(_ number: Int) throws {
        guard state.withLockedValue({ $0.previews == number }) else {
            throw PageError(.conflict, "a newer preview of this edit has begun. Wait for that one")
        }
    }

    func endPreview(_ number: Int, isReady: Bool) {
        state.withLockedValue { if $0.previews == number { $0.isReady = isReady } }
    }

    /// Returns false if the changes of the last preview are not ready, or are being saved.
    func beginSave() -> Bool {
        state.withLockedValue { state in
            guard state.isReady, !state.isSaving else { return false }
            (state.isReady, state.isSaving) = (false, true)
            return true
        }
    }

    func endSave() { state.withLockedValue { $0.isSaving = false } }

    /// Returns the value that a text of the form stands for.
    func value(_ text: String?, of name: String, _ store: StudioStore) throws -> (ColumnSchema, Value) {
        guard let number = entity.column(named: name), entity.declaredColumns.contains(number),
            entity.columns[number].derivation == nil
        else {
            throw PageError(.badRequest, "\(entity.name) has no property \(name) that can be set. Edit the object again")
        }
        let column = entity.columns[number]
        guard let text else { return (column, .null) }
        guard let value = store.language.value(text, column.type) else {
            let type = column.destination == nil ? "type \(column.type.rawValue)" : "keys of \(column.typeText(in: store.model))"
            throw PageError(.badRequest, "\(name): \(text.prefix(100).debugDescription) is no value of the \(type). Correct it")
        }
        return (column, value)
    }

    /// Makes the changes in the child, after dropping those of an earlier preview.
    ///
    /// - Returns: The changed values.
    func apply(
        _ values: [(ColumnSchema, Value)], lists: [EditedList], isDeletion: Bool, store: StudioStore,
        in context: ManagedObjectContext
    ) throws -> [ObjectDifference.Property] {
        context.rollback()
        let object: ManagedObject
        if let id {
            object = try context.existingObject(with: id)
        } else {
            object = context.insert(entity)
            let inserted = object.objectID
            state.withLockedValue { $0.inserted = inserted }
        }
        if isDeletion, id != nil {
            let before = object.committedValues()
            context.delete(object)
            return store.columns(of: entity).compactMap { column in
                guard let value = before[column.name], !value.isNull else { return nil }
                return .init(name: column.name, before: store.cell(value, column.type, limit: 500), after: Cell())
            }
        }
        for (column, value) in values {
            if let key = value.referenceKey, let far = column.destination {
                try check(key, entity: far, column: column, store: store, in: context)
            }
            object[column.name] = value
        }
        let changedLists = try lists.compactMap { try $0.apply(to: object, store, in: context) }
        let before = object.committedValues()
        let after = object.changedValues
        let changedValues = store.columns(of: entity).compactMap { column -> ObjectDifference.Property? in
            guard let value = after[column.name] else { return nil }
            let old = id == nil ? .null : before[column.name] ?? .null
            guard old.order(value) != 0 else { return nil }
            return .init(
                name: column.name, before: store.cell(old, column.type, limit: 500),
                after: store.cell(value, column.type, limit: 500))
        }
        return changedValues + changedLists
    }

    private func check(
        _ key: ObjectKey, entity: EntityIndex, column: ColumnSchema, store: StudioStore, in context: ManagedObjectContext
    ) throws {
        let far = store.model.entities[entity]
        do { _ = try context.existingObject(with: store.id(far, key)) } catch is ContextError {
            throw PageError(
                .badRequest, "\(column.name): there is no \(far.name) with the key \(key). Write the key of another one")
        }
    }
}

/// The object to edit; a new one without a key.
struct EditTarget: Decodable, Sendable {
    var entity: String
    var key: String?
}

struct EditReference: Decodable, Sendable { var edit: String }

/// The changes of a form: the texts of the changed properties, with null for nil.
struct EditRequest: Decodable, Sendable {
    var edit: String
    var values: [String: String?]
    /// The keys of all objects of the changed to-many relationships, in their order.
    var lists: [String: [String]]?
    var isDeletion: Bool?
}

/// The values to edit.
struct EditForm: Encodable, Sendable {
    struct Field: Encodable, Sendable {
        var name: String
        var type: String
        var destination: String?
        var isOptional: Bool
        /// nil for null.
        var text: String?
        /// The reason why the property cannot be edited here.
        var note: String?

        /// The greatest number of characters of a text that can be edited.
        private static let maximumCharacters = 100_000

        init(_ column: ColumnSchema, value: Value, store: StudioStore) {
            name = column.name
            type = column.typeText(in: store.model)
            destination = column.destination.map { store.model.entities[$0].name }
            isOptional = column.isOptional
            if case .data(let data) = value, data.count > Self.maximumCharacters / 2 {
                note = "\(data.count) bytes, too many to edit here"
            } else if case .string(let text) = value, text.utf8.count > Self.maximumCharacters {
                note = "\(text.count) characters, too many to edit here"
            } else {
                text = store.language.text(value, column.type)
            }
            if column.derivation != nil { note = "derived from other values" }
        }
    }

    var edit: String
    var fields: [Field]
    var lists: [EditableList]
}

/// The result that a save would have.
struct EditPreview: Encodable, Sendable {
    var changes: [ObjectDifference.Property]
    /// The other objects that change.
    var others: [String]
    var isReady: Bool
    /// The error that the save would have.
    var failure: String?
}

struct EditResult: Encodable, Sendable {
    /// The number of the save.
    var save: Generation?
    var key: String?
}
