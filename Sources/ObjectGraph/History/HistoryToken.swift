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
    /// Which copy of the store made that save: copies that are written to go their own ways (S168).
    public let incarnation: UUID
    /// The save behind which the token stands; 0 is before the first.
    public let generation: Generation

    /// - Parameters:
    ///   - store: the store's id.
    ///   - incarnation: nil: the one that the store began with.
    ///   - generation: the save after which the history is asked for.
    public init(store: UUID, incarnation: UUID? = nil, generation: Generation) {
        self.store = store
        self.incarnation = incarnation ?? store
        self.generation = generation
    }

    init(_ store: any ObjectStore, _ generation: Generation) {
        let lineage = store.lineage
        self.init(store: lineage.store, incarnation: lineage.incarnation(of: generation), generation: generation)
    }

    private enum CodingKeys: String, CodingKey { case store, incarnation, generation }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        // Tokens from before there were incarnations have none.
        self.init(
            store: try container.decode(UUID.self, forKey: .store),
            incarnation: try container.decodeIfPresent(UUID.self, forKey: .incarnation),
            generation: try container.decode(Generation.self, forKey: .generation))
    }

    /// The place of the token in a store's history.
    /// - Throws: ``HistoryError``, if the token is of another store, or of a save that only another copy of the store has.
    func place(in store: any ObjectStore) throws -> Generation {
        let lineage = store.lineage
        guard self.store == lineage.store else { throw HistoryError.tokenOfAnotherStore(self) }
        guard let shared = lineage.newestShared(with: incarnation), generation <= shared else {
            throw HistoryError.tokenOfAnotherCopy(self)
        }
        return generation
    }

    public static func < (a: HistoryToken, b: HistoryToken) -> Bool { a.generation < b.generation }
}

/// Why the history cannot be read on from a token.
public enum HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Saves after the token were deleted: by hand, or because the history keeps a bounded number. Read the store anew.
    case tokenExpired(HistoryToken)
    /// The token is of another store.
    case tokenOfAnotherStore(HistoryToken)
    /// The token is of a save that this store does not have: it was made after the backup from which the store was restored, or by
    /// another copy. Read the store anew.
    case tokenOfAnotherCopy(HistoryToken)

    public var description: String {
        switch self {
        case .tokenExpired(let token):
            "the history after save \(token.generation) has been deleted; read the objects anew and take a new token"
        case .tokenOfAnotherStore(let token):
            "the token belongs to the store \(token.store), not to this one; keep one token a store"
        case .tokenOfAnotherCopy(let token):
            "cannot read the history after save \(token.generation): it was made by another copy of the store, before or after a backup "
                + "was restored. Read the objects anew and take a new token"
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
