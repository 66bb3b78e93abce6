import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// The keyed collections of a store in one state, in the order of their keys: the types of all collections, and then the entries.
struct StoredRecords {
    private let snapshot: any StoreSnapshot
    private let entity: EntityIndex?
    private let keys: [ObjectKey]
    private var position = 0
    /// The page of the last record.
    private var open: (number: PageNumber, page: any StorePage)?
    /// The collections that were returned, by name.
    private(set) var collections: [CollectionName: StoredCollection] = [:]

    var isEmpty: Bool { keys.isEmpty }

    /// - Parameters:
    ///   - snapshot: The state.
    ///   - damage: Collects what cannot be read, which is left out. Without it, damage is an error.
    init(_ snapshot: any StoreSnapshot, _ damage: DamageReport? = nil) throws {
        self.snapshot = snapshot
        guard let entity = StoredCollection.entity(in: snapshot.schema) else {
            entity = nil
            keys = []
            return
        }
        self.entity = entity
        guard damage != nil else {
            keys = try snapshot.keys(StoreQuery(entity: entity, sort: [StoreSort(column: 0)]))
            return
        }
        // Without the index, which may be damaged.
        let table = SalvagedTable(entity, in: snapshot.schema, name: "keyed collections")
        var found: [(bytes: [UInt8], key: ObjectKey)] = []
        for number in try damage.pages(table, snapshot) {
            guard let page = try damage.page(number, of: table, in: snapshot) else { continue }
            for slot in SlotIterator(try damage.presence(page, table)) {
                guard case .data(let bytes) = try page.value(slot, 0) else { continue }
                found.append((Array(bytes), PageAddress.key(page: number, slot: slot)))
            }
        }
        found.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        // An import refuses a second value for a key.
        keys = found.indices.compactMap { index in
            guard index > 0, found[index].bytes == found[index - 1].bytes else { return found[index].key }
            damage?.noteObject(table.name)
            return nil
        }
    }

    /// Returns the next record, or nil at the end.
    mutating func next(leavingOut damage: DamageReport? = nil) throws -> StoredCollection.Record? {
        while position < keys.count {
            let key = keys[position]
            position += 1
            let (page, slot) = (try page(of: key), key.slot)
            guard case .data(let bytes)? = try page?.presentValue(slot, 0),
                case .data(let value)? = try page?.presentValue(slot, 1),
                let record = StoredCollection.Record(key: bytes, value: value)
            else {
                guard let damage else { throw Self.failure("a record of the keyed collections cannot be read") }
                damage.noteObject("keyed collections")
                continue
            }
            switch record {
            case .collection(let collection): collections[CollectionName(collection.name)] = collection
            case .entry(let name, _) where collections[CollectionName(name)] == nil:
                guard let damage else { throw Self.failure("the types of the collection \(name) cannot be read") }
                damage.noteObject("the collection \(name)")
                continue
            case .entry: break
            }
            return record
        }
        return nil
    }

    /// Returns the page of a record, whose checksum is checked.
    private mutating func page(of key: ObjectKey) throws -> (any StorePage)? {
        let number = key.page
        if let open, open.number == number { return open.page }
        let page = try entity.flatMap { try snapshot.checkedPage($0, number) }
        open = page.map { (number, $0) }
        return page
    }

    private static func failure(_ reason: String) -> ToolError {
        .failed("the store is damaged: \(reason). Restore a backup, or copy what is whole with `strata repair`")
    }
}

/// A table whose objects are read as far as they are whole.
struct SalvagedTable {
    var name: String
    var entity: EntityIndex
    var schema: EntitySchema

    /// - Parameter name: The name for reports; nil for that of the entity.
    init(_ entity: EntityIndex, in schema: StoreSchema, name: String? = nil) {
        self.entity = entity
        self.schema = schema.entities[entity]
        self.name = name ?? self.schema.name
    }
}
