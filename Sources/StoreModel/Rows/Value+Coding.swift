#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Codes a value as an object with one member, named after the storage class: `{"int": 5}`. Numbers keep all of their bits.
/// Doubles are written as their bits, because JSON has neither NaN nor infinity.
extension Value: Codable {
    private enum CodingKeys: String, CodingKey { case null, bool, int, uint, double, string, data, uuid, reference }

    /// Decodes a value.
    /// - Throws: `DecodingError` for an object that does not have exactly one known member, or has one of another type.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let key = container.allKeys.first, container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "a value has one member, named for its class"))
        }
        switch key {
        case .null: self = .null
        case .bool: self = .bool(try container.decode(Bool.self, forKey: key))
        case .int: self = .int(try container.decode(Int64.self, forKey: key))
        case .uint: self = .uint(try container.decode(UInt64.self, forKey: key))
        case .double: self = .double(Double(bitPattern: try container.decode(UInt64.self, forKey: key)))
        case .string: self = .string(try container.decode(String.self, forKey: key))
        case .data: self = .data(try container.decode(Data.self, forKey: key))
        case .uuid: self = .uuid(try container.decode(UUID.self, forKey: key))
        case .reference: self = .reference(try container.decode(ObjectKey.self, forKey: key))
        }
    }

    /// Encodes the value as an object with one member.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .null: try container.encode(true, forKey: .null)
        case .bool(let flag): try container.encode(flag, forKey: .bool)
        case .int(let number): try container.encode(number, forKey: .int)
        case .uint(let number): try container.encode(number, forKey: .uint)
        case .double(let number): try container.encode(number.bitPattern, forKey: .double)
        case .string(let text): try container.encode(text, forKey: .string)
        case .data(let data): try container.encode(data, forKey: .data)
        case .uuid(let uuid): try container.encode(uuid, forKey: .uuid)
        case .reference(let key): try container.encode(key, forKey: .reference)
        }
    }
}
