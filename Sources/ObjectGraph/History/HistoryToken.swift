#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface

/// A place in a store's history: after one save, before the next. Keep it, in a file too, to read on from there (S160).
public struct HistoryToken: Sendable, Hashable, Codable, Comparable {
    /// The store that the token is of.
    public let store: UUID
    /// The save behind which the token stands; 0 is before the first.
    public let generation: Generation

    public init(store: UUID, generation: Generation) {
        self.store = store
        self.generation = generation
    }

    public static func < (a: HistoryToken, b: HistoryToken) -> Bool { a.generation < b.generation }
}

/// Why the history cannot be read on from a token.
public enum HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Saves after the token were deleted: by hand, or because the history keeps a bounded number. Read the store anew.
    case tokenExpired(HistoryToken)
    /// The token is of another store.
    case tokenOfAnotherStore(HistoryToken)

    public var description: String {
        switch self {
        case .tokenExpired(let token):
            "the history after save \(token.generation) has been deleted; read the objects anew and take a new token"
        case .tokenOfAnotherStore(let token):
            "the token belongs to the store \(token.store), not to this one; keep one token a store"
        }
    }
}

/// Which part of a history to read.
public struct HistoryRequest: Sendable, Hashable {
    /// The place to begin; nil: the oldest save that there is.
    public var after: HistoryToken?
    /// Only saves of these authors; an author of nil is written as "". nil: of all.
    public var authors: Set<String>?
    /// No saves of these authors: one's own, say.
    public var excludedAuthors: Set<String> = []
    /// Only saves that changed objects of these entities, and of those only such changes. nil: all.
    public var entities: Set<String>?
    /// How many saves at most; nil: all.
    public var limit: Int?

    public init(
        after token: HistoryToken? = nil, authors: Set<String>? = nil, excludingAuthors: Set<String> = [],
        entities: Set<String>? = nil, limit: Int? = nil
    ) {
        after = token
        self.authors = authors
        excludedAuthors = excludingAuthors
        self.entities = entities
        self.limit = limit
    }

    func takes(_ origin: SaveOrigin) -> Bool {
        authors.map { $0.contains(origin.author) } != false && !excludedAuthors.contains(origin.author)
    }
}
