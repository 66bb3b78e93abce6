import NIOHTTP1
import StockClient
import Testing

@testable import StockServer

/// Each route, on each store.
@Suite(.timeLimit(.minutes(10))) struct RouteTests {
    @Test(arguments: StoreKind.allCases)
    func `an item is created, read, changed and deleted`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            let client = server.client
            #expect(try await client.send(.POST, "/shelves", json: #"{"name": "A1"}"#).status == 201)
            let created = try await client.send(
                .POST, "/items", json: #"{"sku": "nail-30", "title": "Nail", "quantity": 7, "shelf": "A1"}"#)
            #expect(created.status == 201)
            #expect(created.headers["location"] == ["/items/nail-30"] && created.headers["etag"] == [#""1""#])

            let read = try await client.send(.GET, "/items/nail-30")
            #expect(read.status == 200 && read.headers["etag"] == [#""1""#])
            let item = try read.decode(ItemMessage.self)
            #expect(item == (try created.decode()))
            #expect(try await server.item("nail%2D30") == item)
            #expect(item.title == "Nail" && item.quantity == 7 && item.shelf == "A1")

            let changed = try await client.send(
                .PUT, "/items/nail-30", json: #"{"title": "Nail, 30 mm", "quantity": 9}"#, headers: ["if-match": #""1""#])
            #expect(changed.status == 200 && changed.headers["etag"] == [#""2""#])
            let newest = try await server.item("nail-30")
            #expect(newest == (try changed.decode()))
            #expect(newest.title == "Nail, 30 mm" && newest.quantity == 9 && newest.shelf == nil)

            let added = try await client.send(.POST, "/items/nail-30/add", json: #"{"count": -4}"#)
            #expect(added.status == 200)
            #expect(try added.decode(ItemMessage.self).quantity == 5)

            #expect(try await client.send(.DELETE, "/items/nail-30").status == 204)
            #expect(try await client.send(.GET, "/items/nail-30").status == 404)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `pages list every selected item once, in the order of the SKUs`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            _ = try await server.client.send(.POST, "/shelves", json: #"{"name": "A1"}"#)
            for number in (100..<123).shuffled() {
                let shelf = number.isMultiple(of: 2) ? #", "shelf": "A1""# : ""
                let body = #"{"sku": "s\#(number)", "title": "Thing", "quantity": \#(number)\#(shelf)}"#
                #expect(try await server.client.send(.POST, "/items", json: body).status == 201)
            }
            func skus(_ query: String) async throws -> [[String]] {
                var pages: [[String]] = []
                var next: String? = ""
                while let after = next {
                    let page = try await server.client.send(.GET, "/items?\(query)&after=\(after)").decode(ItemPage.self)
                    pages.append(page.items.map(\.sku))
                    next = page.next
                }
                return pages
            }
            #expect(try await skus("limit=10").map(\.count) == [10, 10, 3])
            #expect(try await skus("limit=10").joined().elementsEqual((100..<123).map { "s\($0)" }))
            #expect(try await skus("limit=23").map(\.count) == [23])
            #expect(try await skus("limit=5&shelf=A1&below=111") == [["s100", "s102", "s104", "s106", "s108"], ["s110"]])
            #expect(try await skus("shelf=unknown") == [[]])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S043: shelves are listed with their items, and deleted when they are empty`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            let client = server.client
            for name in ["B2", "A1"] { _ = try await client.send(.POST, "/shelves", json: #"{"name": "\#(name)"}"#) }
            _ = try await client.send(.POST, "/items", json: #"{"sku": "nail", "title": "Nail", "shelf": "A1"}"#)
            let shelves = try await client.send(.GET, "/shelves").decode([ShelfMessage].self)
            #expect(shelves == [ShelfMessage(name: "A1", items: 1), ShelfMessage(name: "B2", items: 0)])
            #expect(try await client.send(.DELETE, "/shelves/A1").status == 409)
            #expect(try await client.send(.DELETE, "/shelves/B2").status == 204)
            #expect(try await client.send(.DELETE, "/items/nail").status == 204)
            #expect(try await client.send(.DELETE, "/shelves/A1").status == 204)
            #expect(try await client.send(.GET, "/shelves").decode([ShelfMessage].self).isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S100: a change is refused unless the client has seen the newest revision`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            try await server.create("nail", quantity: 1)
            try await server.add(1, to: "nail")
            func change(_ condition: String?) async throws -> StockClient.Answer {
                try await server.client.send(
                    .PUT, "/items/nail", json: #"{"title": "Changed", "quantity": 9}"#,
                    headers: condition.map { ["if-match": $0] } ?? [:])
            }
            let stale = try await change(#""1""#)
            #expect(stale.status == 412 && stale.headers["etag"] == [#""2""#])
            #expect(try await change(nil).status == 428)
            #expect(try await change("yesterday").status == 400)
            #expect(try await server.client.send(.DELETE, "/items/nail", headers: ["if-match": #""1""#]).status == 412)
            let untouched = try await server.item("nail")
            #expect(untouched.quantity == 2 && untouched.revision == 2)
            #expect(try await change(#""2""#).status == 200)
            #expect(try await change("*").status == 200)
            #expect(try await server.item("nail").revision == 4)
        }
    }

    /// A request that is refused, and the status of its answer.
    struct Refusal: Sendable {
        var method: HTTPMethod
        var path: String
        var json: String?
        var status: Int

        init(_ status: Int, _ method: HTTPMethod, _ path: String, _ json: String? = nil) {
            (self.method, self.path, self.json, self.status) = (method, path, json, status)
        }
    }

    static let refusals = [
        Refusal(404, .GET, "/nowhere"), Refusal(404, .GET, "/items/none"), Refusal(404, .DELETE, "/items/none"),
        Refusal(404, .POST, "/items/none/add", #"{"count": 1}"#), Refusal(404, .DELETE, "/shelves/none"),
        Refusal(400, .POST, "/items", "no JSON"), Refusal(400, .POST, "/items", #"{"sku": "a"}"#),
        Refusal(400, .POST, "/items", #"{"sku": 7, "title": "Nail"}"#), Refusal(400, .POST, "/items", ""),
        Refusal(400, .POST, "/items/nail/add", #"{"count": 1e30}"#),
        Refusal(400, .GET, "/items?limit=none"), Refusal(400, .GET, "/items?limit=0"), Refusal(400, .GET, "/items?limit=501"),
        Refusal(400, .GET, "/items?below=1.5"), Refusal(400, .GET, "/events?limit=-1"),
        Refusal(409, .POST, "/items", #"{"sku": "nail", "title": "Another nail"}"#),
        Refusal(409, .POST, "/shelves", #"{"name": "A1"}"#),
        Refusal(409, .POST, "/items/nail/add", #"{"count": -8}"#),
        Refusal(409, .POST, "/items/nail/add", #"{"count": \#(Int.max)}"#),
        Refusal(422, .POST, "/items", #"{"sku": "a b", "title": "Nail"}"#),
        Refusal(422, .POST, "/items", #"{"sku": "", "title": "Nail"}"#),
        Refusal(422, .POST, "/items", #"{"sku": "..", "title": "Nail"}"#),
        Refusal(422, .POST, "/items", #"{"sku": "\#(String(repeating: "n", count: 65))", "title": "Nail"}"#),
        Refusal(422, .POST, "/items", #"{"sku": "a", "title": ""}"#),
        Refusal(422, .POST, "/items", #"{"sku": "a", "title": "Nail", "quantity": -1}"#),
        Refusal(422, .POST, "/items", #"{"sku": "a", "title": "Nail", "shelf": "none"}"#),
        Refusal(422, .POST, "/shelves", #"{"name": "a/b"}"#),
    ]

    private struct ErrorMessage: Decodable {
        struct Content: Decodable { var message: String }
        var error: Content
    }

    @Test(arguments: StoreKind.allCases)
    func `a refused request gets its status and a message, and changes nothing`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            try await server.create("nail", quantity: 7)
            _ = try await server.client.send(.POST, "/shelves", json: #"{"name": "A1"}"#)
            for refusal in Self.refusals {
                let answer = try await server.client.send(refusal.method, refusal.path, json: refusal.json)
                #expect(answer.status == refusal.status, "\(refusal)")
                #expect(throws: Never.self, "\(refusal)") { try answer.decode(ErrorMessage.self) }
            }
            let items = try await server.client.send(.GET, "/items").decode(ItemPage.self).items
            #expect(items.map(\.sku) == ["nail"] && items[0].quantity == 7 && items[0].revision == 1)
            #expect(try await server.client.send(.GET, "/shelves").decode([ShelfMessage].self).count == 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S154: a server without requests holds no snapshot`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            try await server.create("nail")
            _ = try await server.client.send(.GET, "/items")
            try await wait { try await server.client.send(.GET, "/status").decode(StatusMessage.self).snapshots.isEmpty }
        }
    }
}
