import StoreInterface

/// An old page, or none, and the changes of a layer's page: the new page.
///
/// An update sets only its row's set columns; an update of a slot without an object is an insert when it sets every column
/// and is dropped otherwise. Columns that no row touches are copied as they lie. Cost: about 50 ns a fresh row of seven
/// columns, and a copy of the page for an update. The result owns its bytes: the old page may go once it is made.
public struct PageMerge {
    private let bytes: [UInt8]

    /// - Parameter old: checked with ``ObjectPage/Check/checksum`` or more, if damage is not to get a fresh checksum.
    /// - Throws: ``PageError`` naming entity and column when a value does not fit its column, and for bad offsets in `old`.
    public init(old: ObjectPage?, changes: LayerPage, layout: PageLayout) throws(PageError) {
        var encoder = PageEncoder(old: old, layout: layout)
        try encoder.gather(changes)
        bytes = try encoder.encode()
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
