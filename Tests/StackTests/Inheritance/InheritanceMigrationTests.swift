import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Changes of hierarchies in models of existing files (S186).
@Suite struct InheritanceMigrationTests {
    private static let stores: [StoreKind] = [.lmdb, .sqlite]

    private static func trip(_ properties: [PropertyDescription] = [], isAbstract: Bool = false) -> EntityDescription {
        EntityDescription(
            name: "Trip", properties: [.attribute(.init(name: "name", type: .string))] + properties, isAbstract: isAbstract)
    }

    private static func business(
        _ name: String = "BusinessTrip", _ properties: [PropertyDescription] = [code], renamedFrom: String? = nil,
        superentity: String? = "Trip"
    ) -> EntityDescription {
        EntityDescription(name: name, properties: properties, renamedFrom: renamedFrom, superentity: superentity)
    }

    private static let code = PropertyDescription.attribute(.init(name: "code", type: .string, defaultValue: "none"))
    private static let other = EntityDescription(name: "Other", properties: [code])

    /// Opens the store with a model and runs `body` in a context, then saves and closes.
    private static func with<R: Sendable>(
        _ bed: TestBed, _ entities: [EntityDescription], _ version: Int = 1, allowing loss: Set<String> = [],
        _ body: @Sendable (ManagedObjectContext) throws -> R
    ) async throws -> R {
        // A file that does not exist yet is never closed.
        if FileManager.default.fileExists(atPath: bed.file.path) { try await bed.closed() }
        let container = try await PersistentContainer(
            model: Model(entities, version: .init(version)), store: bed.description, allowsDataLoss: loss)
        let worker = container.coordinator.newBackgroundContext()
        let result = try await worker.perform { try body($0) }
        try await worker.save()
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
        return result
    }

    private static func insert(_ entity: String, _ name: String, _ context: ManagedObjectContext) {
        context.insert(entity)["name"] = .string(name)
    }

