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
            dropped.entities.append(.init(entity: entity, pages: left.map { $0.value.undone($0.key) }))
        }
        return dropped.isEmpty ? nil : dropped
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

    func undone(_ number: UInt64) -> ChangeSet.PageChange {
        .init(
            number: number, inserted: deleted, updated: updated, deleted: inserted,
            columns: ColumnSet(first: EntitySchema.maximumColumns))
    }
}
