import StoreInterface
import StoreModel

/// The computation of a derived attribute. Each save computes the values, and the store keeps them (S200).
///
/// Predicates, sorts and indexes use a derived attribute like any other. Programs do not set it: they change what it is derived from.
///
/// Names on a path may contain dots: each step is the longest name of a relationship with which the rest of the path begins, and the
/// last one an attribute.
///
/// ```swift
/// let album = EntityDescription(
///     name: "Album",
///     properties: [
///         .attribute(AttributeDescription(name: "title", type: .string)),
///         .attribute(
///             AttributeDescription(name: "trackCount", type: .int64, index: .indexed, derivation: .count(of: "tracks"))),
///         .attribute(
///             AttributeDescription(
///                 name: "artistName", type: .string, isOptional: true, derivation: .value(at: "artist.name"))),
///         .attribute(AttributeDescription(name: "searchTitle", type: .string, derivation: .folded("title"))),
///         .relationship(
///             RelationshipDescription(name: "artist", destination: "Artist", inverse: "albums", cardinality: .toOne)),
///         .relationship(
///             RelationshipDescription(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
///     ])
/// ```
public struct Derivation: Sendable, Hashable {
    enum Source: Sendable, Hashable {
        /// A function of the property at a path. The names on the path may contain dots, so that only the model can tell them apart.
        case path(ColumnDerivation.Function, String)
        /// A derivation that is stored in a file, whose schema has the numbers.
        case stored(ColumnDerivation)
    }

    let source: Source

    init(_ source: Source) { self.source = source }

    private init(_ function: ColumnDerivation.Function, _ path: String) { source = .path(function, path) }

    /// Returns the value of an attribute at the end of a path of to-one relationships, such as `artist.name`.
    ///
    /// Without such an object, or if the value there is nil, the derived attribute is nil. If it is not optional, it has its default.
    public static func value(at path: String) -> Derivation { Derivation(.value, path) }

    /// Returns the number of objects in a to-many relationship.
    public static func count(of relationship: String) -> Derivation { Derivation(.count, relationship) }

    /// Returns the sum of an attribute over a to-many relationship, such as `tracks.duration`; 0 without objects.
    public static func sum(of path: String) -> Derivation { Derivation(.sum, path) }

    /// Returns the least value of an attribute in a to-many relationship; without any value nil, or the default.
    public static func minimum(of path: String) -> Derivation { Derivation(.minimum, path) }

    /// Returns the greatest value of an attribute in a to-many relationship; without any value nil, or the default.
    public static func maximum(of path: String) -> Derivation { Derivation(.maximum, path) }

    /// Returns the mean of an attribute over a to-many relationship; without any value nil, or the default.
    public static func average(of path: String) -> Derivation { Derivation(.average, path) }

    /// Returns a string attribute of the same object in lower case.
    public static func lowercased(_ attribute: String) -> Derivation { Derivation(.lowercased, attribute) }

    /// Returns a string attribute of the same object in lower case and without diacritics, for searches.
    public static func folded(_ attribute: String) -> Derivation { Derivation(.folded, attribute) }
}

extension Derivation: CustomStringConvertible {
    /// The function and the path, such as `count of tracks`.
    public var description: String {
        switch source {
        case .path(.value, let path): path
        case .path(.lowercased, let path), .path(.folded, let path):
            "\(path) \(self.function == .folded ? "in lower case without diacritics" : "in lower case")"
        case .path(let function, let path): "\(function.rawValue) of \(path)"
        case .stored(let stored): "\(stored.function.rawValue) of other values"
        }
    }

    private var function: ColumnDerivation.Function {
        switch source {
        case .path(let function, _): function
        case .stored(let stored): stored.function
        }
    }
}
