import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// Descriptions become entities with numbers, columns and relations.
@Suite struct ModelTests {
    private static func text(_ name: String) -> PropertyDescription {
        .attribute(AttributeDescription(name: name, type: .string))
    }

    private static func relation(
        _ name: String, _ destination: String, _ cardinality: Cardinality, inverse: String? = nil
    ) -> PropertyDescription {
        .relationship(
            RelationshipDescription(name: name, destination: destination, inverse: inverse, cardinality: cardinality))
    }

    @Test func columnsAndRelationshipsAreNumberedInTheOrderOfDeclaration() throws {
        let model = try Model([
            EntityDescription(
                name: "Track",
                properties: [
                    Self.text("title"), Self.relation("tags", "Tag", .toMany),
                    Self.relation("artist", "Artist", .toOne, inverse: "tracks"),
                    .attribute(AttributeDescription(name: "plays", type: .int32, index: .indexed, defaultValue: .int(7))),
                ]),
            EntityDescription(name: "Artist", properties: [Self.relation("tracks", "Track", .toMany), Self.text("name")]),
            EntityDescription(name: "Tag", properties: [Self.text("name")]),
        ])
        let track = try #require(model.entity(named: "Track"))
        #expect(track.columns.map(\.name) == ["title", "artist", "plays"])
        #expect(track.column(named: "artist") == 1)
        #expect(track.columns[1].type == .reference)
        #expect(track.columns[1].index == .indexed)
        #expect(track.columns[1].destination == 1)
        #expect(track.columns[1].isOptional)
        #expect(track.defaults == [.string(""), .null, .int(7)])
        #expect(track.attribute(named: "plays")?.column == 2)
        #expect(track.attribute(named: "artist") == nil)
        #expect(track.relationships.map(\.name) == ["tags", "artist"])
        #expect(track.relationships.map(\.number) == [0, 1])
        #expect(track.relationships[1].kind == .toOne(column: 1))
        #expect(model.storeSchema.entities.map(\.name) == ["Track", "Artist", "Tag"])
        #expect(model.storeSchema.entities[0].columns == track.columns)
        #expect(model.entity(named: "Nobody") == nil)
    }

    @Test func anInverseNamedOnOneSideIsKnownOnBoth() throws {
        for namedByMany in [false, true] {
            let model = try Model([
                EntityDescription(
                    name: "Artist",
                    properties: [Self.relation("tracks", "Track", .toMany, inverse: namedByMany ? "artist" : nil)]),
                EntityDescription(
                    name: "Track",
                    properties: [
                        Self.text("title"), Self.relation("artist", "Artist", .toOne, inverse: namedByMany ? nil : "tracks"),
                    ]),
            ])
            #expect(model.entities[0].relationships[0].inverse == 0)
            #expect(model.entities[1].relationships[0].inverse == 0)
            #expect(model.entities[0].relationships[0].kind == .toMany(.referrers(entity: 1, column: 1)))
            #expect(model.storeSchema.links.isEmpty)
        }
    }

    @Test func bothEndsOfAManyToManyShareALinkAndTheFirstDeclaredIsItsSource() throws {
        let model = try Model([
            EntityDescription(name: "Track", properties: [Self.relation("tags", "Tag", .toMany)]),
            EntityDescription(name: "Tag", properties: [Self.relation("tracks", "Track", .toMany, inverse: "tags")]),
        ])
        #expect(model.storeSchema.withoutHints.links == [LinkSchema(name: "Track.tags", source: 0, destination: 1)])
        #expect(model.entities[0].relationships[0].kind == .toMany(.link(0, .forward, destination: 1)))
        #expect(model.entities[1].relationships[0].kind == .toMany(.link(0, .backward, destination: 0)))
    }

    @Test func aToManyWithoutInverseHasALinkOfItsOwn() throws {
        let model = try Model([
            EntityDescription(
                name: "List", properties: [Self.relation("first", "Item", .toMany), Self.relation("second", "Item", .toMany)]),
            EntityDescription(name: "Item", properties: [Self.text("name")]),
        ])
        #expect(model.storeSchema.links.map(\.name) == ["List.first", "List.second"])
        #expect(model.entities[0].relationships.allSatisfy { $0.inverse == nil })
    }

    @Test func anEntityCanRelateToItself() throws {
        let model = try Model([
            EntityDescription(
                name: "Employee",
                properties: [
                    Self.relation("manager", "Employee", .toOne, inverse: "reports"),
                    Self.relation("reports", "Employee", .toMany),
                    Self.relation("follows", "Employee", .toMany, inverse: "followers"),
                    Self.relation("followers", "Employee", .toMany),
                    Self.relation("partner", "Employee", .toOne, inverse: "partner"),
                ])
        ])
        let relationships = model.entities[0].relationships
        #expect(relationships.map(\.inverse) == [1, 0, 3, 2, 4])
        #expect(relationships[1].kind == .toMany(.referrers(entity: 0, column: 0)))
        #expect(relationships[2].kind == .toMany(.link(0, .forward, destination: 0)))
        #expect(relationships[3].kind == .toMany(.link(0, .backward, destination: 0)))
        #expect(relationships[4].kind == .toOne(column: 1))
    }

    @Test func eachSideOfAOneToOneHasItsOwnColumn() throws {
        let model = try Model([
            EntityDescription(name: "Person", properties: [Self.relation("passport", "Passport", .toOne, inverse: "owner")]),
            EntityDescription(name: "Passport", properties: [Self.text("number"), Self.relation("owner", "Person", .toOne)]),
        ])
        #expect(model.entities[0].relationships[0].kind == .toOne(column: 0))
        #expect(model.entities[1].relationships[0].kind == .toOne(column: 1))
        #expect(model.entities.map { $0.relationships[0].inverse } == [0, 0])
    }

    @Test func anAttributeWithoutDefaultStartsAsZeroEmptyOrNull() throws {
        let properties = ColumnType.allCases.filter { $0 != .reference }.map {
            PropertyDescription.attribute(AttributeDescription(name: "a\($0.rawValue)", type: $0))
        }
        let optional = PropertyDescription.attribute(AttributeDescription(name: "none", type: .int8, isOptional: true))
        let entity = try Model([EntityDescription(name: "All", properties: properties + [optional])]).entities[0]
        for (column, value) in zip(entity.columns, entity.defaults) { #expect(value.isNull == column.isOptional) }
        #expect(entity.defaults[entity.column(named: "auint64") ?? 0] == .uint(0))
        #expect(entity.defaults[entity.column(named: "adate") ?? 0] == .double(0))
    }
}
