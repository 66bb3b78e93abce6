internal import Platform
import StoreInterface
import StoreModel

/// The rows and relationships that a context has received from its parent or the store, and those that its children have saved.
///
/// As in Core Data, a row stays as it was until the context saves it, merges a change of it, is refreshed or is reset. Any thread
/// may use it, because live results read on threads of their own.
final class KeptRows: Sendable {
    /// When more rows are kept, all are dropped.
    fileprivate static let capacity = 65_536

    fileprivate struct State {
        var revision: UInt64 = 0
        var count = 0
        /// By entity.
        var rows: [[ObjectKey: [Value]]]
        var related: [Relation: [ObjectKey: [ObjectKey]]] = [:]
    }

    private let state: Mutex<State>

    init(entityCount: Int) {
        state = Mutex(State(rows: Array(repeating: [:], count: entityCount)))
    }

    /// Grows with each removal and replacement. An answer to a request from before must not be kept.
    var revision: UInt64 { state.withLock { $0.revision } }

    func row(_ entity: EntityIndex, _ key: ObjectKey) -> [Value]? { state.withLock { $0.rows[entity][key] } }

    func keep(_ row: [Value], entity: EntityIndex, key: ObjectKey, at revision: UInt64) {
        state.withLock { if $0.revision == revision { $0.put(row, entity: entity, key: key) } }
    }

    func related(_ relation: Relation, to key: ObjectKey) -> [ObjectKey]? { state.withLock { $0.related[relation]?[key] } }

    func keep(_ related: [ObjectKey], _ relation: Relation, to key: ObjectKey, at revision: UInt64) {
        state.withLock { if $0.revision == revision { $0.related[relation, default: [:]][key] = related } }
    }

    func removeAll() {
        state.withLock { $0 = State(revision: $0.revision + 1, rows: Array(repeating: [:], count: $0.rows.count)) }
    }

    func remove(_ changes: ChangeSet) {
        state.withLock { state in
            state.revision += 1
            for change in changes.entities {
                for page in change.pages {
                    state.removeRows(change.entity, page: page.number, slots: page.inserted | page.updated | page.deleted)
                }
                state.removeRelationships { $0.mayChange(with: change.entity) }
            }
            for change in changes.links { state.removeRelationships { $0.isOf(link: change.link) } }
        }
    }

    /// Applies saved layers, oldest first, to what is kept.
    ///
    /// - Parameters:
    ///   - keepingInserted: whether new objects are kept too: they have passed through a parent.
    ///   - accepted: the changes that were made; nil if they are those of the layers.
    func adopt(_ layers: [Layer], keepingInserted: Bool, accepted: ChangeSet?) {
        state.withLock { state in
            state.revision += 1
            for layer in layers { state.adopt(layer, keepingInserted: keepingInserted) }
            if let accepted { state.removeDifference(of: layers, and: accepted) }
        }
    }
}

extension KeptRows.State {
    fileprivate mutating func put(_ row: [Value], entity: EntityIndex, key: ObjectKey) {
        if count >= KeptRows.capacity {
            for entity in rows.indices { rows[entity] = [:] }
            count = 0
        }
        if rows[entity].updateValue(row, forKey: key) == nil { count += 1 }
    }

    fileprivate mutating func removeRow(_ entity: EntityIndex, _ key: ObjectKey) {
        if rows[entity].removeValue(forKey: key) != nil { count -= 1 }
    }

    fileprivate mutating func removeRows(_ entity: EntityIndex, page: PageNumber, slots: UInt64) {
        guard !rows[entity].isEmpty else { return }
        for slot in SlotIterator(slots) { removeRow(entity, PageAddress.key(page: page, slot: slot)) }
    }

    fileprivate mutating func removeRelationships(where isMeant: (Relation) -> Bool) {
        guard !related.isEmpty else { return }
        for relation in Array(related.keys) where isMeant(relation) { related[relation] = nil }
    }

    fileprivate mutating func adopt(_ layer: Layer, keepingInserted: Bool) {
        for relation in Array(related.keys) { adopt(layer, in: relation) }
        for entity in layer.entityIndices {
            for (number, page) in layer.entity(entity)?.pages ?? [:] {
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    adopt(row, entity: entity, key: PageAddress.key(page: number, slot: slot), keepingInserted: keepingInserted)
                }
            }
        }
    }

    private mutating func adopt(_ row: Row, entity: EntityIndex, key: ObjectKey, keepingInserted: Bool) {
        switch row.kind {
        case .insert where keepingInserted: put(row.columnIndices.map { row[$0] }, entity: entity, key: key)
        case .update:
            guard var values = rows[entity][key] else { return }
            row.set.forEach { values[$0] = row[$0] }
            rows[entity][key] = values
        case .insert, .delete: removeRow(entity, key)
        }
    }

    private mutating func adopt(_ layer: Layer, in relation: Relation) {
        switch relation {
        case .referrers(let entity, let column):
            guard let changes = layer.entity(entity) else { return }
            for (number, page) in changes.pages {
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot], row.kind == .delete || row.isSet(column) else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    if row.kind != .insert {
                        // Only a kept row tells which relationship the object leaves.
                        guard let old = rows[entity][key] else { return related[relation] = nil }
                        if let target = old[column].referenceKey { related[relation]?[target]?.removeAll { $0 == key } }
                    }
                    if row.kind != .delete, let target = row[column].referenceKey {
                        insert(key, relation: relation, owner: target)
                    }
                }
            }
        case .link(let link, let direction, let destination):
            if layer.entity(destination)?.pages.values.contains(where: { $0.deleted != 0 }) == true {
                return related[relation] = nil
            }
            for (key, partners) in direction == .forward ? layer.links[link].forward : layer.links[link].backward {
                for (partner, isLinked) in partners {
                    if isLinked {
                        insert(partner, relation: relation, owner: key)
                    } else {
                        related[relation]?[key]?.removeAll { $0 == partner }
                    }
                }
            }
        }
    }

    /// Adds a key to a kept relationship, which is ascending.
    private mutating func insert(_ key: ObjectKey, relation: Relation, owner: ObjectKey) {
        guard let known = related[relation]?[owner], !known.contains(key) else { return }
        related[relation]?[owner]?.insert(key, at: known.firstIndex { $0 > key } ?? known.count)
    }

    /// Drops the objects that are changed in only one of the two.
    fileprivate mutating func removeDifference(of layers: [Layer], and accepted: ChangeSet) {
        var slots: [[PageNumber: UInt64]] = Array(repeating: [:], count: rows.count)
        for layer in layers {
            for entity in layer.entityIndices {
                for (number, page) in layer.entity(entity)?.pages ?? [:] { slots[entity][number, default: 0] |= page.touched }
            }
        }
        for change in accepted.entities {
            for page in change.pages {
                slots[change.entity][page.number, default: 0] ^= page.inserted | page.updated | page.deleted
            }
        }
        var differs = false
        for entity in slots.indices(as: EntityIndex.self) {
            for (number, mask) in slots[entity] where mask != 0 {
                differs = true
                removeRows(entity, page: number, slots: mask)
            }
        }
        if differs { related = [:] }
    }
}

extension Relation {
    /// Whether changed objects of an entity may change what the relationship holds.
    fileprivate func mayChange(with entity: EntityIndex) -> Bool { self.entity == entity }

    fileprivate func isOf(link: LinkIndex) -> Bool {
        if case .link(link, _, _) = self { true } else { false }
    }
}
