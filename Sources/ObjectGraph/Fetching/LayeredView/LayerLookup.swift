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
        first { $0.row(entity, page: number, slot: slot) }
    }

    /// Returns the newest row of an object, by its key.
    func newestRow(_ entity: EntityIndex, _ key: ObjectKey) -> Row? {
        newestRow(entity, page: key.page, slot: key.slot)
    }

    /// Returns which layer decides the value of a column. The layers are in order, newest first.
    @inline(__always)
    func lookup(_ entity: EntityIndex, page number: PageNumber, slot: Int, _ column: ColumnIndex) -> LayerAnswer {
        let answer = first { layer -> LayerAnswer? in
            guard let row = layer.row(entity, page: number, slot: slot) else { return nil }
            if row.kind == .delete { return .deleted }
            return row.kind == .insert || row.isSet(column) ? .row(row) : nil
        }
        return answer ?? .below
    }

    /// Returns the first result that is not nil, in order. Does not count references to the layers, which the collection keeps alive.
    @inline(__always)
    private func first<Result>(_ body: (Layer) -> Result?) -> Result? {
        let found = withContiguousStorageIfAvailable { layers -> Result? in
            let bytes = UnsafeRawBufferPointer(layers)
            for place in stride(from: 0, to: bytes.count, by: MemoryLayout<Layer>.stride) {
                let layer = bytes.load(fromByteOffset: place, as: Unmanaged<Layer>.self)
                if let result = layer._withUnsafeGuaranteedRef(body) { return result }
            }
            return nil
        }
        if let found { return found }
        for layer in self {
            if let result = body(layer) { return result }
        }
        return nil
    }
}
