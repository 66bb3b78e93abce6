/// The number of an object within its entity: dense, never reused, never zero.
///
/// In JSON a key is a plain number.
@frozen
public struct ObjectKey: Sendable, BitwiseCopyable, Hashable, Comparable {
    /// The key as a number, as it is in files.
    public let rawValue: UInt64

    /// Creates a key from its number. It need not belong to an existing object.
    @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Creates the key of a slot in a page. Precondition: the slot is from 0 to 63, and the page number is less than 2^58.
    @inlinable public init(page: PageNumber, slot: Int) { rawValue = page.rawValue << 6 | UInt64(slot) }

    /// The number of the page that contains the key.
    @inlinable public var page: PageNumber { PageNumber(rawValue: rawValue >> 6) }

    /// The slot of the key in its page, from 0 to 63.
    @inlinable public var slot: Int { Int(truncatingIfNeeded: rawValue & 63) }

    /// The first key of the following page.
    @inlinable package var pageEnd: ObjectKey { ObjectKey(rawValue: (rawValue | 63) + 1) }

    /// The greatest key. No object has it.
    @inlinable public static var max: ObjectKey { ObjectKey(rawValue: .max) }

    /// Returns whether two keys are the same.
    @inlinable public static func == (a: ObjectKey, b: ObjectKey) -> Bool { a.rawValue == b.rawValue }

    /// Returns whether a key is less than another.
    @inlinable public static func < (a: ObjectKey, b: ObjectKey) -> Bool { a.rawValue < b.rawValue }

    /// Hashes the number.
    @inlinable public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

    /// Hashes the number as fast as an integer's hash.
    @inlinable public func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }
}

extension ObjectKey: Strideable {
    /// Returns the key that is a number of keys later.
    @inlinable public func advanced(by keys: Int) -> ObjectKey { ObjectKey(rawValue: rawValue.advanced(by: keys)) }

    /// Returns the number of keys from this one to another, not including the other.
    @inlinable public func distance(to other: ObjectKey) -> Int { rawValue.distance(to: other.rawValue) }
}

extension ObjectKey: ExpressibleByIntegerLiteral {
    /// Creates a key from its number.
    @inlinable public init(integerLiteral value: UInt64) { self.init(rawValue: value) }
}

extension ObjectKey: LosslessStringConvertible {
    /// Creates a key from the digits of its number. Returns nil for other text.
    public init?(_ description: some StringProtocol) {
        guard let number = UInt64(description, radix: 10) else { return nil }
        self.init(rawValue: number)
    }

    /// The digits of the number.
    public var description: String { rawValue.description }
}

extension ObjectKey: Codable {
    /// Creates a key from a plain number.
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(UInt64.self))
    }

    /// Encodes a plain number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
