import StoreInterface
import StoreModel

extension ChangeSet {
    /// Returns the changes of only those objects and links that are also in another set. O(pages of both).
    ///
    /// A parent drops a child's deletion of an object that no longer exists in the parent (S056).
    func limited(to other: ChangeSet) -> ChangeSet {
        // Usually nothing was dropped.
        if entities == other.entities, links == other.links { return self }
        var limited = self
        limited.entities = entities.compactMap { change in
            let pages = other.change(of: change.entity)?.pages ?? []
            let known = Dictionary(pages.map { ($0.number, $0.inserted | $0.updated | $0.deleted) }) { $0 | $1 }
            let kept = change.pages.compactMap { page -> PageChange? in
                var page = page
                let mask = known[page.number] ?? 0
                page.inserted &= mask
                page.updated &= mask
                page.deleted &= mask
                return page.inserted | page.updated | page.deleted == 0 ? nil : page
            }
            return kept.isEmpty ? nil : EntityChange(entity: change.entity, pages: kept)
        }
        limited.links = links.filter { link in other.links.contains { $0.link == link.link } }
        return limited
    }
}
