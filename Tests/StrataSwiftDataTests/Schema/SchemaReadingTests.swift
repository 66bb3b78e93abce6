import StrataSwiftData
import Testing

/// A hierarchy without relationships, so that nothing but the subclass leads to the superclass.
@Model class Vessel {
    var name: String
    init(name: String) { self.name = name }
}

@Model class Ferry: Vessel {
    var seats: Int
    init(name: String, seats: Int) {
        self.seats = seats
        super.init(name: name)
    }
}

/// The parts of a schema that programs read, beyond the names and types of properties.
@Suite struct SchemaReadingTests {
    @Test func `entities lead to those of superclasses and subclasses`() throws {
        let schema = Schema([PaidJourney.self, Leg.self])
        let journey = try #require(schema.entity(for: Journey.self))
        let paid = try #require(schema.entity(for: PaidJourney.self))
        #expect(paid.superentityName == "Journey" && paid.superentity == journey)
        #expect(journey.superentityName == nil && journey.superentity == nil)
        #expect(journey.subentities == [paid] && paid.subentities.isEmpty)
        #expect(paid.storedProperties.map { $0.name } == ["price", "tags"])
        #expect(paid.inheritedProperties.map { $0.name } == ["legs", "name"])
        #expect(paid.inheritedPropertiesByName["name"]?.isAttribute == true && journey.inheritedPropertiesByName.isEmpty)
    }

    @Test func `a superclass is found if the schema lists only the subclass`() throws {
        let schema = Schema([Ferry.self])
        let ferry = try #require(schema.entity(for: Ferry.self))
        #expect(schema.entities.map(\.name) == ["Ferry"])
        #expect(ferry.superentity?.name == "Vessel" && ferry.inheritedProperties.map { $0.name } == ["name"])
        #expect(ferry.superentity?.subentities == [ferry])
    }

    @Test func `attributes have the initial values of their properties`() throws {
        let comic = try #require(Schema([Comic.self]).entity(for: Comic.self))
        #expect(comic.attributesByName["pages"]?.defaultValue as? Int == 0)
        #expect(comic.attributesByName["price"]?.defaultValue as? Decimal == 0)
        #expect(comic.attributesByName["mood"]?.defaultValue as? Mood == .calm)
        #expect(comic.attributesByName["words"]?.defaultValue as? [String] == [])
        let title = try #require(comic.attributesByName["title"])
        #expect(title.defaultValue == nil && title.hashModifier == nil && !title.isTransformable)
        let trip = try #require(Schema([Trip.self]).entity(for: Trip.self))
        #expect(trip.attributesByName["start"]?.defaultValue is Date)
    }

    @Test func `relationships have key paths of both ends`() throws {
        let schema = Schema([Comic.self])
        let labels = try #require(schema.entity(for: Comic.self)?.relationshipsByName["labels"])
        #expect(labels.keypath == (\Comic.labels as AnyKeyPath))
        #expect(labels.inverseKeyPath == (\Label.comics as AnyKeyPath))
        #expect(labels.options.isEmpty && labels.hashModifier == nil)
        let comic = try #require(schema.entity(for: Remark.self)?.relationshipsByName["comic"])
        #expect(comic.inverseKeyPath == (\Comic.notes as AnyKeyPath), "an inferred inverse")
        let journey = try #require(Schema([Leg.self]).entity(for: Leg.self)?.relationshipsByName["journey"])
        #expect(journey.inverseKeyPath == (\Journey.legs as AnyKeyPath))
    }

    @Test func `errors are equal to errors of their own kind only`() {
        let kinds: [SwiftDataError] = [
            .includePendingChangesWithBatchSize, .sortingPendingChangesWithIdentifiers, .configurationFileNameTooLong,
            .invalidTransactionFetchRequest, .unknownDataStoreSchema, .unknownSchema,
        ]
        #expect(Set(kinds).count == kinds.count && Set(kinds.map(\.description)).count == kinds.count)
        #expect(kinds.allSatisfy { kind in kinds.filter { $0 ~= kind }.count == 1 })
    }

    /// Catches: equal schemas that a set keeps both, because only the listed classes are hashed.
    @Test func `S180: equal schemas hash equally if one of them leaves out a superclass`() {
        let (short, long) = (Schema([Ferry.self]), Schema([Vessel.self, Ferry.self]))
        #expect(short == long && short.hashValue == long.hashValue)
        #expect(Set([short, long]).count == 1)
    }
}
