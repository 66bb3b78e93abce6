import Hummingbird

/// An item as JSON.
package struct ItemMessage: Codable, Sendable, Equatable {
    package var sku: String
    package var title: String
    package var quantity: Int
    package var revision: Int
    package var shelf: String?

    init(_ item: Item) {
        sku = item.sku
        title = item.title
        quantity = item.quantity
        revision = item.revision
        shelf = item.shelf?.name
    }
}

extension ItemMessage: ResponseGenerator {
    /// Encodes the item, with its revision as the entity tag.
    package func response(from request: Request, context: some RequestContext) throws -> Response {
        var response = try context.responseEncoder.encode(self, from: request, context: context)
        response.headers[.eTag] = "\"\(revision)\""
        return response
    }
}

/// A part of the list of items, in the order of their SKUs.
package struct ItemPage: ResponseCodable, Sendable {
    package var items: [ItemMessage]
    /// The value of `after` for the next page; nil on the last page.
    package var next: String?
}

/// The body of a request that creates an item.
struct NewItem: Decodable {
    var sku: String
    var title: String
    var quantity: Int?
    var shelf: String?
}

/// The body of a request that changes an item. It replaces all fields, so without a shelf the item leaves its shelf.
struct ItemChange: Decodable {
    var title: String
    var quantity: Int
    var shelf: String?
}

/// The body of a request that adds pieces to the stock, or takes pieces if it is negative.
struct StockChange: Decodable {
    var count: Int
}

/// A shelf as JSON, with the number of its items.
package struct ShelfMessage: ResponseCodable, Sendable, Equatable {
    package var name: String
    package var items: Int
}

/// The body of a request that creates a shelf.
struct NewShelf: Decodable {
    var name: String
}

/// The state of the server as JSON.
package struct StatusMessage: ResponseCodable, Sendable {
    /// The states of the store that requests and events hold, one line for each.
    package var snapshots: [String]
}
