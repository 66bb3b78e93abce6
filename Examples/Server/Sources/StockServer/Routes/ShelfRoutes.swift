import Hummingbird
import Strata

/// The routes under `/shelves`.
struct ShelfRoutes: Sendable {
    let container: PersistentContainer
    let settings: StockServer.Settings

    func add(to group: RouterGroup<some RequestContext>) {
        group.get(use: list).post(use: create).delete(":name", use: delete)
    }

    @Sendable func list(_: Request, _: some RequestContext) async throws -> [ShelfMessage] {
        try await container.read { context in
            try context.fetch(FetchRequest<Shelf>(sortBy: [.init(\.name)])).map {
                ShelfMessage(name: $0.name, items: $0.items.count)
            }
        }
    }

    @Sendable func create(_ request: Request, _ context: some RequestContext) async throws -> EditedResponse<ShelfMessage> {
        let new = try await request.decode(as: NewShelf.self, context: context)
        try await container.write(settings.durability) { $0.insert(Shelf(name: new.name)) }
        return EditedResponse(status: .created, response: ShelfMessage(name: new.name, items: 0))
    }

    /// Deletes an empty shelf. The store refuses to delete one with items, also if another request has put an item on it meanwhile.
    @Sendable func delete(_: Request, _ context: some RequestContext) async throws -> HTTPResponse.Status {
        let name = try context.parameters.decoded("name")
        try await container.write(retrying: settings.retries, settings.durability) { context in
            guard let shelf = try context.find(unique: \Shelf.name, name) else {
                throw HTTPError(.notFound, message: "no shelf has the name \(name)")
            }
            context.delete(shelf)
        }
        return .noContent
    }
}
