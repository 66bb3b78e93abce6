import Foundation
import Strata
import Testing

/// Models with attributes of which the column type does not tell how to print them.
private enum Bills {
    enum Kind: String, Codable, CaseIterable { case cash, card }
    struct Fee: RawRepresentable, AttributeValue { var rawValue: Decimal }
    struct Place: Codable, Equatable {
        var city: String
        var seats: Int
    }

    @Model final class Shop {
        var name: String
        @Attribute(.unique) var rent: Decimal
        var bills: [Bill]?

        init(_ name: String, rent: Decimal) {
            self.name = name
            self.rent = rent
        }
    }

    @Model final class Bill {
        var amount: Decimal
        var tip: Decimal?
        var fee = Fee(rawValue: 2)
        var kind = Kind.cash
        var place: Place
        var other: Place?
        @Attribute(.length(...40)) var tags: [String] = []
        var paid: Date
        var seal = Data()
        var shop: Shop?

        init(_ amount: Decimal, shop: Shop?) {
            self.amount = amount
            self.shop = shop
            place = Place(city: "Oslo", seats: 3)
            paid = Bills.date
            kind = .card
            tags = ["a", "b"]
            // The bytes of a decimal, and of JSON.
            seal = Data([2])
        }
    }

    @Model final class Account {
        @Relationship(deleteRule: .deny) var entries: [Entry] = []
        init() {}
    }

    @Model final class Entry {
        var account: Account?
        init(_ account: Account?) { self.account = account }
    }

    static let types: [any PersistentModel.Type] = [Shop.self, Bill.self, Account.self, Entry.self]
    static let date = Date(timeIntervalSinceReferenceDate: 778_000_000)
    /// The attributes of a new bill whose amount is 12.5, as names and texts.
    static let texts = [
        ("amount", "12.5"), ("tip", "nil"), ("fee", "2"), ("kind", "\"card\""), ("place", "{\"city\":\"Oslo\",\"seats\":3}"),
        ("other", "nil"), ("tags", "[\"a\",\"b\"]"), ("paid", "2025-08-27T15:06:40Z"), ("seal", "data of 1 bytes"),
    ]
    static let text = texts.map { "\($0): \($1)" }.joined(separator: ", ")
}

/// The printed text of decimals, `Codable` values and references, on every store.
@Suite @MainActor struct PrintedValueTests {
    private typealias Bill = Bills.Bill
    private typealias Shop = Bills.Shop

