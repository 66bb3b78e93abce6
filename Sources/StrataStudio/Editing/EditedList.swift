import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// A to-many relationship in a form.
struct EditableList: Encodable, Sendable {
    var name: String
    var destination: String
    /// Whether the objects keep the order in which the form has them.
    var isOrdered: Bool
    var members: [ObjectPages.Related.Member]
    /// The reason why the relationship cannot be edited here.
    var note: String?

    /// The greatest number of objects that can be edited.
    static let maximumCount = 500

    /// Reads the to-many relationships of an object.
    ///
    /// - Parameter id: The object; nil for a new one.
    static func all(
        of id: ObjectID?, _ entity: Entity, _ store: StudioStore, in context: ManagedObjectContext
    ) throws -> [EditableList] {
        try entity.relationships.compactMap { relationship in
            guard case .toMany = relationship.kind else { return nil }
            let far = store.destination(of: relationship)
            var list = EditableList(
                name: relationship.name, destination: far.name, isOrdered: relationship.isOrdered, members: [])
            guard let id else { return list }
            if let inverse = store.inverse(of: relationship) {
                let count = try context.count(EntityFetchRequest(far.name, matching: ObjectPages.condition(inverse, id)))
                if count > maximumCount {
                    list.note = "\(count) objects, too many to edit here"
                    return list
                }
            }
            let keys = try context.existingObject(with: id).relatedObjects(relationship.name).map(\.objectID.key)
            list.members = try ObjectPages.members(keys, of: far, store: store, in: context)
            return list
        }
    }
}

/// The objects that a form gives a to-many relationship.
struct EditedList: Sendable {
    let relationship: Relationship
    let keys: [ObjectKey]

    /// - Parameters:
    ///   - name: The name of the relationship.
    ///   - texts: The keys as texts.
    ///   - entity: The entity of the edited object.
    ///   - store: The store of the page.
    init(_ name: String, texts: [String], entity: Entity, store: StudioStore) throws {
        guard let relationship = entity.relationship(named: name), case .toMany = relationship.kind else {
            throw PageError(.badRequest, "\(entity.name) has no to-many relationship \(name). Edit the object again")
        }
        guard texts.count <= EditableList.maximumCount else {
            throw PageError(
                .badRequest,
                "\(name): \(texts.count) objects are too many. Remove some, at most \(EditableList.maximumCount) remain")
        }
        self.relationship = relationship
        keys = try texts.map { try store.key($0) }
        var known: Set<ObjectKey> = []
        for key in keys where !known.insert(key).inserted {
            throw PageError(.badRequest, "\(name): the key \(key) occurs twice. Remove one of them")
        }
    }

    /// Sets the relationship. The child context shows the state of the beginning of the edit, so that only the difference is saved.
    ///
    /// - Returns: The keys before and after; nil if they are equal.
    func apply(
        to object: ManagedObject, _ store: StudioStore, in context: ManagedObjectContext
    ) throws -> ObjectDifference.Property? {
        let before = object.relatedObjects(relationship.name).map(\.objectID.key)
        guard relationship.isOrdered ? before != keys : Set(before) != Set(keys) else { return nil }
        let far = store.destination(of: relationship)
        for key in keys where !before.contains(key) {
            do { _ = try store.entity(of: store.id(far, key), asked: far, in: context) } catch is PageError {
                throw PageError(
                    .badRequest, "\(relationship.name): there is no \(far.name) with the key \(key). Write the key of another one"
                )
            }
        }
        object.setRelatedObjects(relationship.name, to: keys.map { context.object(with: store.id(far, $0)) })
        return .init(name: relationship.name, before: Self.cell(before), after: Self.cell(keys))
    }

    private static func cell(_ keys: [ObjectKey]) -> Cell {
        Cell(text: keys.isEmpty ? "no objects" : keys.map { "\($0)" }.joined(separator: ", "))
    }
}
