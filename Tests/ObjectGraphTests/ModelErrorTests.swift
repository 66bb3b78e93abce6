import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// Descriptions that do not fit together are refused when the model is created. The error names entity and property.
@Suite struct ModelErrorTests {
    private func text(_ name: String) -> PropertyDescription {
        .attribute(AttributeDescription(name: name, type: .string))
    }

    private func relation(
        _ name: String, _ destination: String, _ cardinality: Cardinality, inverse: String? = nil
    ) -> PropertyDescription {
        .relationship(
            RelationshipDescription(name: name, destination: destination, inverse: inverse, cardinality: cardinality))
    }

    private func expect(
        _ reason: ModelError.Reason, _ entity: String, _ property: String? = nil, _ entities: EntityDescription...,
        at location: SourceLocation = #_sourceLocation
    ) {
        do throws(ModelError) {
            _ = try Model(entities)
            Issue.record("no error; expected \(reason)", sourceLocation: location)
        } catch {
            #expect(error.reason == reason, sourceLocation: location)
            #expect(error.entity == entity, sourceLocation: location)
            #expect(error.property == property, sourceLocation: location)
            #expect(error.description.hasPrefix(entity.isEmpty ? "the model" : entity), sourceLocation: location)
            #expect(!error.description.contains("\n"), sourceLocation: location)
        }
    }

    @Test func namesAreChecked() {
        expect(.noEntities, "")
        expect(.emptyName, "", nil, EntityDescription(name: "", properties: []))
        expect(.emptyName, "A", nil, EntityDescription(name: "A", properties: [text("")]))
        expect(.duplicateProperty, "A", "B", EntityDescription(name: "A", properties: [text("b"), text("B")]))
        expect(
            .duplicateEntity, "a", nil, EntityDescription(name: "A", properties: [text("b")]),
            EntityDescription(name: "a", properties: [text("b")]))
    }

    @Test func anEntityHasAtMost128Columns() throws {
        let most = (0..<128).map { text("p\($0)") }
        _ = try Model([EntityDescription(name: "A", properties: most + [relation("others", "A", .toMany)])])
        expect(.tooManyColumns, "A", nil, EntityDescription(name: "A", properties: most + [text("one more")]))
    }

    @Test func destinationsAndInversesMustExist() {
        expect(.noSuchDestination, "A", "b", EntityDescription(name: "A", properties: [relation("b", "B", .toOne)]))
        expect(
            .noSuchInverse, "A", "b", EntityDescription(name: "A", properties: [relation("b", "B", .toOne, inverse: "a")]),
            EntityDescription(name: "B", properties: [text("a")]))
    }

    @Test func anInverseMustLeadBack() {
        // An inverse of another entity.
        expect(
            .inverseDoesNotPointBack, "A", "b",
            EntityDescription(name: "A", properties: [relation("b", "B", .toOne, inverse: "c")]),
            EntityDescription(name: "B", properties: [relation("c", "C", .toMany)]),
            EntityDescription(name: "C", properties: [text("name")]))
        // An inverse of the right entity, which has another inverse.
        expect(
            .inverseDoesNotPointBack, "A", "b",
            EntityDescription(
                name: "A", properties: [relation("b", "B", .toOne, inverse: "all"), relation("c", "B", .toOne)]),
            EntityDescription(name: "B", properties: [relation("all", "A", .toMany, inverse: "c")]))
        // Two relationships with the same inverse.
        expect(
            .inverseDoesNotPointBack, "A", "c",
            EntityDescription(
                name: "A",
                properties: [relation("b", "B", .toOne, inverse: "all"), relation("c", "B", .toOne, inverse: "all")]),
            EntityDescription(name: "B", properties: [relation("all", "A", .toMany)]))
        // One-to-many, with itself as inverse.
        expect(
            .inverseDoesNotPointBack, "A", "friends",
            EntityDescription(name: "A", properties: [relation("friends", "A", .toMany, inverse: "friends")]))
    }

