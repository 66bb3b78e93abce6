import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Rows as `Decodable` types and tuples.
@Suite struct RowTests {
    private enum Kind: String, Decodable { case call, shop, write }

    private struct Row: Decodable {
        var title: String
        var note: String?
        var days: Int16
        var price: Float
        var isDone: Bool
        var kind: Kind
        var place: ErrandPlace
        var due: Date
        var owner: ObjectID?
        var boss: String?
        var missing: Int?
    }

    @Test(arguments: StoreKind.allCases)
    func `S133: rows decode as their objects read, in roots, children and snapshots`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let random = SeededGenerator()
        let root = await container.newBackgroundContext()
        try await root.perform { context throws in
            var random = random
            try Errands.change(context, steps: 60, &random)
        }
        try await root.save()
        let snapshot = try container.coordinator.snapshot()
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            var random = SeededGenerator(seed: random.seed &+ 1)
            try Errands.change(context, steps: 30, &random)
            try Self.compare(context)
        }
        try await root.perform { try Self.compare($0) }
        try await container.coordinator.newBackgroundContext(reading: snapshot).perform { try Self.compare($0) }
    }

    private static func compare(_ context: ManagedObjectContext) throws {
        let request = ValueRequest<Errand>(
            [
                .property(\.title), .property(\.note), .property(\.days), .property(\.price), .property(\.isDone),
                .property(\.kind),
                .property(\.place), .property(\.due), .property(\.owner), .property(\.owner, \.name).named("boss"),
            ])
        let rows = try context.rows(request, as: Row.self)
        let errands = try context.fetch(FetchRequest<Errand>())
        #expect(rows.count == errands.count && !rows.isEmpty)
        for (row, errand) in zip(rows, errands) {
            #expect(row.title == errand.title && row.note == errand.note && Int(row.days) == errand.days)
            #expect(Double(row.price) == errand.price && row.isDone == errand.isDone && row.kind.rawValue == errand.kind.rawValue)
            #expect(row.place.names == errand.place.names && row.due == errand.due && row.owner == errand.owner?.id)
            #expect(row.boss == errand.owner?.name && row.missing == nil)
        }
        let tuples = try context.rows(
            \Errand.days, \.note, \.title, where: #Predicate { $0.days > 3 }, sortBy: [.init(.property(\.days), .descending)],
            limit: 5)
        let sorted = try context.fetch(
            FetchRequest<Errand>(where: #Predicate { $0.days > 3 }, sortBy: [.init(\.days, .descending)], limit: 5))
        #expect(
            tuples.map(\.0) == sorted.map(\.days) && tuples.map(\.1) == sorted.map(\.note)
                && tuples.map(\.2) == sorted.map(\.title))
        let groups = try context.rows(
            ValueRequest<Errand>([.property(\.kind), .count, .max(\.days)], groupBy: [.property(\.kind)]),
            as: (ErrandKind, Int, Int?).self)
        #expect(groups.reduce(0) { $0 + $1.1 } == errands.count)
        #expect(groups.allSatisfy { group in group.2 == errands.filter { $0.kind == group.0 }.map(\.days).max() })
        #expect(try context.rows(EntityValueRequest("Errand", fetching: [.count]), as: Int.self) == [errands.count])
    }

    @Test func `S133: a row that does not fit is an error that names the column`() async throws {
        struct Wrong: Decodable { var title: Int }
        struct Absent: Decodable { var titel: String }
        struct NotNil: Decodable { var note: String }
        struct Kinds: Decodable { var title: Kind }
        let container = try await TestBed(.memory).container(model: Errands.model)
        try await container.makeBackgroundContext().perform { context throws in
            context.insert("Errand")["title"] = "x"
            func message<T: Decodable>(_ type: T.Type) -> String {
                let request = EntityValueRequest("Errand", fetching: [.property("title"), .property("note")])
                do { return "\(try context.rows(request, as: type))" } catch { return "\(error)" }
            }
            let remedy =
                " Name the request's columns after the properties of the type, and give these the types of the attributes."
            #expect(
                message(Wrong.self) == "cannot decode a row as Wrong: the column title: it is \"x\", and not of type Int."
                    + remedy)
            #expect(
                message(Absent.self)
                    == "cannot decode a row as Absent: the column titel: the request has no column of that name." + remedy)
            #expect(
                message(NotNil.self).hasPrefix(
                    "cannot decode a row as NotNil: the column note: it is nil. Make the property optional."))
            #expect(message(Kinds.self).hasPrefix("cannot decode a row as Kinds: "))
            #expect(!message(Kinds.self).contains("0x") && !message([String].self).contains("0x"))
            #expect(throws: FetchError.self) {
                try context.rows(ValueRequest<Errand>([.property(\.title)]), as: (String, Int).self)
            }
        }
    }

    /// Catches: a tuple that takes no ids, although the columns of relationships have them.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S133: tuples take ids, before and after a save`(_ kind: StoreKind, _ isSaved: Bool) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let person = context.insert("Person")
            for title in ["a", "b", "c"] {
                let errand = context.insert("Errand")
                errand["title"] = .string(title)
                if title != "c" { errand.setRelatedObject("owner", to: person) }
            }
        }
        if isSaved { try await worker.save() }
        try await worker.perform { context throws in
            let owner = try #require(try context.fetch(EntityFetchRequest("Person")).first).objectID
            let request = ValueRequest<Errand>([.property(\.owner), .count], groupBy: [.property(\.owner)])
            let groups = try context.rows(request, as: (ObjectID?, Int).self)
            let owned = groups.filter { $0.0 == owner }
            let free = groups.filter { $0.0 == nil }
            #expect(groups.count == 2 && owned.map(\.1) == [2] && free.map(\.1) == [1])
            let pairs = ValueRequest<Errand>(
                [.property(\.owner), .property(\.title)], where: #Predicate { $0.title != "c" },
                sortBy: [.init(.property(\.title))])
            let rows = try context.rows(pairs, as: (ObjectID, String).self)
            #expect(rows.map(\.0) == [owner, owner] && rows.map(\.1) == ["a", "b"])
            let all = ValueRequest<Errand>([.property(\.owner), .property(\.title)])
            #expect(throws: FetchError.self) { try context.rows(all, as: (ObjectID, String).self) }
            #expect(throws: FetchError.self) { try context.rows(pairs, as: (ObjectID, ObjectID).self) }
        }
    }

    /// Catches: a value that its type encodes otherwise than a column stores it, and that is not read from a row with one column.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S133: rows with one column decode as the type of an attribute or as ids`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let sample = EntityDescription(
            name: "Sample",
            properties: [
                .attribute(.init(name: "uuid", type: .uuid)), .attribute(.init(name: "price", type: .data)),
                .attribute(.init(name: "bytes", type: .data)), .attribute(.init(name: "link", type: .string)),
                .relationship(.init(name: "other", destination: "Sample", cardinality: .toOne)),
            ])
        let container = try await bed.container(model: Model([sample]))
        let worker = await container.newBackgroundContext()
        let (uuid, price, bytes) = (UUID(), Decimal(125) / 10, Data([1, 2]))
        let link = try #require(URL(string: "https://example.com/a"))
        await worker.perform { context in
            let object = context.insert("Sample")
            object["uuid"] = .uuid(uuid)
            object["price"] = price.storeValue
            object["bytes"] = .data(bytes)
            object["link"] = link.storeValue
            object.setRelatedObject("other", to: object)
        }
        if isSaved { try await worker.save() }
        try await worker.perform { context throws in
            func values<T: Decodable>(_ name: String, _ type: T.Type) throws -> [T] {
                try context.rows(EntityValueRequest("Sample", fetching: [.property(name)]), as: type)
            }
            let id = try #require(try context.fetch(EntityFetchRequest("Sample")).first).objectID
            #expect(try values("uuid", UUID.self) == [uuid])
            #expect(try values("price", Decimal.self) == [price])
            #expect(try values("bytes", Data.self) == [bytes])
            #expect(try values("link", URL.self) == [link])
            #expect(try values("other", ObjectID.self) == [id])
            #expect(throws: FetchError.self) { try values("link", UUID.self) }
            #expect(throws: FetchError.self) { try values("uuid", URL.self) }
            #expect(throws: FetchError.self) { try values("uuid", Data.self) }
            #expect(throws: FetchError.self) { try values("link", Decimal.self) }
            #expect(throws: FetchError.self) { try values("bytes", ObjectID.self) }
        }
    }
}
