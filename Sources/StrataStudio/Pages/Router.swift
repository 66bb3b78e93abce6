import Foundation
import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// Answers requests that are allowed: by a file of the page, or by JSON.
struct Router: Sendable {
    private let store: StudioStore
    private let feed: LiveFeed
    private let tables: TablePages
    private let objects: ObjectPages
    private let collections: CollectionPages
    private let history: HistoryPages
    private let files: FilePages
    private let edits: EditPages

    init(_ store: StudioStore, _ feed: LiveFeed) {
        self.store = store
        self.feed = feed
        tables = TablePages(store)
        objects = ObjectPages(store)
        collections = CollectionPages(store)
        history = HistoryPages(store, feed)
        files = FilePages(store, feed)
        edits = EditPages(store, feed)
    }

    /// Releases the states and edits that were not used for a while.
    func releaseIdle() {
        tables.kept.releaseIdle()
        edits.kept.releaseIdle()
    }

    func close() async {
        tables.kept.removeAll()
        edits.kept.removeAll()
    }

    func response(to request: StudioRequest) async -> StudioResponse {
        do {
            if let asset = try Assets.response(to: request) { return asset }
            guard request.path.hasPrefix("/api/") else {
                throw PageError(.notFound, "\(request.path): no such page. Go back to the schema")
            }
            return try await answer(request, String(request.path.dropFirst("/api/".count)))
        } catch let error as PageError {
            return .error(error)
        } catch let error as FetchError {
            return .error(PageError(.badRequest, error.message))
        } catch {
            return .error(PageError(.internalServerError, store.language.sentence(error)))
        }
    }

    private func answer(_ request: StudioRequest, _ name: String) async throws -> StudioResponse {
        if request.method == .POST { return .json(try await edits.answer(request, name)) }
        guard request.method == .GET else {
            throw PageError(.methodNotAllowed, "\(request.method.rawValue): not allowed here. Use GET")
        }
        switch name {
        case "store": return .json(try await files.store())
        case "schema": return .json(SchemaPage(store))
        case "table": return .json(try await tables.page(request.query))
        case "plan": return .json(try await tables.plan(request.query))
        case "object": return .json(try await objects.page(request.query))
        case "related": return .json(try await objects.related(request.query))
        case "collection": return .json(try await collections.page(request.query))
        case "history": return .json(try await history.page(request.query))
        case "snapshots": return .json(try files.snapshots())
        case "file": return .json(try await files.map())
        case "events": return try await feed.response()
        default: throw PageError(.notFound, "\(request.path): no such page. Go back to the schema")
        }
    }
}
