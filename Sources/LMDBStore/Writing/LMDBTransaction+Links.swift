import LMDB
import StoreInterface
import StoreModel

extension LMDBTransaction {
    /// Writes the pairs that the layer added and removed, then removes the pairs of deleted objects. An added pair with a
    /// missing end is not written. Precondition: the layer's pages are written.
    func applyLinks(_ layer: Layer, _ deleted: [DeletedObjects]) throws {
        var presence = PresenceCache(self)
        for (number, link) in layer.links.enumerated(as: LinkIndex.self) where !link.isEmpty {
            let tables = store.tables.links[number]
            let ends = store.schema.links[number]
            try apply(link.forward, in: tables.forward, from: ends.source, to: ends.destination, &presence)
            try apply(link.backward, in: tables.backward, from: ends.destination, to: ends.source, &presence)
        }
        for objects in deleted {
            for (number, link) in store.schema.links.enumerated(as: LinkIndex.self) {
                let tables = store.tables.links[number]
                if link.source == objects.entity { try unlink(objects.keys, from: tables.forward, mirror: tables.backward) }
                if link.destination == objects.entity { try unlink(objects.keys, from: tables.backward, mirror: tables.forward) }
            }
        }
    }

    private func apply(
        _ pairs: [ObjectKey: [ObjectKey: Bool]], in table: Database, from near: EntityIndex, to far: EntityIndex,
        _ presence: inout PresenceCache
    ) throws {
        try transaction.withCursor(table) { cursor in
            for key in pairs.keys.sorted() {
                guard let partners = pairs[key] else { continue }
                let isThere = try presence.contains(near, key)
                for (partner, isLinked) in partners.sorted(by: { $0.key < $1.key }) {
                    if isLinked {
                        guard isThere, try presence.contains(far, partner) else { continue }
                        try cursor.add(key, value: partner)
                    } else if try cursor.has(key, value: partner) {
                        try cursor.delete()
                    }
                }
            }
        }
    }

    private func unlink(_ keys: [ObjectKey], from table: Database, mirror: Database) throws {
        guard try transaction.statistics(table).entries > 0 else { return }
        for key in keys {
            let partners = try self.partners(of: key, in: table)
            if partners.isEmpty { continue }
            for partner in partners { try transaction.delete(mirror, partner.rawValue, value: key.rawValue) }
            try transaction.delete(table, key.rawValue)
        }
    }

    private func partners(of key: ObjectKey, in table: Database) throws -> [ObjectKey] {
        try transaction.withCursor(table) { cursor in
            var partners: [ObjectKey] = []
            if let first = try cursor.find(key) { try cursor.appendValues(after: first, to: &partners) }
            return partners
        }
    }
}
