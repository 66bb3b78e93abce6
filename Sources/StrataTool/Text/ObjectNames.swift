import ObjectGraph
import StoreInterface
import StoreModel

/// Ids of objects for people: the entity and the key, such as `Track 12`.
struct ObjectNames: Sendable {
    let model: Model
    let store: StoreIdentity

    /// Returns the entity and the key of an object of the store. Returns the id itself for an object of another store, and if the model
    /// has no such entity.
    func text(_ id: ObjectID) -> String {
        guard id.store == store, model.entities.indices().contains(id.entity) else { return id.description }
        return "\(model.entities[id.entity].name) \(id.key)"
    }

    /// Returns the id that a text shows: an entity and a key, or an id; nil for other texts.
    func id(_ text: String) -> ObjectID? {
        if let id = ObjectID(text) { return id }
        guard let blank = text.lastIndex(of: " "), let entity = model.entity(named: String(text[..<blank])),
            let key = ObjectKey(text[text.index(after: blank)...])
        else { return nil }
        return ObjectID(store: store, entity: entity.number, key: key)
    }
}