    @Test(arguments: stores)
    func `S186: an entity gets subentities, and they get properties, without a plan`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip()]) { Self.insert("Trip", "a", $0) }
        try await Self.with(bed, [Self.trip(), Self.business()], 2) { context throws in
            #expect(try context.count(EntityFetchRequest("Trip")) == 1)
            #expect(try context.count(EntityFetchRequest("BusinessTrip")) == 0)
            Self.insert("BusinessTrip", "b", context)
        }
        let fee = PropertyDescription.attribute(.init(name: "fee", type: .int64, defaultValue: 7))
        let unique = PropertyDescription.attribute(.init(name: "number", type: .int64, index: .unique))
        let deep = EntityDescription(name: "Conference", properties: [], superentity: "BusinessTrip")
        try await Self.with(bed, [Self.trip(), Self.business("BusinessTrip", [Self.code, fee, unique]), deep], 3) {
            context throws in
            let business = try context.fetch(EntityFetchRequest("BusinessTrip"))
            #expect(business.map { $0["fee"] } == [7] && business.map { $0["code"] } == ["none"])
            business[0]["number"] = 1
            let costly = Condition.isKind(of: "BusinessTrip", where: .equal("fee", 7))
            #expect(try context.count(EntityFetchRequest("Trip", matching: costly)) == 1, "a trip has no fee")
            Self.insert("Conference", "c", context)
            #expect(try context.fetch(EntityFetchRequest("Trip")).map(\.entityName) == ["Trip", "BusinessTrip", "Conference"])
        }
    }

    @Test(arguments: stores)
    func `S186: an attribute moves between an entity and its superentity with its values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip(), Self.business()]) { context throws in
            Self.insert("Trip", "a", context)
            let business = context.insert("BusinessTrip")
            business["name"] = "b"
            business["code"] = "B1"
        }
        try await Self.with(bed, [Self.trip([Self.code]), Self.business("BusinessTrip", [])], 2) { context throws in
            let request = EntityFetchRequest("Trip", sortBy: [.init("name")])
            #expect(try context.fetch(request).map { $0["code"] } == ["none", "B1"])
        }
        await Self.expectRefusal(bed, [Self.trip(), Self.business()], "Trip.code (1 value)")
        try await Self.with(bed, [Self.trip(), Self.business()], 3, allowing: ["Trip.code"]) { context throws in
            #expect(try context.fetch(EntityFetchRequest("BusinessTrip")).map { $0["code"] } == ["B1"])
        }
    }

    /// Catches: values that nothing shows any more, because only objects of a subentity keep the attribute.
    @Test(arguments: stores, [false, true])
    func `S165: an attribute that moves to a subentity is lost in all other objects`(
        _ kind: StoreKind, _ hasSubentities: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let note = Self.note(isOptional: true)
        let more = hasSubentities ? [Self.business("BusinessTrip", []), Self.business("PrivateTrip", [])] : []
        let names = ["Trip"] + more.map(\.name)
        try await Self.with(bed, [Self.trip([note])] + more) { context in
            for name in names {
                Self.insert(name, "without", context)
                let noted = context.insert(name)
                (noted["name"], noted["note"]) = ("with", "kept")
            }
        }
        let moved = [Self.trip(), Self.business("BusinessTrip", [note])] + more.dropFirst()
        let text = hasSubentities ? "Trip.note (2 values)" : "Trip.note (1 value)"
        await Self.expectRefusal(bed, moved, text)
        try await bed.closed()
        let changes = try await Model(moved, version: .init(9)).changes(opening: bed.description)
        #expect(changes.refusal?.message.contains(text) == true, "\(changes)")
        try await Self.with(bed, moved, 2, allowing: ["Trip.note"]) { context throws in
            let notes = try context.fetch(EntityFetchRequest("BusinessTrip", sortBy: [.init("name")])).map { $0["note"] }
            #expect(notes == (hasSubentities ? ["kept", .null] : []))
        }
    }

    /// Catches: the same, in a subentity whose attribute moves down to one that inherits from it, or that is no longer above another one.
    @Test(arguments: stores)
    func `S165: an attribute of a subentity that others inherit is lost in objects that do not keep it`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let note = Self.note(isOptional: true)
        func model(
            _ business: [PropertyDescription], _ deep: [PropertyDescription], under superentity: String = "BusinessTrip"
        ) -> [EntityDescription] {
            [
                Self.trip(), Self.business("BusinessTrip", business),
                Self.business("Conference", deep, superentity: superentity),
            ]
        }
        try await Self.with(bed, model([note], [])) { context in
            for name in ["BusinessTrip", "Conference"] {
                let noted = context.insert(name)
                (noted["name"], noted["note"]) = (.string(name), "kept")
            }
        }
        await Self.expectRefusal(bed, model([], [note]), "BusinessTrip.note (1 value)")
        await Self.expectRefusal(bed, model([note], [], under: "Trip"), "BusinessTrip.note (1 value)")
        // No object loses it.
        try await Self.with(bed, model([note], [note], under: "Trip"), 2) { context throws in
            let notes = try ["BusinessTrip", "Conference"].map { try context.fetch(EntityFetchRequest($0)).map { $0["note"] } }
            #expect(notes == [["kept"], ["kept"]])
        }
    }

    private static func note(isOptional: Bool, defaultValue: Value = .null) -> PropertyDescription {
        .attribute(.init(name: "note", type: .string, isOptional: isOptional, defaultValue: defaultValue))
    }

    @Test(arguments: stores)
    func `S163: an attribute of a subentity that becomes required gets its default, or is refused`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        func model(_ notes: [PropertyDescription], private other: [PropertyDescription] = []) -> [EntityDescription] {
            [Self.trip(), Self.business("BusinessTrip", notes), Self.business("PrivateTrip", other)]
        }
        try await Self.with(bed, model([Self.note(isOptional: true)])) { context throws in
            Self.insert("BusinessTrip", "a", context)
            let noted = context.insert("BusinessTrip")
            noted["name"] = "b"
            noted["note"] = "kept"
            Self.insert("PrivateTrip", "c", context)
        }
        await Self.expectRefusal(bed, model([Self.note(isOptional: false)]), "BusinessTrip.note was optional and is required")
        let required = Self.note(isOptional: false, defaultValue: "none")
        await Self.expectRefusal(
            bed, model([required], private: [Self.note(isOptional: true)]), "PrivateTrip has an attribute of this name")
        // The work of a custom stage fills it.
        let shared = model([required], private: [Self.note(isOptional: true)])
        let plan = MigrationPlan([
            .custom(
                from: try Model(model([Self.note(isOptional: true)]), version: .init(1)),
                to: try Model(shared, version: .init(2)),
                didMigrate: { context in
                    for trip in try context.fetch(EntityFetchRequest("BusinessTrip", matching: .equal("note", .null))) {
                        trip["note"] = "filled"
                    }
                })
        ])
        let copied = try TestBed(kind)
        try FileManager.default.copyItem(at: bed.file, to: copied.file)
        let filled = try await PersistentContainer(
            model: try Model(shared, version: .init(2)), store: copied.description, migrationPlan: plan)
        let notes = try await filled.read { context in
            try context.fetch(EntityFetchRequest("Trip", sortBy: [.init("name")])).map {
                $0.entityName == "Trip" ? .null : $0["note"]
            }
        }
        #expect(notes == ["filled", "kept", .null])
        try await filled.close()
        try await Self.with(bed, model([required]), 2) { context throws in
            let request = EntityFetchRequest("BusinessTrip", sortBy: [.init("name")])
            #expect(try context.fetch(request).map { $0["note"] } == ["none", "kept"])
            #expect(try context.count(EntityFetchRequest("BusinessTrip", matching: .equal("note", .null))) == 0)
        }
        // A subentity gets the attribute that another one has: its objects have no value yet.
        let plain = Self.note(isOptional: false)
        await Self.expectRefusal(bed, model([required], private: [plain]), "another default")
        try await Self.with(bed, model([required], private: [required]), 3) { context throws in
            #expect(try context.fetch(EntityFetchRequest("PrivateTrip")).map { $0["note"] } == ["none"])
            #expect(try context.count(EntityFetchRequest("BusinessTrip", matching: .equal("note", "kept"))) == 1)
        }
    }

    /// Catches: a value from before an attribute moved, which nothing shows, and which the constraint of the subentity counts.
    @Test(arguments: stores)
    func `S185: a unique attribute that moved to a subentity counts in its objects only`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        func code(_ index: IndexKind) -> PropertyDescription {
            .attribute(.init(name: "code", type: .string, isOptional: true, index: index))
        }
        try await Self.with(bed, [Self.trip([code(.none)]), Self.business("BusinessTrip", [])]) { context in
            for name in ["a", "b"] {
                let trip = context.insert("Trip")
                trip["name"] = .string(name)
                trip["code"] = "X"
            }
        }
        let moved = [Self.trip(), Self.business("BusinessTrip", [code(.unique)])]
        try await Self.with(bed, moved, 2, allowing: ["Trip.code"]) { context in
            let business = context.insert("BusinessTrip")
            business["name"] = "c"
            business["code"] = "X"
        }
        await #expect(throws: SaveError.self) {
            try await Self.with(bed, moved, 2) { context in
                let business = context.insert("BusinessTrip")
                business["name"] = "d"
                business["code"] = "X"
            }
        }
        await Self.expectRefusal(bed, [Self.trip([code(.unique)]), Self.business("BusinessTrip", [])], "must be unique")
    }

    /// Catches: references of objects without the relationship, which nothing shows, and which delete rules follow.
    @Test(arguments: stores)
    func `S165: a to-one relationship moves to a subentity only if no other object has it`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        func model(isMoved: Bool) -> [EntityDescription] {
            let traveler = PropertyDescription.relationship(
                .init(name: "traveler", destination: "Person", inverse: "trips", cardinality: .toOne))
            let trips = RelationshipDescription(
                name: "trips", destination: isMoved ? "BusinessTrip" : "Trip", inverse: "traveler", cardinality: .toMany,
                deleteRule: .cascade)
            return [
                Self.trip(isMoved ? [] : [traveler]), Self.business("BusinessTrip", isMoved ? [traveler] : []),
                EntityDescription(name: "Person", properties: [.relationship(trips)]),
            ]
        }
        try await Self.with(bed, model(isMoved: false)) { context in
            let person = context.insert("Person")
            for entity in ["Trip", "BusinessTrip"] {
                let trip = context.insert(entity)
                trip["name"] = .string(entity)
                trip.setRelatedObject("traveler", to: person)
            }
        }
        await Self.expectRefusal(bed, model(isMoved: true), "Trip.traveler (1 reference; these objects do not have")
        try await Self.with(bed, model(isMoved: false)) { context throws in
            for trip in try context.fetch(EntityFetchRequest("Trip")) where trip.entityName == "Trip" {
                trip.setRelatedObject("traveler", to: nil)
            }
        }
        try await Self.with(bed, model(isMoved: true), 2) { context throws in
            for person in try context.fetch(EntityFetchRequest("Person")) { context.delete(person) }
        }
        try await Self.with(bed, model(isMoved: true), 2) { context throws in
            #expect(try context.fetch(EntityFetchRequest("Trip")).map(\.entityName) == ["Trip"])
        }
    }

    /// Catches: pairs of objects without the relationship, and an inverse that leads to objects of another entity than its destination.
    @Test(arguments: stores, [true, false])
    func `S165: a many-to-many relationship moves to a subentity only if no other object has it`(
        _ kind: StoreKind, _ isStoredAtTrip: Bool
    ) async throws {
        let bed = try TestBed(kind)
        func model(isMoved: Bool) -> [EntityDescription] {
            let stops = PropertyDescription.relationship(
                .init(name: "stops", destination: "Stop", inverse: "trips", cardinality: .toMany))
            let trips = RelationshipDescription(
                name: "trips", destination: isMoved ? "BusinessTrip" : "Trip", inverse: "stops", cardinality: .toMany)
            let trip = [Self.trip(isMoved ? [] : [stops]), Self.business("BusinessTrip", isMoved ? [stops] : [])]
            let stop = [EntityDescription(name: "Stop", properties: [.relationship(trips)])]
            // The pairs are stored under the name of the relationship whose entity comes first.
            return isStoredAtTrip ? trip + stop : stop + trip
        }
        let text =
            isStoredAtTrip ? "Trip.stops (2 pairs; these objects do not have" : "Stop.trips (2 pairs; these objects are not"
        try await Self.with(bed, model(isMoved: false)) { context in
            let stops = (0..<2).map { _ in context.insert("Stop") }
            for (entity, stops) in [("Trip", stops), ("BusinessTrip", [stops[0]])] {
                let trip = context.insert(entity)
                trip["name"] = .string(entity)
                trip.setRelatedObjects("stops", to: stops)
            }
        }
        await Self.expectRefusal(bed, model(isMoved: true), text)
        try await bed.closed()
        let changes = try await Model(model(isMoved: true), version: .init(9)).changes(opening: bed.description)
        #expect(changes.refusal?.message.contains(text) == true, "\(changes)")
        try await Self.with(bed, model(isMoved: false)) { context throws in
            for trip in try context.fetch(EntityFetchRequest("Trip")) where trip.entityName == "Trip" {
                trip.setRelatedObjects("stops", to: [])
            }
        }
        try await Self.with(bed, model(isMoved: true), 2) { context throws in
            let trips = try context.fetch(EntityFetchRequest("Stop")).map { $0.relatedObjects("trips").map(\.entityName) }
            #expect(trips == [["BusinessTrip"], []])
        }
    }

    /// A model with plans, whose relationships `trip` and `trips` lead to an entity of a hierarchy.
    private static func plans(leadingTo destination: String) -> [EntityDescription] {
        let trip = RelationshipDescription(name: "trip", destination: destination, cardinality: .toOne)
        let trips = RelationshipDescription(name: "trips", destination: destination, cardinality: .toMany)
        return [
            Self.trip(), Self.business(),
            EntityDescription(name: "Plan", properties: [.relationship(trip), .relationship(trips)]),
        ]
    }

    /// Inserts one plan per trip, and one with both trips.
    private static func insertPlans(_ context: ManagedObjectContext) {
        let trips = ["Trip", "BusinessTrip"].map { entity in
            let trip = context.insert(entity)
            trip["name"] = .string(entity)
            return trip
        }
        for trip in trips { context.insert("Plan").setRelatedObject("trip", to: trip) }
        context.insert("Plan").setRelatedObjects("trips", to: trips)
    }

    private static func removeOtherTrips(_ context: ManagedObjectContext) throws {
        for plan in try context.fetch(EntityFetchRequest("Plan")) {
            if plan.relatedObject("trip")?.entityName == "Trip" { plan.setRelatedObject("trip", to: nil) }
            plan.setRelatedObjects("trips", to: plan.relatedObjects("trips").filter { $0.entityName != "Trip" })
        }
    }

    private static func expectBusinessTripsOnly(_ context: ManagedObjectContext) throws {
        let plans = try context.fetch(EntityFetchRequest("Plan"))
        #expect(plans.compactMap { $0.relatedObject("trip")?.entityName } == ["BusinessTrip"])
        #expect(plans.flatMap { $0.relatedObjects("trips").map(\.entityName) } == ["BusinessTrip"])
    }

    /// Catches: a narrower destination that no column shows, so that reading an object of another class stops the program.
    @Test(arguments: stores)
    func `S165, S183: a relationship gets a subentity as its destination only if it leads to no other object`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let (wide, narrow) = (Self.plans(leadingTo: "Trip"), Self.plans(leadingTo: "BusinessTrip"))
        try await Self.with(bed, wide) { Self.insertPlans($0) }
        await Self.expectRefusal(bed, narrow, "Plan.trip (1 reference; these objects are not of the entity")
        await Self.expectRefusal(bed, narrow, "Plan.trips (1 pair; these objects are not of the entity")
        try await bed.closed()
        let changes = try await Model(narrow, version: .init(9)).changes(opening: bed.description)
        #expect(changes.refusal?.message.contains("Plan.trip (1 reference") == true, "\(changes)")
        #expect(changes.refusal?.message.contains("Plan.trips (1 pair") == true, "\(changes)")
        try await Self.with(bed, wide) { try Self.removeOtherTrips($0) }
        for _ in 0..<2 { try await Self.with(bed, narrow, 2) { try Self.expectBusinessTripsOnly($0) } }
        // The file forgets the narrower destination.
        try await Self.with(bed, wide, 3) { context throws in
            let trip = try context.fetch(EntityFetchRequest("Trip")).first { $0.entityName == "Trip" }
            context.insert("Plan").setRelatedObject("trip", to: trip)
        }
        await Self.expectRefusal(bed, narrow, "Plan.trip (1 reference")
    }

    @Test(arguments: stores)
    func `S164, S165: a custom stage keeps the references that a narrower destination allows`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (wide, narrow) = (
            try Model(Self.plans(leadingTo: "Trip"), version: .init(1)),
            try Model(Self.plans(leadingTo: "BusinessTrip"), version: .init(2))
        )
        try await Self.with(bed, Self.plans(leadingTo: "Trip")) { Self.insertPlans($0) }
        try await bed.closed()
        let withoutWork = MigrationPlan([.custom(from: wide, to: narrow)])
        let changes = try await narrow.changes(opening: bed.description, migrationPlan: withoutWork)
        #expect(changes.refusal?.message.contains("Plan.trip (1 reference") == true, "\(changes)")
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: narrow, store: bed.description, migrationPlan: withoutWork)
        }
        #expect(error?.message.contains("Plan.trip (1 reference") == true, "\(String(describing: error))")
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(from: wide, to: narrow, willMigrate: { context in try Self.removeOtherTrips(context) })
        ])
        let container = try await PersistentContainer(model: narrow, store: bed.description, migrationPlan: plan)
        try await container.read { try Self.expectBusinessTripsOnly($0) }
        try await container.close()
    }

    @Test(arguments: stores)
    func `S165, S166: a read-only store counts the objects outside a destination that its file has not recorded`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let wide = Self.plans(leadingTo: "Trip")
        let narrow = try Model(Self.plans(leadingTo: "BusinessTrip"), version: .init(1))
        let store: StoreDescription = kind == .lmdb ? .lmdb(bed.file, readOnly: true) : .sqlite(bed.file, readOnly: true)
        try await Self.with(bed, wide) { Self.insertPlans($0) }
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) { _ = try await PersistentContainer(model: narrow, store: store) }
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains("Plan.trip (1 reference") == true, "\(String(describing: error))")
        #expect(error?.message.contains("Plan.trips (1 pair") == true, "\(String(describing: error))")
        try await Self.with(bed, wide) { try Self.removeOtherTrips($0) }
        try await bed.closed()
        let container = try await PersistentContainer(model: narrow, store: store)
        try await container.read { try Self.expectBusinessTripsOnly($0) }
        try await container.close()
    }

    /// Catches: files that change although no destination is narrower, or objects that are counted at each opening.
    @Test func `S165: a file records its narrowed destinations, and nothing without them`() throws {
        let wide = try Model(Self.plans(leadingTo: "Trip")).storeSchema
        let narrow = try Model(Self.plans(leadingTo: "BusinessTrip")).storeSchema
        #expect(wide.withoutHints == narrow.withoutHints)
        #expect(NarrowedDestinations(of: wide) == nil)
        let path = try SchemaPath(from: RecordedSchemas(wide.withoutHints), to: narrow, path: "file")
        #expect(path.steps.isEmpty && path.losses.count == 2 && path.destinations == NarrowedDestinations(of: narrow))
        let known = RecordedSchemas(
            wide.withoutHints, inverses: InversePairs(of: narrow), destinations: path.destinations)
        #expect(try SchemaPath(from: known, to: narrow, path: "file").losses.isEmpty)
        let wider = try SchemaPath(from: known, to: wide, path: "file")
        #expect(wider.losses.isEmpty && wider.destinations == nil)
        let type = SubentitySchema.type(of: "BusinessTrip")
        let data = try JSONEncoder().encode(path.destinations)
        #expect(String(decoding: data, as: UTF8.self) == "[[\"Plan\",\"trip\",\"\(type)\"],[\"Plan\",\"trips\",\"\(type)\"]]")
        #expect(try JSONDecoder().decode(NarrowedDestinations.self, from: data) == path.destinations)
    }

    @Test(arguments: stores)
    func `S186: an independent entity cannot become a subentity, nor a subentity an independent one`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip(), Self.business(superentity: nil), Self.other]) { context throws in
            context.insert("BusinessTrip")["code"] = "x"
        }
        await Self.expectRefusal(bed, [Self.trip(), Self.business(), Self.other], "BusinessTrip inherited from no entity")
        let bed2 = try TestBed(kind)
        try await Self.with(bed2, [Self.trip(), Self.business(), Self.other]) { Self.insert("BusinessTrip", "a", $0) }
        await Self.expectRefusal(
            bed2, [Self.trip(), Self.business(superentity: nil), Self.other], "BusinessTrip inherited from Trip")
        await Self.expectRefusal(
            bed2, [Self.trip(), Self.business("BusinessTrip", [], superentity: "Other"), Self.other], "inherits from Other")
    }

    /// Catches: a dry run that promises an opening, because a custom stage may drop everything except what contradicts its target.
    @Test(arguments: stores)
    func `S164, S202: a dry run and the opening refuse entities that a custom stage cannot remove or move`(_ kind: StoreKind)
        async throws
    {
        let removed = ([Self.trip(), Self.business()], [Self.trip()], "BusinessTrip (1 object")
        let moved = (
            [Self.trip(), Self.business(superentity: nil)], [Self.trip(), Self.business()],
            "BusinessTrip inherited from no entity"
        )
        for (before, after, text) in [removed, moved] {
            let bed = try TestBed(kind)
            try await Self.with(bed, before) { context in context.insert("BusinessTrip")["code"] = "x" }
            try await bed.closed()
            let (first, second) = (try Model(before, version: .init(1)), try Model(after, version: .init(2)))
            let plan = MigrationPlan([.custom(from: first, to: second, didMigrate: { _ in })])
            let changes = try await second.changes(opening: bed.description, migrationPlan: plan)
            #expect(changes.refusal?.message.contains(text) == true, "\(changes)")
            try await bed.closed()
            let error = await #expect(throws: StoreError.self) {
                _ = try await PersistentContainer(model: second, store: bed.description, migrationPlan: plan)
            }
            #expect(error?.code == changes.refusal?.code)
            #expect(error?.message.contains(text) == true, "\(String(describing: error))")
        }
    }

    /// Catches: a dry run that refuses objects which the work of the stage deletes, or says that the stage drops them.
    @Test(arguments: stores)
    func `S164, S202: a dry run does not count objects that willMigrate may delete`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip(), Self.business()]) { Self.insert("BusinessTrip", "b", $0) }
        try await bed.closed()
        let first = try Model([Self.trip(), Self.business()], version: .init(1))
        let second = try Model([Self.trip()], version: .init(2))
        let plan = MigrationPlan([
            .custom(
                from: first, to: second,
                willMigrate: { context in
                    for trip in try context.fetch(EntityFetchRequest("BusinessTrip")) { context.delete(trip) }
                })
        ])
        let changes = try await second.changes(opening: bed.description, migrationPlan: plan)
        #expect(changes.refusal == nil && changes.lines.contains("- BusinessTrip"), "\(changes)")
        try await bed.closed()
        let container = try await PersistentContainer(model: second, store: bed.description, migrationPlan: plan)
        #expect(try await container.read { try $0.count(EntityFetchRequest("Trip")) } == 0)
        try await container.close()
    }

    private static func expectRefusal(_ bed: TestBed, _ entities: [EntityDescription], _ text: String) async {
        let error = await #expect(throws: StoreError.self) { try await Self.with(bed, entities, 9) { _ in } }
        #expect(error?.code == .schemaMismatch)
        #expect("\(String(describing: error))".contains(text), "\(String(describing: error))")
    }

    @Test(arguments: stores)
    func `S186: an entity keeps its objects when it is renamed, and stays while it has any`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip(), Self.business()]) { context throws in
            Self.insert("BusinessTrip", "b", context)
            Self.insert("Trip", "a", context)
        }
        try await Self.with(bed, [Self.trip(), Self.business("Mission", renamedFrom: "BusinessTrip")], 2) { context throws in
            #expect(try context.fetch(EntityFetchRequest("Mission")).map { $0["name"] } == ["b"])
        }
        await Self.expectRefusal(bed, [Self.trip(), Self.business("Errand", renamedFrom: "Mission")], "first name")
        try await Self.with(bed, [Self.trip(), Self.business("Errand", renamedFrom: "BusinessTrip")], 3) { context throws in
            #expect(try context.fetch(EntityFetchRequest("Errand")).map { $0["name"] } == ["b"])
        }
        if kind == .lmdb || kind == .sqlite {
            let stored = try await Model(storedIn: bed.description)
            #expect(stored.subentities.map(\.name) == ["Errand"])
        }
        await Self.expectRefusal(bed, [Self.trip([Self.code])], "Errand (1 object")
        await Self.expectRefusal(
            bed, [Self.trip(isAbstract: true), Self.business("Errand", renamedFrom: "BusinessTrip")], "Trip (1 object")
        try await Self.with(bed, [Self.trip(), Self.business("Errand", renamedFrom: "BusinessTrip")], 3) { context throws in
            for errand in try context.fetch(EntityFetchRequest("Errand")) { context.delete(errand) }
        }
        try await Self.with(bed, [Self.trip([Self.code])], 4) { context throws in
            #expect(try context.fetch(EntityFetchRequest("Trip")).map { $0["name"] } == ["a"])
        }
    }

    @Test(arguments: stores)
    func `S186: a file shows its hierarchies without the model`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let model = try Trips.model()
        let container = try await bed.container(model: model)
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { _ = Trips.insertAll($0) }
        try await worker.save()
        try await container.close()
        try await bed.closed()
        let stored = try await Model(storedIn: bed.description)
        #expect(stored.subentities.map(\.name) == model.subentities.map(\.name))
        #expect(stored.subentities.map(\.superentityName) == model.subentities.map(\.superentityName))
        for entity in model.subentities {
            let found = try #require(stored.entity(named: entity.name))
            #expect(found.attributes.map { "\($0)" } == entity.attributes.map { "\($0)" })
        }
        #expect(stored.entity(named: "Vehicle")?.isAbstract == true)
        let reader = try await PersistentContainer(model: stored, store: bed.description)
        #expect(try await reader.read { try $0.kinds("Trip") } == Trips.kinds)
        try await reader.close()
    }

    @Test func `S186: an entity without inheritance has no column of types`() throws {
        let model = try Model([Self.trip(), Self.other])
        #expect(model.storeSchema.entities.map { $0.columns.map(\.name) } == [["name"], ["code"]])
        #expect(!String(reflecting: model.storeSchema).contains("type of object"))
    }

    /// Catches: objects of an abstract entity, because the type column of a later stage is looked for in the file.
    @Test(arguments: stores)
    func `S165, S184: objects of an entity that a later stage makes abstract refuse the plan`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip()]) { Self.insert("Trip", "a", $0) }
        try await bed.closed()
        let first = try Model([Self.trip()], version: .init(1))
        let second = try Model([Self.trip(), Self.business()], version: .init(2))
        let third = try Model([Self.trip(isAbstract: true), Self.business()], version: .init(3))
        let plan = MigrationPlan([.lightweight(from: first, to: second), .lightweight(from: second, to: third)])
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: third, store: bed.description, migrationPlan: plan)
        }
        #expect(error?.message.contains("Trip (1 object") == true, "\(error?.message ?? "")")
        try await bed.closed()
        let found = try await Self.with(bed, [Self.trip()]) { try $0.count(EntityFetchRequest("Trip")) }
        #expect(found == 1)
    }

    /// Catches: a new attribute whose two defaults leave nothing for older objects, although it is required.
    @Test(arguments: stores)
    func `S163, S178: a new attribute that two subentities declare with different defaults is refused`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        func model(_ business: [PropertyDescription], _ other: [PropertyDescription]) -> [EntityDescription] {
            [Self.trip(), Self.business("BusinessTrip", business), Self.business("PrivateTrip", other)]
        }
        try await Self.with(bed, model([], [])) { context in
            Self.insert("BusinessTrip", "a", context)
            Self.insert("PrivateTrip", "b", context)
        }
        let (work, fun) = (
            Self.note(isOptional: false, defaultValue: "work"), Self.note(isOptional: false, defaultValue: "fun")
        )
        await Self.expectRefusal(bed, model([work], [fun]), "another default")
        try await Self.with(bed, model([work], [work]), 2) { context throws in
            #expect(try context.fetch(EntityFetchRequest("Trip")).map { $0["note"] } == ["work", "work"])
        }
    }

    /// Catches: a stage that runs on a file which has passed it, because an attribute is in another entity of the hierarchy before it only.
    @Test(arguments: stores)
    func `S164: a file without a version counts as a model only if its subentities have the same properties`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let note = Self.note(isOptional: true)
        func model(
            _ version: SchemaVersion, _ trip: [PropertyDescription], _ business: [PropertyDescription]
        ) throws -> Model {
            try Model([Self.trip(trip), Self.business("BusinessTrip", business)], version: version)
        }
        let extra = PropertyDescription.attribute(.init(name: "extra", type: .int64))
        let (first, second) = (try model(.init(1), [note], []), try model(.init(2), [], [note]))
        let third = try model(.init(3), [extra], [note])
        let old = try await bed.container(model: model(SchemaVersion(), [], [note]))
        try await old.coordinator.insert(into: "BusinessTrip", ["name", "note"], rows: [["a", "kept"]])
        try await old.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(
                from: first, to: second,
                didMigrate: { context in
                    for trip in try context.fetch(EntityFetchRequest("BusinessTrip")) { trip["note"] = "overwritten" }
                }),
            .lightweight(from: second, to: third),
        ])
        let container = try await PersistentContainer(model: third, store: bed.description, migrationPlan: plan)
        let notes = try await container.read { try $0.fetch(EntityFetchRequest("BusinessTrip")).map { $0["note"] } }
        #expect(notes == ["kept"])
        try await container.close()
    }

    /// Catches: a loss that counts the defaults which objects of other entities have, or has a name that no model knows.
    @Test(arguments: stores)
    func `S165, S185: dropping an attribute of a subentity counts the values of its objects`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.with(bed, [Self.trip()]) { context in for name in ["a", "b", "c"] { Self.insert("Trip", name, context) } }
        try await Self.with(bed, [Self.trip(), Self.business()], 2) { _ in }
        // No object of the subentity was made, so nothing is lost.
        try await Self.with(bed, [Self.trip()], 3) { _ in }
        try await Self.with(bed, [Self.trip(), Self.business("Mission")], 4) { Self.insert("Mission", "d", $0) }
        let without = [Self.trip(), Self.business("Mission", [])]
        await Self.expectRefusal(bed, without, "Mission.code (1 value)")
        await Self.expectRefusal(bed, without, "allowsDataLoss: [\"Mission.code\"]")
        let model = try Model(without, version: .init(9))
        try await bed.closed()
        let changes = try await model.changes(opening: bed.description)
        #expect(changes.steps.flatMap(\.changes).compactMap(\.droppedCount) == [1], "\(changes)")
        try await bed.closed()
        try await PersistentContainer(model: model, store: bed.description, allowsDataLoss: ["Mission.code"]).close()
    }

    /// Catches: values of the superentity that are dropped unasked, because the attribute has moved to a subentity before.
    @Test(arguments: stores, [true, false])
    func `S165: dropping an attribute that has moved to a subentity counts the values of all objects`(
        _ kind: StoreKind, _ isPlan: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let note = Self.note(isOptional: true)
        let models = try [
            Model([Self.trip([note]), Self.business("BusinessTrip", [])], version: .init(1)),
            Model([Self.trip(), Self.business("BusinessTrip", [note])], version: .init(2)),
            Model([Self.trip(), Self.business("BusinessTrip", [])], version: .init(3)),
        ]
        let first = try await bed.container(model: models[0])
        try await first.coordinator.insert(into: "Trip", ["name", "note"], rows: [["a", "kept"], ["b", "too"]])
        try await first.close()
        var plan: MigrationPlan?
        if isPlan {
            plan = MigrationPlan([
                .lightweight(from: models[0], to: models[1]), .lightweight(from: models[1], to: models[2]),
            ])
        } else {
            try await bed.closed()
            try await PersistentContainer(model: models[1], store: bed.description, allowsDataLoss: ["Trip.note"]).close()
        }
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: models[2], store: bed.description, migrationPlan: plan)
        }
        #expect(error?.message.contains("allowsDataLoss: [\"Trip.note\"]") == true, "\(String(describing: error))")
        #expect(error?.message.contains("Trip.note (2 values)") == true, "\(String(describing: error))")
    }

    /// Catches: values that a stage drops, because a later stage adds an attribute of the same name.
    @Test(arguments: stores)
    func `S165: an attribute of a subentity that a stage drops and the next one adds again is lost`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let models = try [[Self.code], [], [Self.code]].enumerated().map { number, properties in
            try Model([Self.trip(), Self.business("BusinessTrip", properties)], version: .init(number + 1))
        }
        let first = try await bed.container(model: models[0])
        try await first.coordinator.insert(into: "Trip", ["name"], rows: [["a"]])
        try await first.coordinator.insert(into: "BusinessTrip", ["name", "code"], rows: [["b", "B1"]])
        try await first.close()
        try await bed.closed()
        let plan = MigrationPlan([.lightweight(from: models[0], to: models[1]), .lightweight(from: models[1], to: models[2])])
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: models[2], store: bed.description, migrationPlan: plan)
        }
        #expect(error?.message.contains("BusinessTrip.code (1 value)") == true, "\(String(describing: error))")
    }

    /// Catches: values that are dropped without a word, because another subentity has an attribute of the same name.
    @Test(arguments: stores)
    func `S165: dropping an attribute that another subentity has too is refused`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let note = Self.note(isOptional: true)
        func model(_ business: [PropertyDescription], _ other: [PropertyDescription]) -> [EntityDescription] {
            [Self.trip(), Self.business("BusinessTrip", business), Self.business("PrivateTrip", other)]
        }
        try await Self.with(bed, model([note], [note])) { context in
            Self.insert("BusinessTrip", "a", context)
            let noted = context.insert("BusinessTrip")
            (noted["name"], noted["note"]) = ("b", "kept")
            let other = context.insert("PrivateTrip")
            (other["name"], other["note"]) = ("c", "other")
        }
        await Self.expectRefusal(bed, model([], [note]), "BusinessTrip.note (1 value)")
        try await Self.with(bed, model([note], [note]), 2) { context throws in
            try context.fetch(EntityFetchRequest("BusinessTrip")).forEach { $0["note"] = .null }
        }
        try await Self.with(bed, model([], [note]), 3) { context throws in
            #expect(try context.fetch(EntityFetchRequest("PrivateTrip")).map { $0["note"] } == ["other"])
        }
    }

    /// Catches: documentation that says otherwise than files are migrated.
    @Test(arguments: stores)
    func `S163: older objects keep the default that an attribute had in another subentity`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        func model(_ business: [PropertyDescription], _ other: [PropertyDescription]) -> [EntityDescription] {
            [Self.trip(), Self.business("BusinessTrip", business), Self.business("PrivateTrip", other)]
        }
        let required = Self.note(isOptional: false, defaultValue: "none")
        try await Self.with(bed, model([], [])) { Self.insert("PrivateTrip", "a", $0) }
        try await Self.with(bed, model([required], []), 2) { Self.insert("PrivateTrip", "b", $0) }
        try await Self.with(bed, model([required], [Self.note(isOptional: true)]), 3) { context throws in
            let trips = try context.fetch(EntityFetchRequest("PrivateTrip", sortBy: [.init("name")]))
            #expect(trips.map { $0["note"] } == ["none", .null])
        }
    }
}
