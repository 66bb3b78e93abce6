import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Entities that inherit from others, known at run time (S180 to S184).
@Suite struct InheritanceTests {
    @Test(arguments: Combination.all)
    func `S180: a fetch of an entity returns the objects of all entities that inherit from it`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Trips.model())
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { Trips.insertAll($0).map(\.objectID) }
        #expect(Set(ids.map(\.entity)).count == 1, "one key space")
        try await expectKinds(worker, "unsaved")
        try await worker.save(through: .store)
        try await expectKinds(worker, "saved")
        let child = await worker.newBackgroundChild()
        try await expectKinds(child, "child")
        try await container.coordinator.refresh()
        try await expectKinds(container.coordinator.newBackgroundContext(), "another context")
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
        guard combination.store != .memory else { return }
        try await bed.closed()
        let reopened = try await bed.container(combination.stack, model: try Trips.model())
        try await expectKinds(reopened.coordinator.newBackgroundContext(), "reopened")
        try await reopened.close()
    }

    private func expectKinds(_ context: BackgroundContext, _ comment: Comment) async throws {
        try await context.perform { context throws in
            #expect(try context.kinds("Trip") == ["Trip", "BusinessTrip", "Conference", "Holiday"], comment)
            #expect(try context.kinds("BusinessTrip") == ["BusinessTrip", "Conference"], comment)
            #expect(try context.kinds("Conference") == ["Conference"], comment)
            #expect(try context.kinds("Holiday") == ["Holiday"], comment)
            let sum = try context.aggregate(.sum("days"), of: EntityFetchRequest("BusinessTrip"))
            #expect(sum == .int(5), comment)
            let rows = try context.fetch(EntityValueRequest("BusinessTrip", fetching: [.property("name"), .property("perDiem")]))
            #expect(rows.map { $0["perDiem"] } == [20.0, 20.0], comment)
        }
    }

    @Test(arguments: Combination.all)
    func `S181: an object is of its entity in children, after merges, undo, rollback and refresh`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Trips.model())
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            context.undoHistory = UndoHistory()
            Trips.insertAll(context)
        }
        try await worker.save(through: .store)
        let child = await worker.newBackgroundChild()
        try await child.perform { context throws in
            let conference = try #require(try context.fetch(EntityFetchRequest("Conference")).first)
            conference["topic"] = "Databases"
            let made = context.insert("Holiday")
            made["name"] = "from a child"
            made["days"] = 9
        }
        try await child.save()
        try await worker.perform { context throws in
            #expect(try context.kinds("Holiday") == ["Holiday", "Holiday"])
            let conference = try #require(try context.fetch(EntityFetchRequest("Conference")).first)
            #expect(conference["topic"] == "Databases" && conference.entityName == "Conference")
            #expect(Set(conference.changedValues.keys) == ["topic"])
            #expect(conference.committedValues().count == 8, "the properties of a conference, and no others")
            #expect("\(conference)".hasPrefix("Conference(") && !"\(conference)".contains("isAbroad"))
            context.delete(conference)
            context.processPendingChanges()
            #expect(try context.kinds("BusinessTrip") == ["BusinessTrip"])
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            try context.undoHistory?.undo()
            #expect(try context.kinds("Trip") == ["Trip", "BusinessTrip", "Conference", "Holiday", "Holiday"])
            context.refreshAllObjects()
            #expect(try context.kinds("Conference") == ["Conference"])
            let plain = try #require(try context.fetch(EntityFetchRequest("Trip", matching: .equal("name", "Trip"))).first)
            context.refresh(plain, mergeChanges: false)
            #expect(plain.entityName == "Trip")
        }
        try await worker.save(through: .store)
        await worker.perform { $0.rollback() }
        try await container.coordinator.refresh()
        try await container.coordinator.newBackgroundContext().perform { context throws in
            #expect(try context.kinds("Conference") == ["Conference"])
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S182: conditions name the entity of an object and the properties that only it has`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.model())
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let trips = Trips.insertAll(context)
            let ann = context.insert("Person")
            ann.setRelatedObjects("trips", to: [trips[1], trips[3]])
            ann.setRelatedObjects("talks", to: [trips[2]])
            ann.setRelatedObject("favorite", to: trips[3])
            trips[2]["perDiem"] = 90.0
            trips[3]["place"] = "Rome"
        }
        for comment in ["unsaved", "saved"] {
            try await worker.perform { context throws in
                let isBusiness = Condition.isKind(of: "BusinessTrip")
                #expect(try context.kinds("Trip", isBusiness) == ["BusinessTrip", "Conference"], "\(comment)")
                #expect(try context.kinds("Trip", .not(isBusiness)) == ["Trip", "Holiday"], "\(comment)")
                #expect(try context.kinds("Trip", .isKind(of: "Trip")).count == 4)
                #expect(try context.kinds("Trip", .isKind(of: "Car")) == [])
                let costly = Condition.isKind(of: "BusinessTrip", where: .compare("perDiem", .greater, to: 50.0))
                #expect(try context.kinds("Trip", costly) == ["Conference"], "\(comment)")
                let either = Condition.any([costly, .isKind(of: "Holiday", where: .equal("place", "Rome"))])
                #expect(try context.kinds("Trip", either) == ["Conference", "Holiday"], "\(comment)")
                func people(_ condition: Condition) throws -> Int {
                    try context.count(EntityFetchRequest("Person", matching: condition))
                }
                #expect(try people(.related("trips", .any, where: .isKind(of: "Holiday"))) == 1)
                #expect(try people(.relatedCount("trips", where: isBusiness, .equal, to: 1)) == 1)
                #expect(try people(.isKind("favorite", of: "Holiday")) == 1)
                #expect(try people(.isKind("favorite", of: "BusinessTrip")) == 0)
                #expect(try people(.related("talks", .any, where: .compare("perDiem", .greater, to: 50.0))) == 1)
                #expect(throws: FetchError.self) { try context.kinds("Trip", .equal("perDiem", 20.0)) }
                #expect(throws: FetchError.self) { try context.kinds("Holiday", .equal("perDiem", 20.0)) }
                #expect(throws: FetchError.self) { try people(.related("trips", .any, where: .equal("perDiem", 20.0))) }
                #expect("\(costly)" == "is BusinessTrip where perDiem > 50.0")
            }
            try await worker.save()
        }
        try await container.close()
    }

    @Test(arguments: Combination.all)
    func `S183: relationships lead to objects of each inheriting entity and follow their rules`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Trips.model())
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            let trips = Trips.insertAll(context)
            let ann = context.insert("Person")
            ann["name"] = "Ann"
            ann.setRelatedObjects("trips", to: trips)
            let acme = context.insert("Company")
            trips[1].setRelatedObject("company", to: acme)
            acme.add(trips[2], to: "trips")
            #expect(trips[2].relatedObject("company") === acme)
            trips[2].setRelatedObjects("speakers", to: [ann])
            trips[0].add(trips[3], to: "stops")
            #expect(ann.relatedObjects("talks") == [trips[2]])
        }
        try await worker.save(through: .store)
        let fresh = await container.newBackgroundContext()
        try await container.coordinator.refresh()
        try await worker.perform { context throws in
            let ann = try #require(try context.fetch(EntityFetchRequest("Person")).first)
            #expect(ann.relatedObjects("trips").map(\.entityName) == Trips.kinds)
            let acme = try #require(try context.fetch(EntityFetchRequest("Company")).first)
            #expect(acme.relatedObjects("trips").map(\.entityName) == ["BusinessTrip", "Conference"])
            #expect(ann.relatedObjects("trips")[3].relatedObjects("parts").map(\.entityName) == ["Trip"])
            context.delete(acme)
        }
        // The rule deny of the company is for the objects of the inheriting entities.
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        try await worker.perform { context throws in
            context.rollback()
            context.delete(try #require(try context.fetch(EntityFetchRequest("Person")).first))
        }
        // The rule cascade of the person deletes trips of all kinds, so that the company can be deleted.
        try await worker.perform { context throws in
            context.delete(try #require(try context.fetch(EntityFetchRequest("Company")).first))
        }
        try await worker.save(through: .store)
        try await container.coordinator.refresh()
        try await container.coordinator.newBackgroundContext().perform { context throws in
            #expect(try context.count(EntityFetchRequest("Trip")) == 0)
        }
        _ = fresh
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S184: an abstract entity has the objects of those that inherit from it, and no others`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.model())
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            context.insert("Car")["plate"] = "A 1"
            context.insert("Bike")["wheels"] = 2
            #expect(try context.fetch(EntityFetchRequest("Vehicle")).map(\.entityName) == ["Car", "Bike"])
            #expect(throws: BatchError.self) { try context.insert(contentsOf: [["wheels": 2]], into: "Vehicle") }
        }
        try await worker.save()
        let vehicle = try #require(container.model.entity(named: "Vehicle"))
        #expect(vehicle.isAbstract && vehicle.superentityName == nil)
        #expect(container.model.entity(named: "Bike")?.superentityName == "Vehicle")
        #expect(container.model.subentities.map(\.name) == ["BusinessTrip", "Conference", "Holiday", "Car", "Bike"])
        await #expect(throws: BatchError.self) {
            try await container.coordinator.insert(into: "Vehicle", ["wheels"], rows: [[2]])
        }
        try await container.close()
    }

    @Test func `S184: inserting an object of an abstract entity stops the program`() async {
        await #expect(processExitsWith: .failure) {
            let container = try await PersistentContainer(model: Trips.model(), store: .memory)
            await container.coordinator.newBackgroundContext().perform { context in _ = context.insert("Vehicle") }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S185: rules and unique constraints of an entity are for its objects only`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.model())
        let worker = container.coordinator.newBackgroundContext()
        let id = try await worker.perform { context throws in
            let trips = Trips.insertAll(context)
            // A topic is required, an empty one is a value. Places of business trips have no length, those of holidays do.
            trips[1]["place"] = ""
            return trips[1].objectID
        }
        try await worker.save()
        try await worker.perform { context throws in
            try context.existingObject(with: id)["perDiem"] = .null
            let other = try #require(try context.fetch(EntityFetchRequest("Holiday")).first)
            other["place"] = ""
        }
        let error = await #expect(throws: SaveError.self) { try await worker.save() }
        let text = "\(String(describing: error))"
        #expect(text.contains("perDiem must have a value") && text.contains("BusinessTrip("), "\(text)")
        #expect(text.contains("place must have 1 to 20") && text.contains("Holiday("), "\(text)")
        try await worker.perform { context throws in
            context.rollback()
            context.insert("Conference")["code"] = "X1"
            context.insert("BusinessTrip")["code"] = "X1"
        }
        let double = await #expect(throws: SaveError.self) { try await worker.save() }
        #expect(double?.description.contains("BusinessTrip.code must be unique") == true, "\(String(describing: double))")
        await worker.perform { $0.rollback() }
        let updated = try await container.coordinator.batchUpdate(
            EntityFetchRequest("Holiday"), set: ["place": "Oslo", "days": 7])
        #expect(updated.updatedCount == 1)
        await #expect(throws: FetchError.self) {
            try await container.coordinator.batchUpdate(EntityFetchRequest("Trip"), set: ["place": "Oslo"])
        }
        await #expect(throws: SaveError.self) {
            try await container.coordinator.batchUpdate(EntityFetchRequest("BusinessTrip"), set: ["perDiem": .null])
        }
        try await container.coordinator.insert(into: "Conference", ["name", "topic"], rows: [["A", "B"], ["C", "D"]])
        let deleted = try await container.coordinator.batchDelete(EntityFetchRequest("BusinessTrip"))
        #expect(deleted.deletedCount == 4)
        try await worker.perform { context throws in
            context.refreshAllObjects()
        }
        try await container.coordinator.newBackgroundContext().perform { context throws in
            #expect(try context.kinds("Trip") == ["Trip", "Holiday"])
            let holiday = try #require(try context.fetch(EntityFetchRequest("Holiday")).first)
            #expect(holiday["place"] == "Oslo")
        }
        try await container.close()
    }

    /// Catches: an object that changes its class, and a relationship to holidays that leads to a business trip.
    @Test(arguments: StoreKind.allCases)
    func `S108, S181: no merge policy puts an object of one class in the place of another`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.numberedModel())
        let coordinator = container.coordinator
        try await coordinator.insert(into: "BusinessTrip", ["name", "number"], rows: [["a", "1"]])
        for policy in [MergePolicy.objectTrump, .overwrite, .storeTrump, .rollback] {
            for isRelated in [false, true] {
                let worker = coordinator.newBackgroundContext()
                await worker.perform { context in
                    context.mergePolicy = policy
                    let holiday = context.insert("Holiday")
                    holiday["number"] = "1"
                    if isRelated { context.insert("Person").setRelatedObject("favorite", to: holiday) }
                }
                switch policy {
                case .storeTrump, .rollback:
                    if !isRelated { try await worker.save() }
                default: break
                }
                guard await worker.perform({ $0.hasChanges }) else { continue }
                let error = await #expect(throws: SaveError.self) { try await worker.save() }
                #expect(error?.code == .uniqueConstraint, "\(policy), \(isRelated)")
            }
        }
        // An object of the same class gives its values to that of the store.
        let worker = coordinator.newBackgroundContext()
        await worker.perform { context in
            context.mergePolicy = .objectTrump
            let trip = context.insert("BusinessTrip")
            trip["name"] = "b"
            trip["number"] = "1"
        }
        try await worker.save()
        try await coordinator.newBackgroundContext().perform { context throws in
            #expect(try context.kinds("Trip") == ["BusinessTrip"])
            #expect(try context.fetch(EntityFetchRequest("Trip")).map { $0["name"] } == ["b"])
            #expect(try context.count(EntityFetchRequest("Person")) == 0)
        }
        #expect(try coordinator.store.verify() == [])
        try await container.close()
    }

    @Test func `S180: a hierarchy that cannot be stored is refused`() {
        func reason(_ change: (inout [EntityDescription]) -> Void) -> ModelError.Reason? {
            do { _ = try Trips.model(change) } catch { return (error as? ModelError)?.reason }
            return nil
        }
        #expect(reason { _ in } == nil)
        #expect(reason { $0[1].superentity = "Journey" } == .noSuchSuperentity)
        #expect(reason { $0[0].superentity = "Conference" } == .circularInheritance)
        #expect(reason { $0[1].properties.append(.attribute(.init(name: "Name", type: .string))) } == .duplicateProperty)
        #expect(reason { $0[3].properties.append(.attribute(.init(name: "perDiem", type: .int64))) } == .conflictingProperty)
        #expect(reason { $0[3].properties.append(.attribute(.init(name: "perDiem", type: .double))) } == nil)
        #expect(reason { $0[1].indexes = [.unique("name")] } == .wrongIndex)
        #expect(reason { $0[1].indexes = [.unique("name", "perDiem")] } == nil)
        // Holidays have a place too, and would have to be unique with business trips.
        #expect(reason { $0[1].indexes = [.unique("name", "place")] } == .wrongIndex)
        let code = PropertyDescription.attribute(.init(name: "code", type: .string, isOptional: true))
        #expect(reason { $0[3].properties.append(code) } == .conflictingProperty)
        let unique = PropertyDescription.attribute(.init(name: "perDiem", type: .double, index: .unique))
        #expect(reason { $0[3].properties.append(unique) } == .conflictingProperty)
    }

    /// Catches: a report that applies the rules of every subentity to all objects of the hierarchy.
    @Test(arguments: StoreKind.allCases)
    func `S185: a validation report applies the rules of a subentity to its objects only`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Trips.model())
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { _ = Trips.insertAll($0) }
        #expect(try await worker.perform { try $0.validationReport() }.isValid)
        try await worker.save()
        let report = try await container.coordinator.validationReport()
        #expect(report.isValid && report.checkedCount > 0, "\(report)")
        try await container.close()
    }
}
