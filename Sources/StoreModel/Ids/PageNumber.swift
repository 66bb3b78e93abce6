/// The number of a page of objects: 64 keys of one entity that follow each other. See ``PageAddress``.
///
/// In JSON a page number is a plain number.
@frozen
public struct PageNumber: Sendable, BitwiseCopyable, Hashable, Comparable {
    /// The page number as a number, as it is in files.
    public let rawValue: UInt64

    /// Creates a page number from its number. The page need not exist.
    @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The greatest number. No page has it.
    @inlinable public static var max: PageNumber { PageNumber(rawValue: .max) }

    /// The number of the following page.
    @inlinable public var next: PageNumber { PageNumber(rawValue: rawValue + 1) }

    /// Returns whether two pages have the same number.
    @inlinable public static func == (a: PageNumber, b: PageNumber) -> Bool { a.rawValue == b.rawValue }

    /// Returns whether a page is before another one.
    @inlinable public static func < (a: PageNumber, b: PageNumber) -> Bool { a.rawValue < b.rawValue }

    /// Hashes the number.
    @inlinable public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

    /// Hashes the number as fast as an integer's hash.
    @inlinable public func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }
}

extension PageNumber: Strideable {
    /// Returns the number of the page that is a number of pages later.
    @inlinable public func advanced(by pages: Int) -> PageNumber { PageNumber(rawValue: rawValue.advanced(by: pages)) }

    /// Returns the number of pages from this one to another, not including the other.
    @inlinable public func distance(to other: PageNumber) -> Int { rawValue.distance(to: other.rawValue) }
}

extension PageNumber: ExpressibleByIntegerLiteral {
    /// Creates a page number from its number.
    @inlinable public init(integerLiteral value: UInt64) { self.init(rawValue: value) }
}

extension PageNumber: CustomStringConvertible {
    /// The digits of the number.
    public var description: String { rawValue.description }
}

extension PageNumber: Codable {
    /// Creates a page number from a plain number.
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(UInt64.self))
    }

    /// Encodes a plain number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
