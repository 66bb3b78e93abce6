import StoreInterface
import StoreModel

/// The state that a context or live result reads: layers of changes over a snapshot.
///
/// A view is a value: copying it is O(1), and reading does not change it. It may be sent to another thread if every layer is
/// sealed. A view with an open layer belongs to the executor of that layer's owner. A read costs O(layers) dictionary look-ups. If
/// no layer has the value, it also costs one read of the base.
package struct LayeredView: ObjectReader {
    /// The snapshot below the layers.
    package let base: any StoreSnapshot
    /// The layers, newest first.
    package let layers: [Layer]

    /// Creates a view of layers over a snapshot. O(1).
    package init(base: any StoreSnapshot, layers: [Layer] = []) {
        self.base = base
        self.layers = layers
    }

    /// The schema of the base.
    package var schema: StoreSchema { base.schema }

    /// Returns the newest row that a layer has for the object; nil if only the base may contain it.
    package func row(_ entity: EntityIndex, _ key: ObjectKey) -> Row? { layers.newestRow(entity, key) }

    /// Returns the value from the newest layer that has the column set, else from the base. An inserting row ends the search; a
    /// deleting row returns nil.
    package func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try value(entity, key: key, column: column) { try base.page(entity, $0) }
    }

    /// Like ``value(_:key:column:)``, with another source of the base's pages.
    @inline(__always)
    func value(
        _ entity: EntityIndex, key: ObjectKey, column: ColumnIndex, pages: (PageNumber) throws -> (any StorePage)?
    ) throws -> Value? {
        let number = key.page
        let slot = key.slot
        switch try lookup(entity, page: number, slot: slot, column, pages: pages) {
        case .row(let row): return row[column]
        case .deleted: return nil
        case .below:
            guard let page = try pages(number), try page.contains(slot) else { return nil }
            return try page.value(slot, column)
        }
    }

    /// Returns which layer decides the value of a column. An update whose object is deleted below it does not decide: the object
    /// counts as deleted (S106).
    ///
    /// - Parameter pages: The base's pages.
    @inline(__always)
    func lookup(
        _ entity: EntityIndex, page number: PageNumber, slot: Int, _ column: ColumnIndex,
        pages: (PageNumber) throws -> (any StorePage)?
    ) throws -> LayerAnswer {
        let answer = layers.lookup(entity, page: number, slot: slot, column)
        guard case .row(let row) = answer, row.kind == .update else { return answer }
        let isThere = try existsInLayers(entity, PageAddress.key(page: number, slot: slot)) ?? pages(number)?.contains(slot)
        return isThere == true ? answer : .deleted
    }

    /// Like ``lookup(_:page:slot:_:pages:)``, with the pages of ``base``.
    func lookup(_ entity: EntityIndex, page number: PageNumber, slot: Int, _ column: ColumnIndex) throws -> LayerAnswer {
        try lookup(entity, page: number, slot: slot, column) { try base.page(entity, $0) }
    }

    /// Returns the save that last wrote the object: unsaved if it was never saved, nil if it does not exist.
    ///
    /// Rows that no writer has accepted have no version, so older rows or the base determine it. Only the writer may call this,
    /// because it stamps rows with their versions.
    package func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> RowVersion? {
        let number = key.page
        let slot = key.slot
        for layer in layers {
            guard let row = layer.row(entity, page: number, slot: slot) else { continue }
            if row.kind == .delete { return nil }
            if row.kind == .insert || row.version != .unsaved { return row.version }
        }
        guard let page = try base.page(entity, number), try page.contains(slot) else { return nil }
        return .committed(try page.version(slot))
    }

    /// Returns whether the object exists in this view. Reads no versions, because the writer may be stamping rows at the same time.
    package func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        if let isThere = existsInLayers(entity, key) { return isThere }
        let page = try base.page(entity, key.page)
        return try page?.contains(key.slot) ?? false
    }

    /// Returns whether the object exists according to the layers; nil if only the base decides. An update alone does not make an
    /// object exist, because the object may have been deleted below it.
    func existsInLayers(_ entity: EntityIndex, _ key: ObjectKey) -> Bool? {
        let number = key.page
        let slot = key.slot
        for layer in layers {
            guard let row = layer.row(entity, page: number, slot: slot), row.kind != .update else { continue }
            return row.kind == .insert
        }
        return nil
    }

    /// Returns the keys of a to-many relationship's destinations, ascending, without deleted objects.
    package func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        switch relation {
        case .referrers(let entity, let column):
            try referrers(relation, entity: entity, column: column, to: key)
        case .link(let link, let direction, let destination):
            try partners(relation, link: link, direction: direction, destination: destination, of: key)
        }
    }

    private func referrers(
        _ relation: Relation, entity: EntityIndex, column: ColumnIndex, to key: ObjectKey
    ) throws -> [ObjectKey] {
        let below = try base.related(relation, to: key)
        guard touches(entity: entity) else { return below }
        let wanted = Value.reference(key)
        var found: [ObjectKey] = []
        found.reserveCapacity(below.count)
        for candidate in below {
            if row(entity, candidate) == nil {
                found.append(candidate)
            } else if try value(entity, key: candidate, column: column) == wanted {
                found.append(candidate)
            }
        }
        var added: Set<ObjectKey> = []
        for layer in layers {
            for candidate in layer.candidates(entity: entity, column: column, value: wanted)
            where try value(entity, key: candidate, column: column) == wanted && exists(entity, candidate) {
                added.insert(candidate)
            }
        }
        return Self.union(found, added)
    }

    private func partners(
        _ relation: Relation, link: LinkIndex, direction: LinkDirection, destination: EntityIndex, of key: ObjectKey
    ) throws -> [ObjectKey] {
        let below = try base.related(relation, to: key)
        var verdicts: [ObjectKey: Bool] = [:]
        for layer in layers {
            let changes = layer.links[link]
            guard !changes.isEmpty, let pairs = direction == .forward ? changes.forward[key] : changes.backward[key]
            else { continue }
            verdicts.merge(pairs) { newer, _ in newer }
        }
        let destinationTouched = touches(entity: destination)
        guard !verdicts.isEmpty || destinationTouched else { return below }
        let kept = try below.filter { partner in
            if verdicts[partner] == false { return false }
            return try !destinationTouched || row(destination, partner) == nil || exists(destination, partner)
        }
        var added: Set<ObjectKey> = []
        for case let (partner, true) in verdicts where try exists(destination, partner) { added.insert(partner) }
        return Self.union(kept, added)
    }

    private static func union(_ ascending: [ObjectKey], _ others: Set<ObjectKey>) -> [ObjectKey] {
        guard !others.isEmpty else { return ascending }
        return others.union(ascending).sorted()
    }

    /// Whether any layer changes objects of the entity.
    func touches(entity: EntityIndex) -> Bool { layers.contains { $0.entity(entity) != nil } }

    /// Whether any layer changes pairs of the link.
    func touches(link: LinkIndex) -> Bool { layers.contains { !$0.links[link].isEmpty } }
}
