import Foundation
import Hummingbird
import Strata

/// The routes under `/items`. Each reads or writes in one call of the container, so that it sees one state and saves one.
struct ItemRoutes: Sendable {
    let container: PersistentContainer
    let settings: StockServer.Settings

    func add(to group: RouterGroup<some RequestContext>) {
        group.get(use: list).post(use: create)
        group.get(":sku", use: show).put(":sku", use: change).delete(":sku", use: delete)
        group.post(":sku/add", use: addPieces)
    }

    @Sendable func list(_ request: Request, _: some RequestContext) async throws -> ItemPage {
        let filter = try ItemFilter(request.uri.queryParameters)
        return try await container.read { context in
            // One item more than the page tells whether there is a next page.
            let items = try context.fetch(filter.fetchRequest(limit: filter.limit + 1)).map(ItemMessage.init)
            let page = Array(items.prefix(filter.limit))
            return ItemPage(items: page, next: items.count > page.count ? page.last?.sku : nil)
        }
    }

    @Sendable func show(_ request: Request, _ context: some RequestContext) async throws -> ItemMessage {
        let sku = try context.parameters.decoded("sku")
        return try await container.read { try ItemMessage($0.item(sku)) }
    }

    @Sendable func create(_ request: Request, _ context: some RequestContext) async throws -> EditedResponse<ItemMessage> {
        let new = try await request.decode(as: NewItem.self, context: context)
        let item = try await container.write(settings.durability) { context in
            let item = Item(sku: new.sku, title: new.title, quantity: new.quantity ?? 0)
            context.insert(item)
            item.shelf = try new.shelf.map(context.shelf)
            return ItemMessage(item)
        }
        return EditedResponse(status: .created, headers: [.location: "/items/\(item.sku)"], response: item)
    }

    /// Replaces the fields of an item if the client has seen its newest revision. If a save of another request comes in between, the
    /// closure runs again and finds the newer revision.
    @Sendable func change(_ request: Request, _ context: some RequestContext) async throws -> ItemMessage {
        let sku = try context.parameters.decoded("sku")
        guard let condition = try RevisionCondition(request) else {
            throw HTTPError(.preconditionRequired, message: "send If-Match with the ETag of the item that you have changed")
        }
        let change = try await request.decode(as: ItemChange.self, context: context)
        return try await container.write(retrying: settings.retries, settings.durability) { context in
            let item = try context.item(sku)
            try condition.check(item)
            item.title = change.title
            item.quantity = change.quantity
            item.shelf = try change.shelf.map(context.shelf)
            item.revision += 1
            return ItemMessage(item)
        }
    }

    /// Adds pieces. The closure reads the number that it adds to, and runs again if the save finds another one. So requests at the same
    /// time lose no piece.
    @Sendable func addPieces(_ request: Request, _ context: some RequestContext) async throws -> ItemMessage {
        let sku = try context.parameters.decoded("sku")
        let change = try await request.decode(as: StockChange.self, context: context)
        return try await container.write(retrying: settings.retries, settings.durability) { context in
            let item = try context.item(sku)
            let (sum, overflows) = item.quantity.addingReportingOverflow(change.count)
            guard !overflows, sum >= 0 else {
                throw HTTPError(.conflict, message: "cannot add \(change.count) pieces to \(sku): it has \(item.quantity)")
            }
            item.quantity = sum
            item.revision += 1
            return ItemMessage(item)
        }
    }

    @Sendable func delete(_ request: Request, _ context: some RequestContext) async throws -> HTTPResponse.Status {
        let sku = try context.parameters.decoded("sku")
        let condition = try RevisionCondition(request)
        try await container.write(retrying: settings.retries, settings.durability) { context in
            let item = try context.item(sku)
            try condition?.check(item)
            context.delete(item)
        }
        return .noContent
    }
}

/// The revisions that a client accepts, from the header If-Match: `"3"`, or `*` for every revision.
private struct RevisionCondition: Sendable {
    /// nil for every revision.
    let revision: Int?

    /// Returns nil if the request has no condition.
    init?(_ request: Request) throws {
        guard let text = request.headers[.ifMatch] else { return nil }
        revision = text == "*" ? nil : Int(text.trimming("\""))
        guard text == "*" || revision != nil else {
            throw HTTPError(.badRequest, message: "If-Match must be one ETag of this server, but it is \(text)")
        }
    }

    func check(_ item: Item) throws {
        guard let revision, item.revision != revision else { return }
        throw HTTPError(
            .preconditionFailed, headers: [.eTag: "\"\(item.revision)\""],
            message: "\(item.sku) has changed: you sent revision \(revision), and the newest is \(item.revision). Read it again")
    }
}

extension ManagedObjectContext {
    /// - Throws: `HTTPError` 404 if there is none.
    fileprivate func item(_ sku: String) throws -> Item {
        guard let item = try find(unique: \Item.sku, sku) else {
            throw HTTPError(.notFound, message: "no item has the SKU \(sku)")
        }
        return item
    }

    /// - Throws: `HTTPError` 422 if there is none, because the body of the request names it.
    fileprivate func shelf(_ name: String) throws -> Shelf {
        guard let shelf = try find(unique: \Shelf.name, name) else {
            throw HTTPError(.unprocessableContent, message: "no shelf has the name \(name). Create it first")
        }
        return shelf
    }
}

extension Parameters {
    /// Returns a segment of the path without percent escapes.
    func decoded(_ name: String) throws -> String {
        let text = try require(name)
        return text.removingPercentEncoding ?? text
    }
}

extension String {
    /// Returns the text between two equal marks, or the text itself without them.
    fileprivate func trimming(_ mark: Character) -> Substring {
        count >= 2 && first == mark && last == mark ? dropFirst().dropLast() : self[...]
    }
}
