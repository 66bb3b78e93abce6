import StoreInterface

/// Where in a page a value belongs.
public struct LargeValuePlace: Sendable, Hashable {
    public var slot: Int
    public var column: Int
}

/// The changes of a layer's page, gathered, with those values left out that are to lie outside of the page.
///
/// The store writes those, gives their records, and then makes the page. Writing them may move the old page's bytes, so the old page
/// is given once more.
public struct PageDraft: ~Copyable {
    fileprivate var encoder: PageEncoder

    /// - Parameters:
    ///   - old: checked with ``ObjectPage/Check/checksum`` or more, if damage is not to get a fresh checksum.
    ///   - number: the page's.
    ///   - limit: strings and data of more bytes are left out.
    ///   - numbers: the generations of the rows' versions.
    /// - Throws: ``PageError`` naming entity and column when a value does not fit its column.
    public init(
        old: ObjectPage?, changes: LayerPage, layout: PageLayout, number: UInt64 = 0, limit: Int, numbers: CommitNumbers = .none
    ) throws(PageError) {
        encoder = PageEncoder(old: old, layout: layout, number: number, limit: limit)
        try encoder.gather(changes, numbers)
    }

    /// The values that were left out, each set by the row in its slot. To be placed, every one.
    public var largeValues: [LargeValuePlace] { encoder.largeValues }

    public mutating func place(_ record: LargeValueRecord, at place: LargeValuePlace) { encoder.place(record, place) }

    /// - Parameter old: the page that was given before, found again.
    /// - Throws: ``PageError`` for bad offsets in the old page.
    public consuming func merge(old: ObjectPage?) throws(PageError) -> PageMerge {
        encoder.old = old
        return PageMerge(try encoder.encode())
    }
}

/// An old page, or none, and the changes of a layer's page: the new page.
///
/// An update sets only its row's set columns; an update of a slot without an object is an insert when it sets every column
/// and is dropped otherwise. Columns that no row touches are copied as they lie. Cost: about 50 ns a fresh row of seven
/// columns, and a copy of the page for an update. The result owns its bytes: the old page may go once it is made.
public struct PageMerge {
    private let bytes: [UInt8]

    fileprivate init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// All values of the changes lie in the new page; ``PageDraft`` is for those that are to lie elsewhere.
    /// - Parameter old: checked with ``ObjectPage/Check/checksum`` or more, if damage is not to get a fresh checksum.
    /// - Throws: ``PageError`` naming entity and column when a value does not fit its column, and for bad offsets in `old`.
    public init(old: ObjectPage?, changes: LayerPage, layout: PageLayout, number: UInt64 = 0) throws(PageError) {
        self = try PageDraft(old: old, changes: changes, layout: layout, number: number, limit: .max).merge(old: old)
    }

    /// 0: no object is left, so the page is to be deleted.
    public var byteCount: Int { bytes.count }

    /// Copies the page. Precondition: the target has room for ``byteCount`` bytes. It may overlap the old page.
    public func write(into target: UnsafeMutableRawBufferPointer) {
        bytes.withUnsafeBytes { target.copyMemory(from: $0) }
    }

    /// The page's bytes, valid inside `body` only.
    public func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}
