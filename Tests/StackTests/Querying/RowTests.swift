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
}
