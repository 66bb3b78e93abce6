import StoreInterface
import StoreModel

/// A view that keeps the pages that it has read from its base. Reading many objects of the same pages finds each page once.
///
/// `@unchecked Sendable` is right because a computation creates one for itself and lets no other thread use it.
final class PageKeepingView: ObjectReader, @unchecked Sendable {
    let view: LayeredView
    /// Unchecked, because reading a page calls no user of the view.
    @exclusivity(unchecked) private var pages = PageCache()
    private let mayDangle: Bool

    init(_ view: LayeredView) {
        self.view = view
        mayDangle = view.schema.mayDangle
    }

    var schema: StoreSchema { view.schema }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try view.value(entity, key: key, column: column) { try pages.page(entity, $0, in: view.base) }
    }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        if let isThere = view.existsInLayers(entity, key) { return isThere }
        let page = try pages.page(entity, key.page, in: view.base)
        return try page?.contains(key.slot) ?? false
    }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] { try view.related(relation, to: key) }

    /// Returns the objects of a change set that differ in another view, and the ends of its links that have other partners there.
    /// O(objects · columns + partners) reads.
    func differing(_ changes: ChangeSet, in next: PageKeepingView) throws -> ChangeSet {
        var changes = changes
        changes.links = try changes.links.compactMap { try differing($0, in: next) }
        for index in changes.entities.indices {
            let entity = changes.entities[index].entity
            changes.entities[index].pages = try changes.entities[index].pages.compactMap { page in
                var mask: UInt64 = 0
                for slot in SlotIterator(page.inserted | page.updated | page.deleted) {
                    let key = PageAddress.key(page: page.number, slot: slot)
                    if try !looksTheSame(entity, key, in: next) { mask |= 1 << UInt64(slot) }
                }
                var page = page
                page.inserted &= mask
                page.updated &= mask
                page.deleted &= mask
                page.columns = ColumnSet(first: EntitySchema.maximumColumns)
                return mask == 0 ? nil : page
            }
        }
        return changes
    }

    private func differing(_ change: ChangeSet.LinkChange, in next: PageKeepingView) throws -> ChangeSet.LinkChange? {
        let (number, link) = (change.link, schema.links[change.link])
        let forward = Relation.link(number, .forward, destination: link.destination)
        let backward = Relation.link(number, .backward, destination: link.source)
        var change = change
        change.sources = try change.sources.filter { try related(forward, to: $0) != next.related(forward, to: $0) }
        change.destinations = try change.destinations.filter { try related(backward, to: $0) != next.related(backward, to: $0) }
        return change.sources.isEmpty && change.destinations.isEmpty ? nil : change
    }

    private func shownValue(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value {
        let value = try value(entity, key: key, column: column) ?? .null
        return mayDangle ? try shown(value, entity: entity, column: column) : value
    }

    /// Whether an object exists in both views or in neither, with the same values.
    func looksTheSame(_ entity: EntityIndex, _ key: ObjectKey, in next: PageKeepingView) throws -> Bool {
        guard try exists(entity, key) == next.exists(entity, key) else { return false }
        return try schema.entities[entity].columnIndices.allSatisfy { column in
            try shownValue(entity, key: key, column: column).order(next.shownValue(entity, key: key, column: column)) == 0
        }
    }

    /// The objects that refer to an object by one column, or that one link relates to it.
    struct MemberList {
        let relation: Relation
        /// The column of the members' positions; nil if they have no order.
        let position: ColumnIndex?
    }

    /// Returns the lists of members that each object of an entity has, also those that no relationship of the model shows.
    func memberLists(of entity: EntityIndex) -> [MemberList] {
        var lists: [MemberList] = []
        for (other, definition) in schema.entities.enumerated(as: EntityIndex.self) {
            for column in definition.columnIndices where definition.columns[column].destination == entity {
                // The pairs beside the places show the same members.
                if definition.orderedRelationship != nil, column == OrderEntity.member { continue }
                let relation = Relation.referrers(entity: other, column: column)
                lists.append(MemberList(relation: relation, position: definition.position(in: column)))
            }
        }
        for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
            if link.source == entity {
                lists.append(MemberList(relation: .link(number, .forward, destination: link.destination), position: nil))
            }
            if link.destination == entity {
                lists.append(MemberList(relation: .link(number, .backward, destination: link.source), position: nil))
            }
        }
        return lists
    }

    /// Whether an object has the same members in both views, in the same order. O(members) reads for a list with an order.
    func hasTheSameMembers(_ key: ObjectKey, in list: MemberList, of next: PageKeepingView) throws -> Bool {
        let members = try related(list.relation, to: key)
        guard try members == next.related(list.relation, to: key) else { return false }
        guard let position = list.position, members.count > 1 else { return true }
        let entity = list.relation.entity
        let (old, new) = try (
            view.arrangement(of: members, entity, position), next.view.arrangement(of: members, entity, position)
        )
        return old.keys == new.keys
    }
}
