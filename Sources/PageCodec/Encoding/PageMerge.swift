import StoreInterface
import StoreModel

/// The position of a value in a page.
public struct LargeValueSlot: Sendable, Hashable {
    /// The slot of the object, from 0 to 63.
    public var slot: Int
    /// The column.
    public var column: ColumnIndex
}

/// The gathered changes of a layer's page, without the values that are to be stored out-of-line.
///
/// The store writes these values, passes their records, and then creates the page. Writing them may move the old page's
/// bytes, so the store passes the old page again.
public struct PageDraft: ~Copyable {
    fileprivate var encoder: PageEncoder

    /// Gathers the changes.
    /// - Parameters:
    ///   - old: The old page. To keep damage from getting a fresh checksum, check it with ``ObjectPage/Check/checksum`` or
    ///     more.
    ///   - changes: The rows of the page that a save inserts, updates or deletes.
    ///   - layout: The layout of the entity's pages.
    ///   - number: The page's number.
    ///   - limit: The maximum size in bytes of strings and data in the page. Larger values are left out.
    ///   - numbers: The generations of the rows' versions.
    /// - Throws: ``PageError``, which names entity and column, if a value does not fit its column.
    public init(
        old: ObjectPage?, changes: LayerPage, layout: PageLayout, number: PageNumber = 0, limit: Int,
        numbers: CommitNumbers = .none
    ) throws(PageError) {
        encoder = PageEncoder(old: old, layout: layout, number: number, limit: limit)
        try encoder.gather(changes, numbers)
    }

    /// The positions of the values that were left out, each set by the row in its slot. Pass a record for each of them.
    public var largeValues: [LargeValueSlot] { encoder.largeValues }

    /// Sets the record of a value that was left out. Precondition: `place` is one of ``largeValues``.
    public mutating func place(_ record: LargeValueRecord, at place: LargeValueSlot) { encoder.place(record, place) }

    /// Creates the new page.
    /// - Parameter old: The page that was passed before, read again.
    /// - Throws: ``PageError`` for bad offsets in the old page.
    public consuming func merge(old: ObjectPage?) throws(PageError) -> PageMerge {
        encoder.old = old
        return PageMerge(try encoder.encode())
    }
}

/// The new page, made from an old page, if any, and the changes of a layer's page.
///
/// An update sets only its row's set columns. An update of an empty slot becomes an insert if it sets every column, and is
/// dropped otherwise. Columns that no row changes are copied unchanged.
///
/// Cost: about 50 ns per new row of seven columns, and a copy of the page for an update. The result owns its bytes, so it
/// does not need the old page any more.
public struct PageMerge {
    private let bytes: [UInt8]

    fileprivate init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a page that contains all values of the changes. To store values out-of-line, use ``PageDraft``.
    /// - Parameters:
    ///   - old: The old page. To keep damage from getting a fresh checksum, check it with ``ObjectPage/Check/checksum`` or
    ///     more.
    ///   - changes: The rows of the page that a save inserts, updates or deletes.
    ///   - layout: The layout of the entity's pages.
    ///   - number: The page's number.
    /// - Throws: ``PageError``, which names entity and column, if a value does not fit its column. Also for bad offsets in
    ///   `old`.
    public init(old: ObjectPage?, changes: LayerPage, layout: PageLayout, number: PageNumber = 0) throws(PageError) {
        self = try PageDraft(old: old, changes: changes, layout: layout, number: number, limit: .max).merge(old: old)
    }

    /// The size of the page; 0 if no object is left and the page is to be deleted.
    public var byteCount: Int { bytes.count }

    /// Copies the page. Precondition: the target has room for ``byteCount`` bytes. It may overlap the old page.
    public func write(into target: UnsafeMutableRawBufferPointer) {
        bytes.withUnsafeBytes { target.copyMemory(from: $0) }
    }

    /// Calls `body` with the page's bytes, which are valid only inside `body`.
    public func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}
