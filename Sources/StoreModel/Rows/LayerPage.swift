/// The changes of one layer to the 64 objects of one page.
///
/// Three disjoint masks contain the inserted, updated and deleted slots. The page retains the row of each such slot.
/// `@unchecked Sendable` for the same reason as ``Row``: written by one owner, then sealed.
public final class LayerPage: @unchecked Sendable {
    // Unchecked: only one owner accesses the page while it writes, and no access calls other code. Other modules read these properties
    // through inlined ones, because they would check each access of a stored property.
    @usableFromInline @exclusivity(unchecked) var insertedSlots: UInt64 = 0
    @usableFromInline @exclusivity(unchecked) var updatedSlots: UInt64 = 0
    @usableFromInline @exclusivity(unchecked) var deletedSlots: UInt64 = 0
    /// The rows by slot, always 64; nil for slots that the layer does not change.
    ///
    /// Unmanaged, because Swift destroys an array of optional references by a call per element, and most pages have few rows. That is
    /// right because the page retains each row when it takes it, and releases it when it loses it.
    @usableFromInline @exclusivity(unchecked) var slots: ContiguousArray<Unmanaged<Row>?>
    /// The slots of the inserted objects, one bit per slot.
    @inlinable public var inserted: UInt64 { insertedSlots }
    /// The slots of the updated objects, one bit per slot.
    @inlinable public var updated: UInt64 { updatedSlots }
    /// The slots of the deleted objects, one bit per slot.
    @inlinable public var deleted: UInt64 { deletedSlots }
    /// The layer that may write the page. Other layers share the page after it was sealed.
    let owner: UInt64

    /// The slots that the layer inserts, updates or deletes, one bit per slot.
    @inlinable public var touched: UInt64 { insertedSlots | updatedSlots | deletedSlots }

    init(owner: UInt64) {
        self.owner = owner
        slots = ContiguousArray(repeating: nil, count: PageAddress.slots)
    }

    init(copying other: LayerPage, owner: UInt64) {
        self.owner = owner
        insertedSlots = other.insertedSlots
        updatedSlots = other.updatedSlots
        deletedSlots = other.deletedSlots
        slots = other.slots
        for slot in SlotIterator(touched) { _ = slots[slot]?.retain() }
    }

    deinit {
        for slot in SlotIterator(touched) { slots[slot]?.release() }
    }

    /// The row of a slot; nil if the layer does not change the object.
    @inlinable public subscript(slot: Int) -> Row? { slots[slot]?.takeUnretainedValue() }

    /// Calls `body` with the row of each of some slots. Does not count references, which costs more than a short look at a row.
    ///
    /// That is right because the page keeps its rows alive. `body` must not change the page.
    @inlinable @inline(__always)
    package func forEachRow(in mask: UInt64, _ body: (Row, Int) throws -> Void) rethrows {
        try slots.withUnsafeBufferPointer { rows in
            for slot in SlotIterator(mask) { try rows[slot]?._withUnsafeGuaranteedRef { try body($0, slot) } }
        }
    }

    /// Calls `body` with the row of a slot, as ``forEachRow(in:_:)`` does. Returns nil if the layer does not change the object.
    @inlinable @inline(__always)
    package func withRow<R>(_ slot: Int, _ body: (Row) -> R) -> R? { slots[slot]?._withUnsafeGuaranteedRef { body($0) } }

    func put(_ row: Row, at slot: Int) {
        let bit: UInt64 = 1 << UInt64(slot)
        insertedSlots &= ~bit
        updatedSlots &= ~bit
        deletedSlots &= ~bit
        switch row.kind {
        case .insert: insertedSlots |= bit
        case .update: updatedSlots |= bit
        case .delete: deletedSlots |= bit
        }
        let old = slots[slot]
        slots[slot] = .passRetained(row)
        old?.release()
    }

    func remove(_ slot: Int) {
        let bit: UInt64 = ~(1 << UInt64(slot))
        insertedSlots &= bit
        updatedSlots &= bit
        deletedSlots &= bit
        let old = slots[slot]
        slots[slot] = nil
        old?.release()
    }
}

/// The changes of one layer to one entity, by page number.
///
/// `@unchecked Sendable` for the same reason as ``Row``. The last page is cached, so that inserting in key order, or reading
/// neighbours, needs no hashing.
public final class EntityLayer: @unchecked Sendable {
    // Unchecked, and read by other modules through an inlined property, as in ``LayerPage``.
    @usableFromInline @exclusivity(unchecked) var pagesByNumber: [PageNumber: LayerPage] = [:]
    /// The changed pages, by page number.
    @inlinable public var pages: [PageNumber: LayerPage] { pagesByNumber }
    @exclusivity(unchecked) private var lastNumber = PageNumber.max
    /// Unmanaged, which is right because ``pagesByNumber`` retains the page.
    @exclusivity(unchecked) private var lastPage: Unmanaged<LayerPage>?

