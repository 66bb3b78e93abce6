import StoreInterface

/// What a merge policy left out of a save: the context shows something else than before, though nobody else saved.
extension ManagedObjectContext {
    /// The objects of `written` of which neither the save nor others wrote anything: new ones as deleted, updated ones, which show
    /// the store's values again, as updated, deleted ones, which are back, as inserted. nil when there are none. O(pages written).
    ///
    /// - Parameter others: what others saved since; nil when that is not known: then everything counts as changed anyway.
    func dropped(of written: [Layer], _ changes: ChangeSet, others: [ChangeSet]?) -> ChangeSet? {
        guard mergePolicy.mayDrop, let others else { return nil }
        var dropped = ChangeSet(generation: changes.generation)
        for entity in model.entities.indices {
            var pages = pending(written, entity)
            for change in [changes] + others {
                for page in change.change(of: entity)?.pages ?? [] { pages[page.number]?.subtract(page) }
            }
            let left = pages.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
            guard !left.isEmpty else { continue }
            dropped.entities.append(.init(entity: entity, pages: left.map { $0.value.discarded($0.key) }))
        }
        return dropped.isEmpty ? nil : dropped
    }

    /// What a save wrote beside the changes of this context and its children: what delete rules took along in the store (S051). nil when
    /// there is nothing. O(pages written).
    func added(to written: [Layer], _ adopted: ChangeSet?, _ changes: ChangeSet) -> ChangeSet? {
        guard traits.rules.isUsed else { return nil }
        var added = ChangeSet(generation: changes.generation)
        for change in changes.entities {
            let known = adopted?.change(of: change.entity)?.pages ?? []
            let pages = change.pages.compactMap { page -> ChangeSet.PageChange? in
                var page = page
                for layer in written {
                    if let own = layer.entity(change.entity)?.page(page.number) { page.remove(own.touched) }
                }
                for own in known where own.number == page.number { page.remove(own.inserted | own.updated | own.deleted) }
                return page.inserted | page.updated | page.deleted == 0 ? nil : page
            }
            if !pages.isEmpty { added.entities.append(.init(entity: change.entity, pages: pages)) }
        }
        return added.isEmpty ? nil : added
    }

    /// What layers, oldest first, do together to the objects of each page.
    private func pending(_ layers: [Layer], _ entity: Int) -> [UInt64: PendingPage] {
        var pages: [UInt64: PendingPage] = [:]
        for layer in layers {
            for (number, page) in layer.entity(entity)?.pages ?? [:] { pages[number, default: PendingPage()].add(page) }
        }
        return pages
    }
}

extension ChangeSet.PageChange {
    fileprivate mutating func remove(_ slots: UInt64) {
        inserted &= ~slots
        updated &= ~slots
        deleted &= ~slots
    }
}

extension MergePolicy {
    /// Whether a save can succeed and leave something out.
    var mayDrop: Bool {
        if case .error = self { false } else { true }
    }
}

/// Unsaved changes of one page, by slot.
private struct PendingPage {
    private var inserted: UInt64 = 0
    private var updated: UInt64 = 0
    private var deleted: UInt64 = 0

    var isEmpty: Bool { inserted | updated | deleted == 0 }

    /// A newer layer's page.
    mutating func add(_ page: LayerPage) {
        deleted |= page.deleted & ~inserted
        inserted = (inserted | page.inserted) & ~page.deleted
        updated = (updated | page.updated) & ~page.deleted & ~inserted
    }

    /// Forgets what a save wrote.
    mutating func subtract(_ page: ChangeSet.PageChange) {
        let known = ~(page.inserted | page.updated | page.deleted)
        inserted &= known
        updated &= known
        deleted &= known
    }

    func discarded(_ number: UInt64) -> ChangeSet.PageChange {
        .init(
            number: number, inserted: deleted, updated: updated, deleted: inserted,
            columns: ColumnSet(first: EntitySchema.maximumColumns))
    }
}
