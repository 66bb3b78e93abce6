import Foundation
import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// The saves of a store, newest first.
struct HistoryPages: Sendable {
    struct Page: Encodable, Sendable {
        var saves: [Save]
        /// Older saves begin before this number; nil if there are none.
        var next: Generation?
    }

    struct Save: Encodable, Sendable {
        var save: Generation
        var date: String
        var author: String?
        var context: String?
        var process: Int32
        /// The number of changed objects, and the first of them.
        var count: Int
        var changes: [Change]
    }

    struct Change: Encodable, Sendable {
        var kind: String
        var entity: String
        var key: String
        var properties: [String]
        /// The values before and after, if they are known.
        var difference: ObjectDifference?
    }

    /// The greatest number of saves per page, and of saves that one request reads to find them.
    private static let (maximumSaves, readSaves) = (100, 10_000)
    private static let window = 500
    /// The greatest number of changes that are listed per save, in a list of saves and alone.
    private static let (listedChanges, allChanges) = (20, 1000)

    private let store: StudioStore
    private let feed: LiveFeed

    init(_ store: StudioStore, _ feed: LiveFeed) {
        self.store = store
        self.feed = feed
    }

    func page(_ query: [String: String]) async throws -> Page {
        await feed.catchUp()
        var request = HistoryRequest()
        if let name = query["entity"], !name.isEmpty { request.entities = [try store.entity(name).name] }
        if let author = query["author"], !author.isEmpty { request.authors = [author] }
        if let number = query["save"].flatMap(Generation.init) {
            return try await one(number, request)
        }
        let limit = min(max(query["limit"].flatMap(Int.init) ?? 25, 1), Self.maximumSaves)
        let newest = store.coordinator.currentHistoryToken.generation
        let end = min(query["before"].flatMap(Generation.init)?.earlier(by: 1) ?? newest, newest)
        let (found, next) = try await newestSaves(through: end, limit, request)
        var saves: [Save] = []
        for save in found { saves.append(await text(save, Self.listedChanges)) }
        return Page(saves: saves, next: next)
    }

    private func one(_ number: Generation, _ request: HistoryRequest) async throws -> Page {
        var request = request
        request.after = token(number.earlier(by: 1))
        request.limit = 1
        let found = try? await store.coordinator.history(request).first
        guard let found, found.id == number else {
            throw PageError(.notFound, "the history has no save \(number). Choose one of the list")
        }
        return Page(saves: [await text(found, Self.allChanges)])
    }

    /// Returns the newest saves up to a position, newest first, and the position before which older ones may be.
    func newestSaves(
        through end: Generation, _ limit: Int, _ request: HistoryRequest
    ) async throws -> (saves: [HistoryTransaction], next: Generation?) {
        var found: [HistoryTransaction] = []
        var end = end
        var read = 0
        while end > 0, read < Self.readSaves {
            var request = request
            let start = end.earlier(by: Self.window)
            request.limit = Self.window
            request.after = start == 0 ? nil : token(start)
            var isOldest = start == 0
            let part: [HistoryTransaction]
            do { part = try await store.coordinator.history(request) } catch HistoryError.tokenExpired {
                // The kept history begins after the position.
                request.after = nil
                isOldest = true
                part = try await store.coordinator.history(request)
            }
            found += part.filter { $0.id <= end }.reversed()
            if found.count > limit || found.count == limit && !isOldest {
                return (Array(found.prefix(limit)), found[limit - 1].id)
            }
            if isOldest { return (found, nil) }
            read += Self.window
            end = start
        }
        return (found, end > 0 ? end.next : nil)
    }

    private func token(_ save: Generation) -> HistoryToken {
        let newest = store.coordinator.currentHistoryToken
        return HistoryToken(store: newest.store, incarnation: newest.incarnation, generation: save)
    }

    private func text(_ save: HistoryTransaction, _ limit: Int) async -> Save {
        let differences = await feed.differences(ofSave: save.id)
        // If the far end of an ordered relationship cannot be found, the model lists the hidden entity of its positions.
        let hidden = Set(store.model.storeSchema.entities.filter(\.isOrder).map(\.name))
        let shown = save.changes.filter { !hidden.contains($0.entityName) }
        let changes = shown.isEmpty ? save.changes : shown
        return Save(
            save: save.id, date: store.dateText(save.date), author: save.author, context: save.contextName,
            process: save.processID,
            count: changes.count,
            changes: changes.prefix(limit).map { change in
                Change(
                    kind: change.kind.rawValue, entity: name(of: change), key: "\(change.objectID.key)",
                    properties: change.updatedProperties.sorted(), difference: differences[change.objectID])
            })
    }
}

extension HistoryPages {
    /// The entity of a changed object. The records of keyed collections have none in the model.
    private func name(of change: HistoryChange) -> String {
        store.model.entity(named: change.entityName) == nil ? "keyed value" : change.entityName
    }
}

extension StudioStore {
    /// The time of a save, to the millisecond.
    func dateText(_ date: Date) -> String {
        let seconds = (date.timeIntervalSinceReferenceDate * 1000).rounded() / 1000
        return language.text(.double(seconds), .date) ?? "\(seconds)"
    }
}
