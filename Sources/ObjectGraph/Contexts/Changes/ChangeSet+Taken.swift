import StoreInterface
import StoreModel

extension ChangeSet {
    /// Returns the changes of only those objects and links that are also in another set. O(pages of both).
    ///
    /// A parent drops a child's deletion of an object that no longer exists in the parent (S056).
    package func limited(to other: ChangeSet) -> ChangeSet {
        // Usually nothing was dropped.
        if entities == other.entities, links == other.links { return self }
        var known: [EntityIndex: [PageNumber: UInt64]] = [:]
        for change in other.entities {
            for page in change.pages {
                known[change.entity, default: [:]][page.number, default: 0] |= page.inserted | page.updated | page.deleted
            }
        }
        var limited = self
        limited.entities = entities(within: { known[$0]?[$1] ?? 0 })
        limited.links = links.filter { link in other.links.contains { $0.link == link.link } }
        return limited
    }

    /// Returns the changes of a save for observers that compare what they look like now, without the links that they show already. Comparing a
    /// link costs O(partners).
    func asShown() -> ChangeSet {
        if links.isEmpty { return self }
        var shown = self
        shown.links = []
        return shown
    }

    /// Returns the changes of the objects whose slots are in a mask, per entity and page. O(pages).
    func entities(within mask: (_ entity: EntityIndex, _ page: PageNumber) -> UInt64) -> [EntityChange] {
        entities.compactMap { change in
            let kept = change.pages.compactMap { page -> PageChange? in
                var page = page
                let mask = mask(change.entity, page.number)
                page.inserted &= mask
                page.updated &= mask
                page.deleted &= mask
                return page.inserted | page.updated | page.deleted == 0 ? nil : page
            }
            return kept.isEmpty ? nil : EntityChange(entity: change.entity, pages: kept)
        }
    }
}
