import StoreInterface

/// Gives the keys of a request a batch at a time, of the state that its context showed when it was made.
///
/// It holds that state's snapshot until it is gone. Without a sort it holds one batch of keys and a number for every 64 objects;
/// with one, all keys of the result, eight bytes each.
final class BatchSource {
    let query: StoreQuery
    private var view: LayeredView
    private let batchSize: Int
    /// A sorted result's keys.
    private var keys: [ObjectKey]?
    /// Of an unsorted result: the entity's pages.
    private var pages: [UInt64] = []
    private var position = 0
    /// What the pages read had beyond the batch: less than a page.
    private var surplus: [ObjectKey] = []
    private var toSkip: Int
    private var left: Int

    init(_ query: StoreQuery, in view: LayeredView, batchSize: Int) throws {
        self.query = query
        self.view = view
        self.batchSize = max(1, batchSize)
        toSkip = max(0, query.offset)
        left = query.limit.map { max(0, $0) } ?? .max
        if query.sort.isEmpty {
            pages = Set(view.touchedPages(query.entity).keys).union(try view.base.pageNumbers(query.entity)).sorted()
        } else {
            keys = try view.keys(query)
        }
    }

    /// Releases the state that is read, and reads `closed` from now on.
    func end(_ closed: StoreState) { view = closed.view }

    /// nil at the end; never empty.
    func next() throws -> [ObjectKey]? {
        if let keys {
            guard position < keys.count else { return nil }
            let end = min(keys.count, position + batchSize)
            defer { position = end }
            return Array(keys[position..<end])
        }
        while surplus.count < batchSize, position < pages.count, left > 0 {
            surplus += try nextPages(wanting: batchSize - surplus.count)
        }
        let batch = Array(surplus.prefix(batchSize))
        surplus.removeFirst(batch.count)
        return batch.isEmpty ? nil : batch
    }

    /// The matching objects of so many pages as have the wanted number when all match; they may be none.
    private func nextPages(wanting wanted: Int) throws -> [ObjectKey] {
        let end = min(pages.count, position + max(1, wanted / PageAddress.slots))
        let candidates = pages[position..<end].flatMap { number in
            (0..<PageAddress.slots).map { PageAddress.key(page: number, slot: $0) }
        }
        position = end
        var some = query
        some.predicate = .all([query.predicate, .keys(Set(candidates))])
        some.offset = 0
        some.limit = nil
        var found = try view.keys(some)
        if toSkip > 0 {
            let skipped = min(toSkip, found.count)
            found.removeFirst(skipped)
            toSkip -= skipped
        }
        if found.count > left { found.removeLast(found.count - left) }
        left -= found.count
        return found
    }
}
