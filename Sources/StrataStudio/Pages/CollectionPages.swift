import Foundation
import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// The entries of keyed collections.
struct CollectionPages: Sendable {
    struct Page: Encodable, Sendable {
        var name: String
        var keys: String
        var values: String
        var total: Int
        /// The newest save that the state contains.
        var save: Generation
        var entries: [Entry]
        /// The place of the next page; nil at the end.
        var next: String?
    }

    struct Entry: Encodable, Sendable {
        var key: String
        var value: Cell
    }

    private static let (listed, shownCharacters) = (100, 2000)

    private let store: StudioStore

    init(_ store: StudioStore) { self.store = store }

    func page(_ query: [String: String]) async throws -> Page {
        let name = query["name"] ?? ""
        let after = query["after"].flatMap { Data(base64Encoded: $0) }
        let snapshot = try store.coordinator.snapshot(owner: "studio")
        return try await store.read(snapshot) { context in
            // By bytes, as in the store: texts that only look alike are equal too.
            let found = try context.storedCollections().first { $0.name.utf8.elementsEqual(name.utf8) }
            guard let collection = found else {
                throw PageError(.notFound, "the store has no collection \(name). Choose one of the list")
            }
            let entries = try context.storedEntries(of: collection, after: after, limit: Self.listed)
            return Page(
                name: name, keys: collection.keyType, values: collection.valueType,
                total: try context.storedCount(of: collection), save: snapshot.generation,
                entries: entries.map { Self.entry($0, of: collection, store: store) },
                next: entries.count == Self.listed ? entries.last?.key.base64EncodedString() : nil)
        }
    }

    private static func entry(_ entry: StoredCollection.Entry, of collection: StoredCollection, store: StudioStore) -> Entry {
        let value = collection.text(ofValue: entry.value).map { Value.string($0) } ?? .data(entry.value)
        return Entry(
            key: collection.texts(ofKey: entry.key, naming: store.text)?.joined(separator: ", ") ?? "\(entry.key.count) bytes",
            value: store.cell(value, .string, limit: shownCharacters))
    }
}