    /// Catches: a relationship that leads to objects of another class than its destination.
    @Test(arguments: [true, false])
    func `no destination inherits the inverse, because objects beside it have it too (S183)`(isNamedThere: Bool) throws {
        func descriptions(destination: String) -> [EntityDescription] {
            [
                EntityDescription(
                    name: "Trip", properties: [relation("guest", "Guest", .toOne, inverse: isNamedThere ? "stays" : nil)]),
                EntityDescription(name: "Stay", properties: [text("room")], superentity: "Trip"),
                EntityDescription(
                    name: "Guest", properties: [relation("stays", destination, .toMany, inverse: isNamedThere ? nil : "guest")]),
            ]
        }
        let error = #expect(throws: ModelError.self) { try Model(descriptions(destination: "Stay")) }
        #expect(
            error?.description
                == "Guest.stays: the inverse does not lead back; Trip.guest also belongs to objects that are no Stay; declare "
                + "guest in Stay, or make stays lead to Trip")
        _ = try Model(descriptions(destination: "Trip"))
    }

    @Test func aDefaultMustFitItsColumn() {
        let wrong: [(ColumnType, Value)] = [
            (.int8, .int(128)), (.uint16, .int(-1)), (.uint64, .int(1)), (.int64, .uint(1)), (.string, .int(1)),
            (.bool, .int(1)), (.double, .int(1)), (.date, .string("today")), (.data, .string("")), (.uuid, .string("")),
        ]
        for (type, value) in wrong {
            let attribute = AttributeDescription(name: "b", type: type, defaultValue: value)
            expect(.wrongDefault, "A", "b", EntityDescription(name: "A", properties: [.attribute(attribute)]))
        }
    }

    private func ordered(_ name: String, _ destination: String, _ cardinality: Cardinality, inverse: String? = nil)
        -> PropertyDescription
    {
        .relationship(
            RelationshipDescription(
                name: name, destination: destination, inverse: inverse, cardinality: cardinality, isOrdered: true))
    }

    /// Catches: two relationships that share one set of pairs.
    @Test func `names with dots make no two relationships one`() throws {
        let (a, b) = (
            EntityDescription(name: "A", properties: [relation("b.c", "A.b", .toMany)]),
            EntityDescription(name: "A.b", properties: [relation("c", "A", .toMany)])
        )
        expect(.duplicateProperty, "A.b", "c", a, b)
        let other = EntityDescription(name: "A.b", properties: [relation("d", "A", .toMany)])
        #expect(try Model([a, other]).storeSchema.links.map(\.name) == ["A.b.c", "A.b.d"])
    }

    @Test func `S046: only a relationship to many objects can be ordered`() {
        expect(
            .cannotBeOrdered, "A", "b", EntityDescription(name: "A", properties: [ordered("b", "B", .toOne)]),
            EntityDescription(name: "B", properties: [relation("a", "A", .toMany, inverse: "b")]))
        expect(
            .reservedName, "A", "position in b",
            EntityDescription(name: "A", properties: [relation("b", "B", .toOne), text("position in b")]),
            EntityDescription(name: "B", properties: [ordered("all", "A", .toMany, inverse: "b")]))
    }

    @Test func `S046: positions of pairs are in hidden entities after those of the model`() throws {
        let (a, b) = (
            EntityDescription(name: "A", properties: [ordered("b", "B", .toMany)]),
            EntityDescription(name: "B", properties: [ordered("a", "A", .toMany, inverse: "b"), ordered("more", "A", .toMany)])
        )
        let model = try Model([a, b])
        #expect(model.entities.map(\.name) == ["A", "B"] && model.entities[0].relationships[0].isOrdered)
        #expect(model.storeSchema.entities.map(\.name) == ["A", "B", "order of A.b", "order of B.a", "order of B.more"])
        #expect(model.storeSchema.entities[3].columns.map(\.destination) == [1, 0, nil])
        expect(
            .reservedName, "order of A.b", nil, a, b,
            EntityDescription(name: "order of A.b", properties: [text("name")]))
        let plain = try Model([
            EntityDescription(name: "A", properties: [relation("b", "B", .toMany)]),
            EntityDescription(name: "B", properties: [relation("a", "A", .toMany, inverse: "b")]),
        ])
        #expect(plain.storeSchema.entities.count == 2)
        #expect(try Model(stored: model.storeSchema).storeSchema.withoutHints == model.storeSchema.withoutHints)
    }

    @Test func `S046: positions are columns after those of the properties`() throws {
        let most = (0..<127).map { text("p\($0)") }
        let list = EntityDescription(name: "B", properties: [ordered("all", "A", .toMany, inverse: "b")])
        expect(
            .tooManyColumns, "A", nil, EntityDescription(name: "A", properties: [relation("b", "B", .toOne)] + most), list)
        let few = EntityDescription(name: "A", properties: [relation("b", "B", .toOne), text("name")])
        let model = try Model([few, list])
        #expect(model.storeSchema.entities[0].columns.map(\.name) == ["b", "name", "position in b"])
        #expect(try Model(stored: model.storeSchema).storeSchema.withoutHints == model.storeSchema.withoutHints)
        #expect(model.entities[0].attributes.map(\.name) == ["name"])
        #expect(model.entities[1].relationships[0].isOrdered && !model.entities[0].relationships[0].isOrdered)
        let recursive = try Model([
            EntityDescription(
                name: "A", properties: [ordered("children", "A", .toMany, inverse: "parent"), relation("parent", "A", .toOne)])
        ])
        #expect(recursive.storeSchema.entities[0].columns.map(\.name) == ["parent", "position in parent"])
    }

    @Test func aReferenceIsNoAttribute() {
        let attribute = AttributeDescription(name: "b", type: .reference)
        expect(.unsupportedType, "A", "b", EntityDescription(name: "A", properties: [.attribute(attribute)]))
    }
}
