/// The number of an object within its entity: dense, never reused, never zero.
public typealias ObjectKey = UInt64

/// The number of a save in a store. A later save has a greater number. An object's version is the generation that last wrote it.
public typealias Generation = UInt64

/// The address of an object in a store: its entity and its key.
@frozen
public struct ObjectAddress: Sendable, Hashable {
    public var entity: Int
    public var key: ObjectKey

    @inlinable public init(entity: Int, key: ObjectKey) {
        self.entity = entity
        self.key = key
    }

    @inlinable public static func == (a: ObjectAddress, b: ObjectAddress) -> Bool { a.key == b.key && a.entity == b.entity }

    @inlinable public func hash(into hasher: inout Hasher) {
        hasher.combine(entity)
        hasher.combine(key)
    }
}

/// The position of an object: page number and slot.
public enum PageAddress {
    /// The number of objects per page. Keys are leased in this unit, so that two contexts never insert into one page.
    public static let slots = 64
    /// The end of the page numbers that keys can address.
    package static let end: UInt64 = 1 << 58
    /// Pages that are never leased. If nothing can be leased, one of them is picked at random.
    package static let unleased: Range<UInt64> = 1 << 55..<1 << 56

    @inlinable public static func page(of key: ObjectKey) -> UInt64 { key >> 6 }
    @inlinable public static func slot(of key: ObjectKey) -> Int { Int(truncatingIfNeeded: key & 63) }
    @inlinable public static func key(page: UInt64, slot: Int) -> ObjectKey { page << 6 | UInt64(slot) }
}

/// An iterator over the set bits of a page's mask, lowest first.
@frozen
public struct SlotIterator: Sequence, IteratorProtocol {
    @usableFromInline var rest: UInt64

    @inlinable public init(_ mask: UInt64) { rest = mask }

    @inlinable public mutating func next() -> Int? {
        guard rest != 0 else { return nil }
        defer { rest &= rest - 1 }
        return rest.trailingZeroBitCount
    }
}
