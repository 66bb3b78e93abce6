import StoreInterface
import StoreModel

/// Returns the keys of a request one batch at a time, from the state that its context had when the source was created.
///
/// It retains that state's snapshot. Without a sort, it stores one batch of keys and one number per 64 objects. With a sort, it
/// stores all keys of the result, eight bytes each.
final class BatchSource {
    let query: StoreQuery
    private(set) var view: LayeredView
    private let batchSize: Int
    /// The keys of a sorted result; nil without a sort.
    private(set) var keys: [ObjectKey]?
    /// The page numbers of the entity; empty for a sorted result.
    private var pages: [PageNumber] = []
    private var position = 0
    /// Keys from the last pages that exceed the batch: less than a page.
    private var surplus: [ObjectKey] = []
    private var toSkip: Int
    private var left: Int
    private var isEnded = false

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

    /// Releases the snapshot. From now on, every batch throws the error of a state that cannot be read.
    func end(_ ended: StoreState) {
        view = ended.view
        isEnded = true
    }

    /// Whether the next batch reads pages: without a sort, the first batch, and each one for which too few keys are left over.
    var needsPages: Bool {
        guard keys == nil, !isEnded else { return false }
        return position == 0 || (surplus.count < batchSize && position < pages.count && left > 0)
    }

    /// Reads pages until there are enough keys for a batch, and returns how many it found. O(1) if there are enough already.
    @discardableResult
    func readPages() throws -> Int {
        let before = surplus.count
        while surplus.count < batchSize, position < pages.count, left > 0 {
            surplus += try nextPages(wanting: batchSize - surplus.count)
        }
        return surplus.count - before
    }

    /// Returns the next batch, which is never empty; nil at the end.
    func next() throws -> [ObjectKey]? {
        // The keys of a sorted result are of a state that cannot be read any more.
        if isEnded { _ = try view.base.pageNumbers(query.entity) }
        if let keys {
            guard position < keys.count else { return nil }
            let end = min(keys.count, position + batchSize)
            defer { position = end }
            return Array(keys[position..<end])
        }
        try readPages()
        let batch = Array(surplus.prefix(batchSize))
        surplus.removeFirst(batch.count)
        return batch.isEmpty ? nil : batch
    }

    /// Reads as many pages as could contain the wanted number of objects, and returns the matching objects, possibly none.
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
