import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The identifier of an object. It is final from insertion on, and the same in every context, process and run.
///
/// Two ids are equal if store, entity and key are equal. Comparing or hashing an id reads two words. An id may be sent across
/// threads and processes.
///
/// An id, and so its text, contains the position of its entity in the model. If a program stores texts of ids, later versions of its model
/// must have new entities at the end, and keep the others.
///
/// ```swift
/// let text = track.id.description  // may be stored, or sent to another process
/// if let id = ObjectID(text) {
///     let same = try context.existingObject(Track.self, with: id)
///     print(same.title)
/// }
/// ```
public struct ObjectID: Sendable, Hashable {
    /// The identity of the object's store.
    public let store: StoreIdentity
    /// The object's entity, by its position in the store's schema.
    public let entity: EntityIndex
    /// The object's key, unique in its entity.
    public let key: ObjectKey

    /// Creates an id from its parts. The object need not exist.
    public init(store: StoreIdentity, entity: EntityIndex, key: ObjectKey) {
        self.store = store
        self.entity = entity
        self.key = key
    }
}

/// A value that is an object's id, or contains one, for predicates.
package protocol ObjectIDConvertible: Sendable {
    var objectID: ObjectID { get }
    /// Creates the value of an object's id, for predicates that are computed.
    init(objectID: ObjectID, entityName: String)
}

extension ObjectID: ObjectIDConvertible {
    package var objectID: ObjectID { self }
    package init(objectID: ObjectID, entityName: String) { self = objectID }
}

extension ObjectID: CustomStringConvertible, LosslessStringConvertible {
    private static let scheme = "strata://"

    /// The id as text: `strata://STORE-UUID/ENTITY-NUMBER/KEY`.
    public var description: String { "\(Self.scheme)\(store.uuid.uuidString)/\(entity)/\(key)" }

    /// Creates an id from its ``description``. Returns nil for any other text.
    public init?(_ description: String) {
        guard description.hasPrefix(Self.scheme) else { return nil }
        let parts = description.dropFirst(Self.scheme.count).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let uuid = UUID(uuidString: String(parts[0])), let entity = UInt16(parts[1]),
            let key = ObjectKey(parts[2])
        else { return nil }
        self.init(store: StoreIdentity(uuid), entity: EntityIndex(rawValue: Int(entity)), key: key)
        // Each id has exactly one text, without signs, leading zeros or lowercase letters.
        guard description.utf8.elementsEqual(self.description.utf8) else { return nil }
    }

    /// The id as a URL.
    public var url: URL {
        // The text consists of a scheme, hexadecimal digits, hyphens, slashes and decimal digits, so it is always a valid URL.
        URL(string: description)!
    }

    /// Creates an id from its ``url``. Returns nil for any other URL.
    public init?(url: URL) { self.init(url.absoluteString) }
}

extension ObjectID: Codable {
    /// Decodes an id from its ``description``.
    /// - Throws: `DecodingError` for any other text.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let id = ObjectID(text) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "not an object id: \(text)"))
        }
        self = id
    }

    /// Encodes the id as its ``description``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
