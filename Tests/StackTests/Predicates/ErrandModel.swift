import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Models with a property of each kind that predicates meet. Their objects hold random values.
final class Errand: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var title: String { managedObject.get(0) }
    var note: String? { managedObject.get(1) }
    var days: Int { managedObject.get(2) }
    var weight: Int { managedObject.get(3) }
    var price: Double { managedObject.get(4) }
    var isDone: Bool { managedObject.get(5) }
    var kind: ErrandKind { managedObject.get(6) }
    var priority: ErrandPriority? { managedObject.get(7) }
    var place: ErrandPlace { managedObject.get(8) }
    var code: String? { managedObject.get(9) }
    var due: Date { managedObject.get(10) }
    var link: URL? { managedObject.get(11) }
    var owner: Person? { managedObject.toOne(0, 12) }
    /// A computed property, which is not stored.
    var shoutedTitle: String { title + "!" }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Errand",
        properties: [
            .attribute(AttributeDescription("title", of: \Errand.title, index: .indexed)),
            .attribute(AttributeDescription("note", of: \Errand.note)),
            .attribute(AttributeDescription("days", of: \Errand.days, index: .indexed)),
            .attribute(AttributeDescription("weight", of: \Errand.weight)),
            .attribute(AttributeDescription("price", of: \Errand.price)),
            .attribute(AttributeDescription("isDone", of: \Errand.isDone)),
            .attribute(AttributeDescription("kind", of: \Errand.kind, default: .call)),
            .attribute(AttributeDescription("priority", of: \Errand.priority)),
            .attribute(AttributeDescription("place", of: \Errand.place, default: ErrandPlace())),
            .attribute(AttributeDescription("code", of: \Errand.code, index: .unique)),
            .attribute(AttributeDescription("due", of: \Errand.due)),
            .attribute(AttributeDescription("link", of: \Errand.link)),
            .relationship(
                RelationshipDescription(name: "owner", destination: "Person", inverse: "errands", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Errand.title: "title", \Errand.note: "note", \Errand.days: "days", \Errand.weight: "weight", \Errand.price: "price",
        \Errand.isDone: "isDone", \Errand.kind: "kind", \Errand.priority: "priority", \Errand.place: "place",
        \Errand.code: "code", \Errand.due: "due", \Errand.link: "link", \Errand.owner: "owner",
    ]
}

final class Person: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var name: String { managedObject.get(0) }
    var age: Int? { managedObject.get(1) }
    var errands: [Errand] { managedObject.toMany(0) }
    var boss: Person? { managedObject.toOne(1, 2) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Person",
        properties: [
            .attribute(AttributeDescription("name", of: \Person.name)),
            .attribute(AttributeDescription("age", of: \Person.age)),
            .relationship(
                RelationshipDescription(name: "errands", destination: "Errand", inverse: "owner", cardinality: .toMany)),
            .relationship(RelationshipDescription(name: "boss", destination: "Person", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Person.name: "name", \Person.age: "age", \Person.errands: "errands", \Person.boss: "boss",
    ]
}

/// Ordered by effort: a call is the least, and shopping the most. The order of the raw values differs.
enum ErrandKind: String, AttributeValue, CaseIterable, Codable, Comparable, Sendable {
    case call, shop, write

    private var effort: Int { [.call, .write, .shop].firstIndex(of: self) ?? 0 }

    static func < (a: Self, b: Self) -> Bool { a.effort < b.effort }
}

enum ErrandPriority: Int, AttributeValue, Codable, Comparable, Sendable {
    case low = 1, high = 5

    static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

struct ErrandPlace: CodableAttribute, Sendable {
    var city = ""
    var names: [String] = []
    var scores: [String: Int] = [:]
}

/// A filter as an app captures it.
struct ErrandFilter: Codable, Sendable {
    var kind = ErrandKind.shop
    var names = ["a", "B"]
    var text = ""
}

enum Errands {
    static let model: Model = {
        do { return try Model([Errand.self, Person.self]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    static let words = ["", "a", "Ab", "abba", "B", "é", "É10", "é9", "e", "x 10", "x 9"]

    /// Deletes all objects of entities in the store.
    static func deleteAll(_ context: BackgroundContext, of entities: [String] = ["Errand", "Person"]) async throws {
        try await context.perform { context throws in
            for entity in entities {
                for object in try context.fetch(EntityFetchRequest(entity)) { context.delete(object) }
            }
        }
        try await context.save(through: .store)
    }

    /// Inserts, changes and deletes objects at random.
    static func change(_ context: ManagedObjectContext, steps: Int, _ random: inout SeededGenerator) throws {
        for _ in 0..<steps {
            let people = try context.fetch(EntityFetchRequest("Person"))
            let errands = try context.fetch(EntityFetchRequest("Errand"))
            switch random.below(10) {
            case 0 where people.count < 8, 1 where people.isEmpty: fill(context.insert("Person"), people, &random)
            case 2: if let person = people.randomElement(using: &random) { fill(person, people, &random) }
            case 3 where people.count > 3: if let person = people.randomElement(using: &random) { context.delete(person) }
            case 4 where errands.count > 20: if let errand = errands.randomElement(using: &random) { context.delete(errand) }
            case 5, 6:
                if let errand = errands.randomElement(using: &random) { fill(errand: errand, people, &random) }
            default: fill(errand: context.insert("Errand"), people, &random)
            }
        }
    }

    private static func fill(_ person: ManagedObject, _ people: [ManagedObject], _ random: inout SeededGenerator) {
        person["name"] = .string(word(&random))
        person["age"] = random.chance(30) ? .null : .int(Int64(random.below(9)))
        person.setRelatedObject("boss", to: random.chance(50) ? people.randomElement(using: &random) : nil)
    }

    private static func fill(errand: ManagedObject, _ people: [ManagedObject], _ random: inout SeededGenerator) {
        errand["title"] = .string(word(&random))
        errand["note"] = random.chance(40) ? .null : .string(word(&random))
        errand["days"] = .int(Int64(random.below(9)))
        errand["weight"] = .int(Int64(random.below(9)))
        errand["price"] = .double(Double(random.below(20)) / 4)
        errand["isDone"] = .bool(random.chance(50))
        errand["kind"] = ErrandKind.allCases.randomElement(using: &random)?.storeValue ?? .null
        errand["priority"] = random.chance(40) ? .null : .int(random.chance(50) ? 1 : 5)
        var place = ErrandPlace(city: word(&random))
        for _ in 0..<random.below(3) {
            place.names.append(word(&random))
            place.scores[word(&random)] = random.below(4)
        }
        errand["place"] = place.storeValue
        errand["link"] = place.names.isEmpty ? .null : .string("https://example.org/\(place.names.count)")
        errand["due"] = Date(timeIntervalSinceReferenceDate: Double(random.below(9))).storeValue
        errand.setRelatedObject("owner", to: random.chance(75) ? people.randomElement(using: &random) : nil)
    }

    private static func word(_ random: inout SeededGenerator) -> String { words.randomElement(using: &random) ?? "" }
}
