import Foundation
import Hummingbird
import Strata

/// The items that a request selects by its query: `?shelf=A1&below=5&after=sku&limit=20`.
struct ItemFilter: Sendable {
    var shelf: String?
    var below: Int?
    var after = ""
    var limit: Int

    /// - Throws: `HTTPError` 400 if a number is malformed or out of range.
    init(_ query: Parameters) throws {
        shelf = query.get("shelf")
        below = try query.number("below")
        after = query.get("after") ?? ""
        limit = try query.number("limit") ?? 50
        guard (1...500).contains(limit) else {
            throw HTTPError(.badRequest, message: "limit must be between 1 and 500, but it is \(limit)")
        }
    }

    /// The request in the order of the SKUs, which the unique index provides. A page begins after a SKU, so that it costs the same
    /// wherever it is, and no item is skipped or repeated if others are inserted or deleted.
    func fetchRequest(limit: Int) -> FetchRequest<Item> {
        let (after, anyShelf, shelf) = (after, shelf == nil, shelf ?? "")
        let (anyQuantity, below) = (below == nil, below ?? 0)
        return FetchRequest(
            where: #Predicate {
                $0.sku > after && (anyShelf || $0.shelf?.name == shelf) && (anyQuantity || $0.quantity < below)
            }, sortBy: [.init(\.sku)], limit: limit)
    }
}

extension Parameters {
    /// Returns the number of a query; nil if the query has none.
    fileprivate func number(_ name: String) throws -> Int? {
        guard let text = get(name) else { return nil }
        guard let number = Int(text) else {
            throw HTTPError(.badRequest, message: "\(name) must be a whole number, but it is \"\(text)\"")
        }
        return number
    }
}
