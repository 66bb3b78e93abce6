/// The number of a save in a store. A later save has a greater number. An object's version is the generation that last wrote it.
///
/// Saves are numbered from 1. Generation 0 is that of a store without saves. In JSON a generation is a plain number.
@frozen
public struct Generation: Sendable, BitwiseCopyable, Hashable, Comparable {
    /// The generation as a number, as it is in files.
    public let rawValue: UInt64

    /// Creates a generation from its number.
    @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The greatest generation: after every save.
    @inlinable public static var max: Generation { Generation(rawValue: .max) }

    /// The generation of the following save.
    @inlinable public var next: Generation { Generation(rawValue: rawValue + 1) }

    /// The generation of the save before. Precondition: this is not generation 0.
    @inlinable public var previous: Generation { Generation(rawValue: rawValue - 1) }

    /// Returns the generation before a number of saves, or 0 if there were not so many.
    @inlinable public func earlier(by saves: Int) -> Generation { Generation(rawValue: rawValue - min(rawValue, UInt64(saves))) }

    /// Whether a store can have so many saves. A damaged file can have a greater number, and following numbers must not overflow.
    package var isPlausible: Bool { rawValue < 1 << 62 }

    /// Returns whether two generations are the same.
    @inlinable public static func == (a: Generation, b: Generation) -> Bool { a.rawValue == b.rawValue }

    /// Returns whether a save was committed before another save of the same store.
    @inlinable public static func < (a: Generation, b: Generation) -> Bool { a.rawValue < b.rawValue }

    /// Hashes the number.
    @inlinable public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

    /// Hashes the number as fast as an integer's hash.
    @inlinable public func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }
}

extension Generation: Strideable {
    /// Returns the generation that a number of further saves leads to.
    @inlinable public func advanced(by saves: Int) -> Generation { Generation(rawValue: rawValue.advanced(by: saves)) }

    /// Returns the number of saves after this generation, up to and including another one.
    @inlinable public func distance(to later: Generation) -> Int { rawValue.distance(to: later.rawValue) }
}

extension Generation: ExpressibleByIntegerLiteral {
    /// Creates a generation from its number.
    @inlinable public init(integerLiteral value: UInt64) { self.init(rawValue: value) }
}

extension Generation: LosslessStringConvertible {
    /// Creates a generation from the digits of its number. Returns nil for other text.
    public init?(_ description: String) {
        guard let number = UInt64(description) else { return nil }
        self.init(rawValue: number)
    }

    /// The digits of the number.
    public var description: String { rawValue.description }
}

extension Generation: Codable {
    /// Creates a generation from a plain number.
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(UInt64.self))
    }

    /// Encodes a plain number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
