import StoreInterface
import StoreModel

/// Finds changes of the view that no context made: those that a save does not contain, and those that the writer added.
extension ManagedObjectContext {
    /// Whether the running save may lack changes that it has taken: a merge policy drops them, a missing object is cleared from them, or a
    /// deletion by a child or a delete rule cancels them.
    func mayLackChanges(_ joined: JoinedPushes?) -> Bool {
        phase.policyMayDrop || clearsMissingReferences || layerStack.taken.contains(where: \.mayDelete)
            || joined?.layers.contains(where: \.mayDelete) == true
    }

    /// Returns the changes that the writer added to a save, or nil if there are none: by delete rules (S051), and derived values
    /// (S200). O(pages written).
    ///
    /// These are the changes of a save that neither this context nor its children made. An object of this context whose derived values
    /// the save has changed counts as updated.
    func added(to written: [Layer], _ adopted: ChangeSet?, _ changes: ChangeSet) -> ChangeSet? {
        guard capabilities.rules.isUsed || !capabilities.derived.isEmpty else { return nil }
        var added = ChangeSet(generation: changes.generation)
        for change in changes.entities {
            let known = adopted?.change(of: change.entity)?.pages ?? []
            let columns = capabilities.derivedColumns(of: change.entity)
            let pages = change.pages.compactMap { page -> ChangeSet.PageChange? in
                let derived = page.slots(changing: columns)
                var page = page
                for layer in written {
                    if let own = layer.entity(change.entity)?.page(page.number) { page.remove(own.touched) }
                }
                for own in known where own.number == page.number { page.remove(own.inserted | own.updated | own.deleted) }
                page.updated |= derived & ~page.inserted
                return page.inserted | page.updated | page.deleted == 0 ? nil : page
            }
            if !pages.isEmpty { added.entities.append(.init(entity: change.entity, pages: pages)) }
        }
        return added.isEmpty ? nil : added
    }

    /// Returns the changes of the view that the layers of a save leave, and updates their registered objects; nil if there are none.
    ///
    /// - Parameter others: The changes that the view shows after the save.
    func withdrawn(_ written: [Layer], without others: [ChangeSet]) -> ChangeSet? {
        guard let withdrawn = ChangeSet(withdrawing: written, without: others) else { return nil }
        _ = refreshRegistered(withdrawn)
        let shown = withoutMissing(withdrawn, among: withdrawn)
        return shown.isEmpty ? nil : shown
    }

    /// Returns changes without the objects that are not back although their deletion was withdrawn, because another context has deleted
    /// them, too. O(withdrawn deletions).
    func withoutMissing(_ changes: ChangeSet, among withdrawn: ChangeSet) -> ChangeSet {
        var missing: [EntityIndex: [PageNumber: UInt64]] = [:]
        for change in withdrawn.entities {
            for page in change.pages {
                for slot in SlotIterator(page.inserted) {
                    let key = PageAddress.key(page: page.number, slot: slot)
                    if trapOnStoreError({ try exists(change.entity, key) }) { continue }
                    missing[change.entity, default: [:]][page.number, default: 0] |= 1 << UInt64(slot)
                }
            }
        }
        if missing.isEmpty { return changes }
        var left = changes
        for index in left.entities.indices {
            let known = missing[left.entities[index].entity] ?? [:]
            for page in left.entities[index].pages.indices {
                left.entities[index].pages[page].inserted &= ~(known[left.entities[index].pages[page].number] ?? 0)
            }
            left.entities[index].pages.removeAll { $0.inserted | $0.updated | $0.deleted == 0 }
        }
        left.entities.removeAll(where: \.pages.isEmpty)
        return left
    }
}

extension ChangeSet {
    /// Creates the changes of a view that loses unsaved layers, but for the objects that other changes contain. nil if there are none.
    /// O(pages of the layers + links).
    ///
    /// New objects count as deleted. Updated objects show other values again and count as updated. Deleted objects are back and count as
    /// inserted.
    ///
    /// - Parameter layers: The layers, oldest first.
    init?(withdrawing layers: [Layer], without others: [ChangeSet]) {
        self.init(generation: others.first?.generation ?? 0)
        guard let first = layers.first else { return nil }
        for entity in first.entityIndices {
            var pages: [PageNumber: PendingPage] = [:]
            for layer in layers {
                for (number, page) in layer.entity(entity)?.pages ?? [:] { pages[number, default: PendingPage()].add(page) }
            }
            for change in others where !pages.isEmpty {
                for page in change.change(of: entity)?.pages ?? [] { pages[page.number]?.subtract(page) }
            }
            let left = pages.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
            if !left.isEmpty { entities.append(.init(entity: entity, pages: left.map { $0.value.discarded($0.key) })) }
        }
        for link in first.links.indices(as: LinkIndex.self) {
            var sources = Set(layers.flatMap { $0.links[link].forward.keys })
            var destinations = Set(layers.flatMap { $0.links[link].backward.keys })
            for change in others.flatMap(\.links) where change.link == link {
                sources.subtract(change.sources)
                destinations.subtract(change.destinations)
            }
            guard !sources.isEmpty || !destinations.isEmpty else { continue }
            links.append(.init(link: link, sources: sources.sorted(), destinations: destinations.sorted()))
        }
        if isEmpty { return nil }
    }
}

extension ChangeSet? {
    /// Returns these changes and later ones; nil if there are none.
    func and(_ later: ChangeSet?) -> ChangeSet? {
        guard let self else { return later }
        return later.map { ChangeSet.union([self, $0]) } ?? self
    }
}

extension ChangeSet.PageChange {
    /// Returns the inserted objects, and the updated objects that changed one of the columns.
    fileprivate func slots(changing columns: ColumnSet) -> UInt64 {
        if columns.isEmpty { return 0 }
        return SlotIterator(updated).reduce(inserted) { slots, slot in
            self.columns(of: slot).intersection(columns).isEmpty ? slots : slots | 1 << UInt64(slot)
        }
    }

    fileprivate mutating func remove(_ slots: UInt64) {
        inserted &= ~slots
        updated &= ~slots
        deleted &= ~slots
    }
}

extension MergePolicy {
    /// Whether a save can succeed and drop changes.
    var mayDrop: Bool {
        if case .error = self { false } else { true }
    }
}

/// The unsaved changes of one page, by slot.
private struct PendingPage {
    private var inserted: UInt64 = 0
    private var updated: UInt64 = 0
    private var deleted: UInt64 = 0

    var isEmpty: Bool { inserted | updated | deleted == 0 }

    /// Adds a newer layer's page.
    mutating func add(_ page: LayerPage) {
        let restored = page.inserted & deleted
        deleted = deleted & ~restored | page.deleted & ~inserted
        inserted = (inserted | page.inserted & ~restored) & ~page.deleted
        updated = (updated | page.updated | restored) & ~page.deleted & ~inserted
    }

    /// Removes the objects that a save wrote.
    mutating func subtract(_ page: ChangeSet.PageChange) {
        let known = ~(page.inserted | page.updated | page.deleted)
        inserted &= known
        updated &= known
        deleted &= known
    }

    func discarded(_ number: PageNumber) -> ChangeSet.PageChange {
        .init(
            number: number, inserted: deleted, updated: updated, deleted: inserted,
            columns: ColumnSet(first: EntitySchema.maximumColumns))
    }
}
