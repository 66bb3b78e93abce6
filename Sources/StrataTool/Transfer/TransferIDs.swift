import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// Ids of objects in the keys of keyed collections, on their way from one store to another.
///
/// A copied object has another id than the original. On the way, its id has the store ``store`` and the ``TransferObject/id`` as its key, as
/// references do. Ids of other stores stay as they are.
enum TransferIDs {
    /// The store of ids that stand for objects of a transfer.
    static let store = StoreIdentity(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))

    /// Returns the names of the objects of a transfer in files: `Track 12` is the object of the entity Track whose `$id` is 12.
    static func names(in model: Model) -> ObjectNames { ObjectNames(model: model, store: store) }

    /// Returns a key with other ids.
    /// - Parameters:
    ///   - key: The bytes of a key.
    ///   - collection: The collection, whose type of keys says where the ids are.
    ///   - id: A closure that returns the id for each id in the key.
    static func replace(
        in key: Data, of collection: StoredCollection, with id: @escaping (ObjectID) -> ObjectID
    ) -> Data {
        guard CollectionText.hasIDs(collection), let texts = collection.texts(ofKey: key), collection.key(texts) == key,
            let replaced = collection.texts(ofKey: key, naming: { id($0).description })
        else { return key }
        return collection.key(replaced) ?? key
    }

    /// Returns the ids in a key.
    static func ids(in key: Data, of collection: StoredCollection) -> [ObjectID] {
        guard CollectionText.hasIDs(collection) else { return [] }
        var found: [ObjectID] = []
        _ = collection.texts(ofKey: key) { id in
            found.append(id)
            return ""
        }
        return found
    }
}
