import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

extension ManagedObjectContext {
    /// Adds one to the plays of a track.
    func incrementPlays(of id: ObjectID) throws {
        let object = try existingObject(with: id)
        guard case .int(let plays) = object["plays"] else { return }
        object["plays"] = .int(plays + 1)
    }
}

extension FaultyStore {
    /// Updates a property of an object as another process does; for nil, deletes the object.
    func updateElsewhere(_ id: ObjectID, entity: String, property: String, to value: Value?) throws {
        let layer = Layer(schema: Music.model.storeSchema)
        let columns = try #require(Music.model.entity(named: entity)).columns.count
        let row = Row.make(kind: value == nil ? .delete : .update, layer: layer.id, columnCount: columns)
        if let value { row[Music.column(entity, property)] = value }
        layer.put(row, entity: id.entity, key: id.key)
        try saveElsewhere(layer)
    }
}
