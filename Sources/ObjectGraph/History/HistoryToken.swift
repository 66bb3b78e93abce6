#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface
import StoreModel

/// A position in a store's history: after one save, before the next. Store it, for example in a file, to continue reading from there
/// (S160).
///
/// ```swift
/// try JSONEncoder().encode(container.coordinator.currentHistoryToken).write(to: file)
/// let stored = try JSONDecoder().decode(HistoryToken.self, from: Data(contentsOf: file))
/// ```
public struct HistoryToken: Sendable, Hashable, Codable, Comparable {
    /// The store to which the token belongs.
    public let store: UUID
    /// The incarnation of the store that made the save. Copies that are written to have separate histories from then on (S168).
    public let incarnation: UUID
    /// The save after which the token is positioned; 0 is before the first save.
    public let generation: Generation

    /// Creates a token.
    ///
    /// - Parameters:
    ///   - store: The store's id.
    ///   - incarnation: The incarnation of the store; nil for its first incarnation.
    ///   - generation: The save after which to read the history.
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

    /// Decodes a token. Tokens that were encoded before stores had incarnations belong to the first one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        // Tokens from versions without incarnations have none.
        self.init(
            store: try container.decode(UUID.self, forKey: .store),
            incarnation: try container.decodeIfPresent(UUID.self, forKey: .incarnation),
            generation: try container.decode(Generation.self, forKey: .generation))
    }

    /// Returns the position of the token in a store's history.
    ///
    /// - Throws: ``HistoryError`` if the token belongs to another store, or to a save that only another copy of the store contains.
    func place(in store: any ObjectStore) throws -> Generation {
        let lineage = store.lineage
        guard self.store == lineage.store else { throw HistoryError.tokenOfAnotherStore(self) }
        guard let shared = lineage.newestShared(with: incarnation), generation <= shared else {
            throw HistoryError.tokenOfAnotherCopy(self)
        }
        return generation
    }

    /// Returns whether a token is positioned at an earlier save. Compare tokens of one store and incarnation only.
    public static func < (a: HistoryToken, b: HistoryToken) -> Bool { a.generation < b.generation }
}

/// The reason why a token cannot be used to read the history.
///
/// ```swift
/// do {
///     _ = try await container.coordinator.history(HistoryRequest(after: stored))
/// } catch HistoryError.tokenExpired {
///     token = container.coordinator.currentHistoryToken  // then read the objects again
/// }
/// ```
public enum HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Saves after the token were deleted, explicitly or because the history is bounded. Read the store again.
    case tokenExpired(HistoryToken)
    /// The token belongs to another store.
    case tokenOfAnotherStore(HistoryToken)
    /// The token belongs to a save that this store does not contain. Another copy of the store made it, or it is newer than the
    /// restored backup. Read the store again.
    case tokenOfAnotherCopy(HistoryToken)

    /// The reason why the token cannot be used, and the remedy.
    public var description: String {
        switch self {
        case .tokenExpired(let token):
            "the history after save \(token.generation) has been deleted; read the objects again and take a new token"
        case .tokenOfAnotherStore(let token):
            "the token belongs to the store \(token.store), not to this one; keep one token per store"
        case .tokenOfAnotherCopy(let token):
            "cannot read the history after save \(token.generation): it was made by another copy of the store, before or after a backup "
                + "was restored. Read the objects again and take a new token"
        }
    }
}

/// A selection of the saves in a history.
///
/// ```swift
/// let request = HistoryRequest(after: token, excludingAuthors: ["importer"], entities: ["Track"])
/// for transaction in try await container.coordinator.history(request) {
///     print(transaction.changes.count)
///     token = transaction.token
/// }
/// ```
public struct HistoryRequest: Sendable, Hashable {
    /// The position at which to begin; nil for the oldest save.
    public var after: HistoryToken?
    /// The authors whose saves to return; nil for all. Write an author of nil as "".
    public var authors: Set<String>?
    /// The authors whose saves to leave out, such as your own.
    public var excludedAuthors: Set<String> = []
    /// The entities whose changes to return; nil for all. Saves without such changes are left out.
    public var entities: Set<String>?
    /// The maximum number of saves; nil for all.
    public var limit: Int?

    /// Creates a selection. Without arguments, it selects the whole history.
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

    func takes(_ metadata: SaveMetadata) -> Bool {
        authors.map { $0.contains(metadata.author) } != false && !excludedAuthors.contains(metadata.author)
    }
}

extension HistoryToken: CustomStringConvertible {
    /// The number of the save and the id of the store.
    public var description: String { "after save \(generation) of the store \(store.uuidString)" }
}
