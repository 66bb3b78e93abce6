internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The entries of one save of an import into a keyed collection, each key once (S192).
struct KeyedInsertion: ImportChunk {
    typealias Element = (key: [UInt8], value: Data)

    let entityNumber: EntityIndex
    private let name: String
    private let types: CollectionTypes
    private let record = TypesRecord()
    private var entries: [(key: Data, value: Data)] = []
    /// The positions of keys in ``entries``. `Data` hashes its first 80 bytes only, which long keys may have in common.
    private var positions: [[UInt8]: Int] = [:]
    private(set) var count = 0
    var keys: [Range<ObjectKey>] = []

    /// The object with the types of the collection, which all saves of one import share.
    private final class TypesRecord: Sendable {
        let object = Mutex<ObjectKey?>(nil)
    }

    init(_ entity: EntityIndex, of name: String, types: CollectionTypes) {
        entityNumber = entity
        self.name = name
        self.types = types
    }

    /// One per entry, and one for the types.
    var keyCount: Int { entries.count + 1 }
    var hiddenObject: ObjectKey? { record.object.withLock { $0 } }

    mutating func reserveCapacity(_ count: Int) {
        entries.reserveCapacity(count)
        positions.reserveCapacity(count)
    }

    mutating func append(_ entry: Element, number: Int) {
        count += 1
        // Of two entries with one key, the last one wins.
        if let position = positions[entry.key] {
            entries[position].value = entry.value
        } else {
            positions[entry.key] = entries.count
            entries.append((key: Data(entry.key), value: entry.value))
        }
    }

    func layer(over state: StoreState, schema: StoreSchema) throws -> Layer {
        let layer = Layer(schema: schema)
        let view = state.view
        var free = keys.lazy.joined().makeIterator()
        try recordTypes(in: layer, over: view, free: &free)
        for entry in entries {
            if let object = try view.keyedObject(entityNumber, entry.key) {
                // An equal value is no change, so that it makes no conflict.
                if try view.value(entityNumber, key: object, column: KeyedColumn.value) == .data(entry.value) { continue }
                put(entry, .update, at: object, in: layer)
            } else {
                // There are more keys than entries.
                guard let object = free.next() else { break }
                put(entry, .insert, at: object, in: layer)
            }
        }
        return layer
    }

    /// Records the types of a new collection, or the new name of the type of values.
    ///
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if the collection has other types in the view.
    private func recordTypes(
        in layer: Layer, over view: LayeredView, free: inout some IteratorProtocol<ObjectKey>
    ) throws {
        let known = try view.typesRecord(entityNumber, of: name)
        let isNew = known == nil
        guard let object = known?.object ?? free.next() else { return }
        if try isNew || types.check(known?.bytes ?? Data(), name) == .renamed {
            put((KeyedColumn.typesKey(name), try types.bytes()), isNew ? .insert : .update, at: object, in: layer)
        }
        record.object.withLock { $0 = object }
    }

    /// Each changed row has the key, so that the change can be applied to another object that has got the same key meanwhile.
    private func put(_ entry: (key: Data, value: Data), _ kind: RowKind, at object: ObjectKey, in layer: Layer) {
        let row = Row.make(kind: kind, layer: layer.id, columnCount: 2)
        row.fill(with: [.data(entry.key), .data(entry.value)])
        layer.put(row, entity: entityNumber, key: object)
    }
}
