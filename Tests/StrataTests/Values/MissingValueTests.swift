import Foundation
import Strata
import Testing

/// Required properties of `Codable` types, and decimals, whose objects have no stored value: they are older than the property, or inserted
/// by name.
@Suite @MainActor struct MissingValueTests {
    nonisolated struct Label: Codable, Equatable { var color: String? }

    @Model final class Crate {
        var name: String
        var tags: [String]
        var label: Label
        var spare: [String]?

        init(name: String, tags: [String], label: Label) {
            self.name = name
            self.tags = tags
            self.label = label
        }
    }

    @Model final class Cart {
        var crate: Crate?

        init(crate: Crate?) { self.crate = crate }
    }

    @Model class Tub {
        var name: String

        init(name: String) { self.name = name }
    }

    @Model final class Vat: Tub {
        var marks: [String]

        init(name: String, marks: [String]) {
            self.marks = marks
            super.init(name: name)
        }
    }

    nonisolated struct Spot: Codable, Equatable {
        var city: String

        static func == (a: Spot, b: Spot) -> Bool { a.city.lowercased() == b.city.lowercased() }
    }

    @Model final class Parcel {
        var name: String
        var tags: [String]
        var marks: [String] = []
        var here = Spot(city: "Rome")
        var home = Spot(city: "ROME")
        var last: Spot?
        var next: Spot?

        init(name: String, tags: [String]) {
            self.name = name
            self.tags = tags
        }
    }

    /// The crates of a later version, whose values may be nil.
    enum Later {
        @Model final class Crate {
            var name: String
            var tags: [String]?
            var label: Label?
            var spare: [String]?

            init(name: String) { self.name = name }
        }
    }

    enum UnpricedJars {
        @Model final class Jar {
            var name: String
            var price: Decimal?

            init(name: String, price: Decimal?) {
                self.name = name
                self.price = price
            }
        }
    }

    enum PricedJars {
        @Model final class Jar {
            var name: String
            var price: Decimal

            init(name: String, price: Decimal) {
                self.name = name
                self.price = price
            }
        }
    }

    enum WeighedJars {
        @Model final class Jar {
            var name: String
            var price: Decimal = 5
            var weight: Decimal

            init(name: String, weight: Decimal) {
                self.name = name
                self.weight = weight
            }
        }
    }

    private struct Row: Decodable {
        var name: String
        var tags: [String]
        var label: Label
        var spare: [String]?
    }

    /// Returns a container with two crates, of which `b` has no values, and a cart for each.
    private func fill(_ description: StoreDescription, isSaved: Bool) async throws -> PersistentContainer {
        let container = try await PersistentContainer(model: Model(Crate.self, Cart.self), store: description)
        let main = container.mainContext
        main.insert(Crate(name: "a", tags: ["x"], label: Label(color: "red")))
        main.insert("Crate")["name"] = "b"
        for crate in try main.fetch(FetchRequest<Crate>(sortBy: [.init(\.name)])) { main.insert(Cart(crate: crate)) }
        if isSaved { try await main.save() }
        return container
    }

