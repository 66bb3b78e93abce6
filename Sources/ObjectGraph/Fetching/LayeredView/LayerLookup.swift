import StoreInterface
import StoreModel

/// The result of looking up a column of an object in layers.
enum LayerAnswer {
    /// The newest row that inserts the object or has the column set.
    case row(Row)
    /// The newest row deletes the object.
    case deleted
    /// No layer has the value. The state below the layers has it, if the object exists there.
    case below
}

/// The newest-layer look-up. Reads of contexts, views, queries and streams all pass through it.
extension Collection<Layer> {
    /// Returns the newest row of an object; nil if no layer changes the object. The layers are in order, newest first.
    @inline(__always)
    func newestRow(_ entity: EntityIndex, page number: PageNumber, slot: Int) -> Row? {
        for layer in self {
            if let row = layer.entity(entity)?.page(number)?[slot] { return row }
        }
        return nil
    }

    /// Returns the newest row of an object, by its key.
    func newestRow(_ entity: EntityIndex, _ key: ObjectKey) -> Row? {
        newestRow(entity, page: key.page, slot: key.slot)
    }

    /// Returns which layer decides the value of a column. The layers are in order, newest first.
    @inline(__always)
    func lookup(_ entity: EntityIndex, page number: PageNumber, slot: Int, _ column: ColumnIndex) -> LayerAnswer {
        for layer in self {
            guard let row = layer.entity(entity)?.page(number)?[slot] else { continue }
            if row.kind == .delete { return .deleted }
            if row.kind == .insert || row.isSet(column) { return .row(row) }
        }
        return .below
    }
}