    private let owner: UInt64

    init(owner: UInt64) { self.owner = owner }

    /// Creates a copy for another layer. The copy shares the pages, and copies a page before writing it. Precondition:
    /// `other` is sealed.
    init(sharing other: EntityLayer, owner: UInt64) {
        self.owner = owner
        pagesByNumber = other.pagesByNumber
    }

    /// A Boolean value that indicates whether the layer changes no object of the entity.
    public var isEmpty: Bool { pagesByNumber.isEmpty }

    /// Returns a page, or nil if the layer does not change it. O(1).
    @inlinable @inline(__always)
    public func page(_ number: PageNumber) -> LayerPage? { pagesByNumber[number] }

    /// Returns the row of an object, or nil if the layer does not change it. O(1).
    public func row(_ key: ObjectKey) -> Row? { row(page: key.page, slot: key.slot) }

    /// Returns the row of a slot, or nil if the layer does not change it. Most pages that a layer changes lack the slot, so the bit is
    /// read first: the rows are in other memory.
    @inline(__always)
    func row(page number: PageNumber, slot: Int) -> Row? {
        guard let page = pagesByNumber[number], page.touched >> UInt64(slot) & 1 != 0 else { return nil }
        return page[slot]
    }

    /// Shares a page of a sealed layer, unless this layer already has that page. Returns whether the page was added.
    func share(_ page: LayerPage, _ number: PageNumber) -> Bool {
        guard pagesByNumber[number] == nil else { return false }
        pagesByNumber[number] = page
        return true
    }

    func put(_ row: Row, for key: ObjectKey) {
        let (number, slot) = (key.page, key.slot)
        if number == lastNumber, let lastPage { return lastPage._withUnsafeGuaranteedRef { $0.put(row, at: slot) } }
        writablePage(number).put(row, at: slot)
    }

    func remove(_ key: ObjectKey) {
        let number = key.page
        guard pagesByNumber[number] != nil else { return }
        let page = writablePage(number)
        page.remove(key.slot)
        guard page.touched == 0 else { return }
        pagesByNumber[number] = nil
        lastPage = nil
        lastNumber = .max
    }

    private func writablePage(_ number: PageNumber) -> LayerPage {
        let page: LayerPage
        if let found = pagesByNumber[number] {
            if found.owner == owner {
                page = found
            } else {
                page = LayerPage(copying: found, owner: owner)
                pagesByNumber[number] = page
            }
        } else {
            page = LayerPage(owner: owner)
            pagesByNumber[number] = page
        }
        lastNumber = number
        lastPage = .passUnretained(page)
        return page
    }

    /// The page numbers in ascending order. O(n log n).
    public var sortedPageNumbers: [PageNumber] { pagesByNumber.keys.sorted() }
}

/// The changes of one layer to one link: the added (true) and removed (false) pairs, from both ends.
public struct LinkLayer: Sendable {
    /// The changed pairs by source key, then by destination key.
    public private(set) var forward: [ObjectKey: [ObjectKey: Bool]] = [:]
    /// The changed pairs by destination key, then by source key: the same pairs as in ``forward``.
    public private(set) var backward: [ObjectKey: [ObjectKey: Bool]] = [:]

    /// Creates a layer without changes.
    package init() {}

    /// A Boolean value that indicates whether the layer changes no pair.
    public var isEmpty: Bool { forward.isEmpty }

    /// Records that a pair was added or removed. Replaces an earlier change of the pair.
    package mutating func set(_ source: ObjectKey, _ destination: ObjectKey, linked: Bool) {
        forward[source, default: [:]][destination] = linked
        backward[destination, default: [:]][source] = linked
    }

    /// Removes this layer's change of a pair.
    package mutating func forget(_ source: ObjectKey, _ destination: ObjectKey) {
        Self.drop(&forward, outer: source, inner: destination)
        Self.drop(&backward, outer: destination, inner: source)
    }

    private static func drop(_ map: inout [ObjectKey: [ObjectKey: Bool]], outer: ObjectKey, inner: ObjectKey) {
        // In place: a copy of the inner map for each pair would make it slow to forget many pairs of one object.
        map[outer]?[inner] = nil
        if map[outer]?.isEmpty == true { map[outer] = nil }
    }
}
