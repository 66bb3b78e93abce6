/// The address of an object in a store: its entity and its key.
@frozen
public struct ObjectAddress: Sendable, Hashable {
    /// The entity, by its position in the store's schema.
    public var entity: EntityIndex
    /// The key of the object in its entity.
    public var key: ObjectKey

    /// Creates an address. It need not belong to an existing object.
    @inlinable public init(entity: EntityIndex, key: ObjectKey) {
        self.entity = entity
        self.key = key
    }

    /// Returns whether two addresses have the same key and entity.
    @inlinable public static func == (a: ObjectAddress, b: ObjectAddress) -> Bool { a.key == b.key && a.entity == b.entity }

    /// Hashes the entity and the key.
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
    package static let end = PageNumber(rawValue: 1 << 58)
    /// Pages that are never leased. If nothing can be leased, one of them is picked at random.
    package static let unleased = PageNumber(rawValue: 1 << 55)..<PageNumber(rawValue: 1 << 56)

    /// Returns the number of the page that contains a key.
    @inlinable public static func page(of key: ObjectKey) -> PageNumber { key.page }
    /// Returns the slot of a key in its page, from 0 to 63.
    @inlinable public static func slot(of key: ObjectKey) -> Int { key.slot }
    /// Returns the key of a slot in a page. Precondition: the slot is from 0 to 63, and the page number is less than 2^58.
    @inlinable public static func key(page: PageNumber, slot: Int) -> ObjectKey { ObjectKey(page: page, slot: slot) }
}

/// An iterator over the set bits of a page's mask, lowest first.
@frozen
public struct SlotIterator: Sequence, IteratorProtocol {
    @usableFromInline var rest: UInt64

    /// Creates an iterator over the set bits of a mask.
    @inlinable public init(_ mask: UInt64) { rest = mask }

    /// Returns the next slot, from 0 to 63, or nil if no bit is left.
    @inlinable public mutating func next() -> Int? {
        guard rest != 0 else { return nil }
        defer { rest &= rest - 1 }
        return rest.trailingZeroBitCount
    }
}