    private func open(
        _ store: TestStore, _ body: @MainActor (PersistentContainer, Bill, Shop) async throws -> Void
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Bills.types), store: description)
            let shop = Shop("Zoo", rent: 0.05)
            let bill = Bill(12.5, shop: shop)
            #expect("\(bill)" == "Bill(not inserted, \(Bills.text), shop: Shop(not inserted))")
            container.mainContext.insert(bill)
            try await container.mainContext.save()
            try await body(container, bill, shop)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S172: an object prints decimals as numbers and Codable values as JSON, in every context`(
        _ store: TestStore
    ) async throws {
        try await open(store) { container, bill, shop in
            let (id, shopKey) = (bill.id, shop.id.key)
            let text = "Bill(id: \(id.key), \(Bills.text), shop: Shop(id: \(shopKey)))"
            #expect("\(bill)" == text)
            let child = container.mainContext.newChild()
            defer { withExtendedLifetime(child) {} }
            let own = try #require(child.model(for: id) as? Bill)
            #expect("\(own)" == text)
            own.amount = -0.25
            #expect("\(own)" == text.replacing("12.5", with: "-0.25") && "\(bill)" == text)
            let snapshot = container.mainContext.snapshot
            bill.amount = 1_000_000
            bill.place.city = "Rome"
            bill.tip = 0
            #expect(
                "\(bill)".contains("(id: \(id.key), amount: 1000000, tip: 0, fee: 2, kind: \"card\", place: {\"city\":\"Rome\""))
            try await container.mainContext.save()
            let reader = container.coordinator.newBackgroundContext(reading: snapshot)
            let old = try await reader.perform { context throws in
                let bill = try #require(context.model(for: id) as? Bill)
                return "\(bill)"
            }
            #expect(old == text)
            bill.tags = Array(repeating: "ten letters", count: 20)
            let long = "tags: [\"ten letters\",\"ten letters\",\"ten letters\",\"ten letters\",\"te… (281 bytes)"
            #expect("\(bill)".contains(long))
            bill.tags = Array(repeating: "c", count: 41)
            let errors = bill.validationErrors().map { "\($0)" }
            #expect(errors.count == 1 && errors[0].contains("Bill(id: \(id.key)).tags [\"c\",\"c\","))
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S172: a mirror has the values that an object prints`(_ store: TestStore) async throws {
        try await open(store) { container, bill, shop in
            let children = Array(Mirror(reflecting: bill).children)
            #expect(children.map { $0.label ?? "" } == ["id"] + Bills.texts.map(\.0) + ["shop"])
            #expect(children[0].value as? ObjectKey == bill.id.key)
            #expect(children.last?.value as? String == "Shop(id: \(shop.id.key))")
            for (child, (name, text)) in zip(children.dropFirst(), Bills.texts) {
                switch name {
                case "kind": #expect(child.value as? String == "card")
                case "paid": #expect(child.value as? Date == Bills.date)
                default: #expect(child.value as? String == text)
                }
            }
            var dumped = ""
            dump(bill, to: &dumped)
            #expect(dumped.contains("- amount: \"12.5\"") && dumped.contains("- tags: \"[\\\"a\\\",\\\"b\\\"]\""))
            #expect(!dumped.contains("torage"))
            // The mirrors of live results have ids and keys, so that printing reads no values.
            let results = try Results(FetchRequest<Bill>(), context: container.mainContext)
            #expect(Mirror(reflecting: results).children.map { $0.value as? ObjectID } == [bill.id])
            let prices = try container.collection("prices", of: Decimal.self)
            prices["bread"] = 2.5
            container.mainContext.processPendingChanges()
            let entries = try KeyedResults(prices.all)
            #expect(Mirror(reflecting: entries).children.map { $0.value as? String } == ["bread"])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S172: a row of results prints decimals as numbers and Codable values as JSON`(_ store: TestStore) async throws {
        try await open(store) { container, _, shop in
            let context = container.mainContext
            let request = ValueRequest<Bill>([
                .property(\.amount), .property(\.place), .property(\.tags), .property(\.kind), .property(\.paid),
                .property(\.seal), .property(\.shop, \.rent), .property(\.shop),
            ])
            let rows = try context.fetch(request)
            let row = try #require(rows.first)
            #expect(
                "\(row)" == "(amount: 12.5, place: {\"city\":\"Oslo\",\"seats\":3}, tags: [\"a\",\"b\"], kind: \"card\", "
                    + "paid: 2025-08-27T15:06:40Z, seal: data of 1 bytes, shop.rent: 0.05, shop: id \(shop.id.key))")
            let children = Array(Mirror(reflecting: row).children)
            #expect(children.map { $0.label ?? "" } == ["amount", "place", "tags", "kind", "paid", "seal", "shop.rent", "shop"])
            #expect(children[0].value as? String == "12.5" && children[2].value as? String == "[\"a\",\"b\"]")
            #expect(children[4].value as? Date == Bills.date)
            #expect(children[7].value as? String == "id \(shop.id.key)")
            let greatest = try context.fetch(ValueRequest<Bill>([.max(\.amount)]))
            #expect(greatest.map { "\($0)" } == ["(max(amount): 12.5)"])
        }
    }

    /// Catches: a line of a quarter of a megabyte of ids.
    @Test(arguments: TestStore.allCases)
    func `S172: denied deletions and missing objects name a few objects by their entities`(_ store: TestStore) async throws {
        try await open(store) { container, _, _ in
            let context = container.mainContext
            let account = Bills.Account()
            context.insert(account)
            let entries = (0..<30).map { _ in Bills.Entry(account) }
            for entry in entries { context.insert(entry) }
            try await context.save()
            let text = "Account(id: \(account.id.key)) cannot be deleted: its Account.entries still has Entry(id: "
            func check(_ error: SaveError?) {
                let message = error?.message ?? ""
                #expect(message.hasPrefix(text) && message.contains("), … (30 objects); delete"), "\(message)")
            }
            check(
                await #expect(throws: SaveError.self) {
                    try await container.coordinator.batchDelete(FetchRequest<Bills.Account>())
                })
            context.delete(account)
            check(await #expect(throws: SaveError.self) { try await context.save() })
            context.rollback()
            let lost = try await container.write { context in
                let account = Bills.Account()
                context.insert(account)
                return account.id
            }
            let missing = try #require(context.model(for: lost) as? Bills.Account)
            try await container.write { context in
                let account = try #require(context.model(for: lost) as? Bills.Account)
                context.delete(account)
            }
            entries[0].account = missing
            let error = await #expect(throws: SaveError.self) { try await context.save() }
            let end = "account of Entry(id: \(entries[0].id.key)) leads to Account(id: \(lost.key)), which does not exist"
            #expect(error?.message.contains(end) == true, "\(String(describing: error))")
        }
    }

    @Test func `S172: a predicate prints captured decimals, dates and Codable values as objects do`() {
        let (limit, tip): (Decimal, Decimal?) = (12.5, 0.05)
        let (amounts, kinds): ([Decimal], [Bills.Kind]) = ([1, 2.5], [.cash])
        let (dates, days) = ([Bills.date], Bills.date...Bills.date.addingTimeInterval(86400))
        let more = limit...
        let (place, tags) = (Bills.Place(city: "Oslo", seats: 3), ["a"])
        let other: Bills.Place? = place
        let (placeText, date) = ("{\"city\":\"Oslo\",\"seats\":3}", "2025-08-27T15:06:40Z")
        let predicates: [(Predicate<Bill>, String)] = [
            (#Predicate { $0.amount > limit }, "amount > 12.5"),
            (#Predicate { $0.tip == tip }, "tip == 0.05"),
            (#Predicate { amounts.contains($0.amount) }, "amount is in [1, 2.5]"),
            (#Predicate { more.contains($0.amount) }, "amount is in 12.5..."),
            (#Predicate { kinds.contains($0.kind) }, "kind is in [\"cash\"]"),
            (#Predicate { dates.contains($0.paid) }, "paid is in [\(date)]"),
            (#Predicate { days.contains($0.paid) }, "paid is in \(date)...2025-08-28T15:06:40Z"),
            (#Predicate { $0.place == place }, "place == \(placeText)"),
            (#Predicate { $0.other == other }, "other == \(placeText)"),
            (#Predicate { $0.tags == tags }, "tags == [\"a\"]"),
        ]
        for (predicate, text) in predicates { #expect("\(FetchRequest<Bill>(where: predicate))" == "Bill where \(text)") }
    }

    @Test(arguments: TestStore.allCases)
    func `S172: conflicts and duplicates print decimals as numbers and Codable values as JSON`(_ store: TestStore) async throws {
        try await open(store) { container, bill, shop in
            let id = bill.id
            let contexts = ["here", "there"].map { container.coordinator.newBackgroundContext(name: $0) }
            for (context, amount) in zip(contexts, [1.5, 2.5] as [Decimal]) {
                try await context.perform { context throws in
                    let bill = try #require(context.model(for: id) as? Bill)
                    bill.amount = amount
                    bill.place.seats = amount == 1.5 ? 4 : 5
                    bill.tags.append("c")
                    if amount == 1.5 { bill.shop = nil }
                }
            }
            try await contexts[1].save()
            let conflict = try #require(await #expect(throws: SaveError.self) { try await contexts[0].save() })
            let place = "{\"city\":\"Oslo\",\"seats\":"
            for text in [
                "amount: was 12.5, here 1.5, in the store 2.5", "place: was \(place)3}, here \(place)4}, in the store \(place)5}",
                "tags: was [\"a\",\"b\"], here [\"a\",\"b\",\"c\"], in the store [\"a\",\"b\",\"c\"]",
            ] {
                #expect("\(conflict)".contains(text))
            }
            // Objects print as elsewhere.
            #expect("\(conflict)".contains("shop: was Shop(id: \(shop.id.key)), here nil, in the store Shop(id: \(shop.id.key))"))
            let other = container.coordinator.newBackgroundContext()
            await other.perform { context in context.insert(Shop("Attic", rent: 0.05)) }
            let duplicate = try #require(await #expect(throws: SaveError.self) { try await other.save() })
            #expect("\(duplicate)".contains("Shop.rent must be unique") && "\(duplicate)".contains("have rent: 0.05."))
        }
    }

    /// Catches: dates as seconds, decimals as data of some bytes, and objects as their keys.
    @Test(arguments: TestStore.allCases)
    func `S162, S172: conflicts of an undo print values as objects do`(_ store: TestStore) async throws {
        try await open(store) { container, bill, shop in
            let id = bill.id
            let contexts = ["here", "there"].map { container.coordinator.newBackgroundContext(name: $0) }
            await contexts[0].perform { $0.undoHistory = UndoHistory() }
            for (context, amount) in zip(contexts, [1.5, 2.5] as [Decimal]) {
                try await context.perform { context throws in
                    context.refreshAllObjects()
                    let bill = try #require(context.model(for: id) as? Bill)
                    bill.amount = amount
                    bill.place.seats = amount == 1.5 ? 4 : 5
                    bill.paid = Bills.date.addingTimeInterval(amount == 1.5 ? 60 : 120)
                    let attic = Shop("Attic", rent: 7)
                    if amount == 2.5 { context.insert(attic) }
                    bill.shop = amount == 1.5 ? nil : attic
                }
                try await context.save()
            }
            let error = try await contexts[0].perform { context throws in
                context.refreshAllObjects()
                let history = try #require(context.undoHistory)
                let error = #expect(throws: UndoError.self) { try history.undo() }
                return error
            }
            guard case .conflicts(let conflicts)? = error else { return _ = Issue.record("\(error as Any)") }
            let place = "{\"city\":\"Oslo\",\"seats\":"
            let texts = [
                "amount was changed since: it is 2.5 instead of 1.5, and would become 12.5",
                "place was changed since: it is \(place)5} instead of \(place)4}, and would become \(place)3}",
                "paid was changed since: it is 2025-08-27T15:08:40Z instead of 2025-08-27T15:07:40Z, and would become "
                    + "2025-08-27T15:06:40Z",
                " instead of nil, and would become Shop(id: \(shop.id.key))",
            ]
            #expect(conflicts.count == texts.count)
            for text in texts { #expect(conflicts.contains { $0.description.hasSuffix(text) }, "\(conflicts)") }
        }
    }
}
