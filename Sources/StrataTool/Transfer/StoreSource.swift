import ObjectGraph
import StoreInterface
import StoreModel

/// The objects of a store, in one state. The id of an object is its position among the objects of its entity, from 1, so that a copy has
/// the same ids.
final class StoreSource: ObjectSource {
    let model: Model
    private(set) var notes: [String] = []
    private let store: any ObjectStore
    private let snapshot: any StoreSnapshot
    private let positions: [Positions]
    /// The entities to read.
    private var entities: ArraySlice<EntityIndex>
    private var page = 0
    private var open: (page: any StorePage, slots: SlotIterator)?
    private var lost = 0
    private let selection: Selection?
    private let damage: DamageReport?
    /// The keyed collections; nil if one entity is read.
    private var records: StoredRecords?

    /// The objects of one entity, and of the entities that inherit from it.
    struct Selection {
        /// The store's entity.
        let entity: EntityIndex
        /// The column of types, and the types of the objects; nil for all objects.
        private let types: (column: ColumnIndex, values: Set<Int64>)?

        init(_ entity: Entity, in model: Model) {
            self.entity = entity.number
            let schema = model.storeSchema.entities[entity.number]
            types = entity.superentityName == nil ? nil : schema.typeColumn.map { ($0, schema.types(ofSubentity: entity.name)) }
        }

        /// Returns the slots of a page that have selected objects.
        func slots(_ presence: UInt64, of page: any StorePage) throws -> UInt64 {
            guard let types else { return presence }
            var selected: UInt64 = 0
            for slot in SlotIterator(presence) {
                guard case .int(let type) = try page.value(slot, types.column), types.values.contains(type) else { continue }
                selected |= 1 << UInt64(slot)
            }
            return selected
        }
    }

    /// The positions of the objects of an entity.
    private struct Positions {
        var pages: [PageNumber] = []
        var presences: [UInt64] = []
        /// The number of objects before each page.
        var starts: [UInt64] = []
        var count: UInt64 = 0

        /// Returns the position of an object from 1; nil if it does not exist.
        func position(of key: ObjectKey) -> UInt64? {
            let page = key.page
            var (low, high) = (0, pages.count)
            while low < high {
                let middle = (low + high) / 2
                if pages[middle] < page { low = middle + 1 } else { high = middle }
            }
            let bit: UInt64 = 1 << UInt64(key.slot)
            guard low < pages.count, pages[low] == page, presences[low] & bit != 0 else { return nil }
            return starts[low] + UInt64((presences[low] & (bit - 1)).nonzeroBitCount) + 1
        }
    }

    /// Opens a store. Blocks.
    /// - Parameters:
    ///   - selection: The objects to read; nil for all.
    ///   - damage: Collects what cannot be read, which is left out. Without it, damage is an error.
    init(_ path: String, _ stored: Model, only selection: Selection? = nil, leavingOut damage: DamageReport? = nil) throws {
        self.damage = damage
        self.selection = selection
        model = stored
        store = try FileKind(ofFile: path).description(path, .reading).open(stored.storeSchema)
        snapshot = try store.snapshot()
        let snapshot = snapshot
        positions = try stored.entities.map { entity in
            var positions = Positions()
            let table = SalvagedTable(entity.number, in: stored.storeSchema)
            for number in try damage.pages(table, snapshot) {
                let page = try damage.page(number, of: table, in: snapshot)
                guard let page else { continue }
                var presence = try damage.presence(page, table)
                if entity.number == selection?.entity { presence = try selection?.slots(presence, of: page) ?? presence }
                guard presence != 0 else { continue }
                positions.pages.append(number)
                positions.presences.append(presence)
                positions.starts.append(positions.count)
                positions.count += UInt64(presence.nonzeroBitCount)
            }
            return positions
        }
        entities = selection.map { [$0.entity] } ?? ArraySlice(stored.entities.indices())
        records = try selection == nil ? StoredRecords(snapshot, damage) : nil
    }

    var hasCollections: Bool { records.map { !$0.isEmpty } ?? false }

    func nextRecord() throws -> StoredCollection.Record? {
        guard let record = try records?.next(leavingOut: damage) else { return nil }
        guard case .entry(let name, var entry) = record, let collection = records?.collections[CollectionName(name)] else {
            return record
        }
        entry.key = TransferIDs.replace(in: entry.key, of: collection) { [store, positions] id in
            guard id.store == store.identity, positions.indices().contains(id.entity),
                let position = positions[id.entity].position(of: id.key)
            else { return id }
            return ObjectID(store: TransferIDs.store, entity: id.entity, key: ObjectKey(rawValue: position))
        }
        return .entry(name, entry)
    }

    var objectCount: Int? { entities.reduce(0) { $0 + Int(positions[$1].count) } }

    func next() throws -> TransferObject? {
        while let entity = entities.first {
            if let slot = open?.slots.next(), let open {
                return try object(entity, page: open.page, slot: slot, number: positions[entity].pages[page - 1])
            }
            if page < positions[entity].pages.count {
                guard
                    let found = try damage.page(
                        positions[entity].pages[page], of: SalvagedTable(entity, in: model.storeSchema), in: snapshot)
                else {
                    throw ToolError.failed(
                        "\(store.name) is damaged: a page of \(model.entities[entity].name) is missing. Restore a backup, or copy what is whole with `strata repair`"
                    )
                }
                open = (found, SlotIterator(positions[entity].presences[page]))
                page += 1
            } else {
                entities.removeFirst()
                page = 0
                open = nil
            }
        }
        if lost > 0 {
            let missing = selection == nil ? "do not exist" : "are not written"
            notes.append("\(lost) references to objects that \(missing) became null")
            lost = 0
        }
        return nil
    }

    private func object(_ entity: EntityIndex, page: any StorePage, slot: Int, number: PageNumber) throws -> TransferObject {
        let key = PageAddress.key(page: number, slot: slot)
        let columns = model.entities[entity].columns
        var values: [Value] = []
        values.reserveCapacity(columns.count)
        for (column, definition) in columns.enumerated(as: ColumnIndex.self) {
            let value = try damage.value(page, slot: slot, column: column, definition: definition)
            guard let target = value.referenceKey, let destination = definition.destination else {
                values.append(value)
                continue
            }
            let position = positions[destination].position(of: target)
            if position == nil { lost += 1 }
            values.append(position.map { .reference(ObjectKey(rawValue: $0)) } ?? .null)
        }
        var object = TransferObject(
            entity: entity, id: positions[entity].position(of: key) ?? 0, values: values)
        for (link, definition) in model.storeSchema.links.enumerated(as: LinkIndex.self) where definition.source == entity {
            let keys = try damage.related(.link(link, .forward, destination: definition.destination), to: key, snapshot)
            guard !keys.isEmpty else { continue }
            let found = keys.compactMap { positions[definition.destination].position(of: $0) }
            lost += keys.count - found.count
            object.links.append(TransferObject.Links(link: link, destinations: found))
        }
        return object
    }
}