    /// Catches: a predicate for which such a property has no value, although it reads as empty.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S138: a predicate reads a required Codable property without a value as the property does`(
        _ store: TestStore, _ isSaved: Bool
    ) async throws {
        try await store.use { description in
            let container = try await fill(description, isSaved: isSaved)
            let main = container.mainContext
            let empty = try #require(try main.fetch(FetchRequest<Crate>(sortBy: [.init(\.name)])).last)
            #expect(empty.tags.isEmpty && empty.label == Label() && empty.spare == nil)
            let (none, tags) = (Label(), [String]())
            let predicates: [Predicate<Crate>] = [
                #Predicate { $0.tags.isEmpty }, #Predicate { $0.tags == tags }, #Predicate { $0.label == none },
                #Predicate { $0.label.color == nil }, #Predicate { !$0.tags.contains("x") },
            ]
            for predicate in predicates {
                #expect(try main.fetch(FetchRequest(where: predicate)).map(\.name) == ["b"], "\(predicate)")
            }
            #expect(try main.count(where: #Predicate<Crate> { $0.spare == nil && ($0.spare?.count ?? 7) == 7 }) == 2)
            #expect(try main.count(where: #Predicate<Cart> { $0.crate?.tags.isEmpty == true }) == 1)
            #expect(try main.count(where: #Predicate<Cart> { ($0.crate?.tags.count ?? 7) == 0 }) == 1)
        }
    }

    /// Catches: a comparison of stored bytes, for which a missing value is not empty and equal values with other bytes differ.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S134, S138: two Codable properties of an object are compared as Swift compares their values`(
        _ store: TestStore, _ isSaved: Bool
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Parcel.self), store: description)
            let main = container.mainContext
            let first = Parcel(name: "a", tags: ["x"])
            (first.last, first.next) = (Spot(city: "Bonn"), Spot(city: "bonn"))
            main.insert(first)
            main.insert("Parcel")["name"] = "b"
            let other = Parcel(name: "c", tags: [])
            (other.home, other.next) = (Spot(city: "Bonn"), Spot(city: "Bonn"))
            main.insert(other)
            if isSaved { try await main.save() }
            let answers: [(Predicate<Parcel>, [String])] = [
                (#Predicate { $0.tags == $0.marks }, ["b", "c"]), (#Predicate { $0.tags != $0.marks }, ["a"]),
                (#Predicate { $0.here == $0.home }, ["a", "b"]), (#Predicate { $0.here != $0.home }, ["c"]),
                (#Predicate { $0.last == $0.next }, ["a", "b"]),
            ]
            for (predicate, names) in answers {
                let found = try main.fetch(FetchRequest(where: predicate, sortBy: [.init(\.name)]))
                #expect(found.map(\.name) == names, "\(predicate)")
            }
        }
    }

    @Test(arguments: TestStore.allCases, [false, true])
    func `S138, S182: a predicate on a property of a subclass reads it as empty, too`(
        _ store: TestStore, _ isSaved: Bool
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Tub.self, Vat.self), store: description)
            let main = container.mainContext
            main.insert(Vat(name: "a", marks: ["x"]))
            main.insert("Vat")["name"] = "b"
            main.insert(Tub(name: "c"))
            if isSaved { try await main.save() }
            #expect(try main.fetch(FetchRequest<Vat>(where: #Predicate { $0.marks.isEmpty })).map(\.name) == ["b"])
            let empty = #Predicate<Tub> { ($0 as? Vat)?.marks.isEmpty == true }
            #expect(try main.fetch(FetchRequest(where: empty)).map(\.name) == ["b"])
        }
    }

    /// Catches: a row that throws, and a value of a row that is nil, for a property that reads as empty.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S133: rows have the empty value of a required Codable property without a value`(
        _ store: TestStore, _ isSaved: Bool
    ) async throws {
        try await store.use { description in
            let container = try await fill(description, isSaved: isSaved)
            let main = container.mainContext
            let request = ValueRequest<Crate>(
                [.property(\.name), .property(\.tags), .property(\.label), .property(\.spare)], sortBy: [.init(.property(\.name))]
            )
            let row = try #require(try main.rows(request, as: Row.self).last)
            #expect(row.name == "b" && row.tags.isEmpty && row.label == Label() && row.spare == nil)
            let values = try #require(try main.fetch(request).last)
            #expect(values.value(\Crate.tags) == [] && values.value(\Crate.label) == Label())
            let tuples = try main.rows(\Crate.name, \.tags, \.label, sortBy: [.init(.property(\.name))])
            #expect(tuples.map(\.1) == [["x"], []] && tuples.map(\.2) == [Label(color: "red"), Label()])
            #expect(try main.rows(EntityValueRequest("Crate", fetching: [.property("tags")]), as: [String].self) == [["x"], []])
        }
    }

    /// Catches: a property that reads nil, although a predicate and a row have the empty value.
    @Test(arguments: [TestStore.lmdb, .sqlite])
    func `S138: a Codable property that becomes optional reads as empty where it had no value`(_ store: TestStore) async throws {
        try await store.use { description in
            let first = try await PersistentContainer(model: Model(Crate.self), store: description)
            first.mainContext.insert(Crate(name: "a", tags: ["x"], label: Label(color: "red")))
            first.mainContext.insert("Crate")["name"] = "b"
            try await first.mainContext.save()
            try await first.close()
            let model = try Model(Later.Crate.self, version: SchemaVersion(2, 0, 0))
            let container = try await PersistentContainer(model: model, store: description)
            let main = container.mainContext
            let crates = try main.fetch(FetchRequest<Later.Crate>(sortBy: [.init(\.name)]))
            #expect(crates.map(\.tags) == [["x"], []] && crates.map(\.label) == [Label(color: "red"), Label()])
            #expect(crates.allSatisfy { $0.spare == nil })
            #expect(try main.count(where: #Predicate<Later.Crate> { $0.tags == nil || $0.label == nil }) == 0)
            #expect(try main.count(where: #Predicate<Later.Crate> { ($0.tags?.count ?? 7) == 0 }) == 1)
        }
    }

    /// Catches: a nil that becomes zero unasked, although an integer or a string is refused.
    @Test(arguments: [TestStore.lmdb, .sqlite])
    func `S163: a decimal that becomes required needs a default, and a new required one begins with zero`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let first = try await PersistentContainer(model: Model(UnpricedJars.Jar.self), store: description)
            first.mainContext.insert(UnpricedJars.Jar(name: "a", price: 2))
            first.mainContext.insert(UnpricedJars.Jar(name: "b", price: nil))
            try await first.mainContext.save()
            try await first.close()
            let required = try Model(PricedJars.Jar.self, version: SchemaVersion(2, 0, 0))
            let error = await #expect(throws: StoreError.self) {
                _ = try await PersistentContainer(model: required, store: description)
            }
            let reason = "Jar.price was optional and is required, but has no default"
            #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
            let model = try Model(WeighedJars.Jar.self, version: SchemaVersion(2, 0, 0))
            let container = try await PersistentContainer(model: model, store: description)
            let main = container.mainContext
            main.insert("Jar")["name"] = "c"
            try await main.save()
            let zero = Decimal(0)
            let jars = try main.fetch(
                FetchRequest<WeighedJars.Jar>(where: #Predicate { $0.weight == zero }, sortBy: [.init(\.name)]))
            #expect(jars.map(\.price) == [2, 5, 5] && jars.map(\.weight) == [0, 0, 0])
            try await container.close()
            // Required decimals of a file need no default.
            #expect(try await model.changes(opening: description).isEmpty)
        }
    }
}
