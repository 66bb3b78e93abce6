import Foundation
import Strata
import Testing

/// Classes with `@Model` whose superclass is a model (S180 to S184).
@Suite @MainActor struct SubclassTests {
    typealias Shape = SubclassShapes.Shape
    typealias Polygon = SubclassShapes.Polygon
    typealias Square = SubclassShapes.Square
    typealias Circle = SubclassShapes.Circle
    typealias Point = SubclassShapes.Point

    @Test(arguments: TestStore.allCases)
    func `S180: a fetch of a class returns objects of its subclasses, each in its class`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: Excursion.self, BusinessExcursion.self, Tourist.self, Sponsor.self, store: description)
            let main = container.mainContext
            let ann = Tourist(name: "Ann", excursions: [])
            main.insert(ann)
            let plain = Excursion(name: "Alps", days: 3)
            let business = BusinessExcursion(name: "Rome", perDiem: 40)
            #expect(business.name == "Rome" && business.days == 1 && business.perDiem == 40)
            business.days = 5
            ann.excursions = [plain, business]
            let acme = Sponsor(title: "Acme", excursions: [])
            business.sponsor = acme
            #expect(acme.excursions == [business])
            try await main.save()
            let background = container.newBatchOperationContext()
            try await background.perform { context throws in
                let found = try context.fetch(FetchRequest<Excursion>(sortBy: [.init(\.name)]))
                #expect(found.map { type(of: $0) == BusinessExcursion.self } == [false, true])
                let business = try #require(found[1] as? BusinessExcursion)
                #expect(business.perDiem == 40 && business.days == 5 && business.name == "Rome")
                #expect(business.sponsor?.title == "Acme" && business.sponsor?.excursions == [business])
                #expect(try context.fetch(FetchRequest<BusinessExcursion>()) == [business])
                let ann = try #require(try context.fetch(FetchRequest<Tourist>()).first)
                #expect(ann.excursions.map { $0 is BusinessExcursion } == [false, true])
                #expect(business.tourist === ann)
                let same: Excursion = try context.existingObject(with: business.id)
                #expect(same === business)
                #expect(throws: ContextError.self) { try context.existingObject(BusinessExcursion.self, with: found[0].id) }
                business.perDiem = 41
                context.delete(found[0])
            }
            try await background.save()
            main.refreshAllObjects()
            #expect(business.perDiem == 41)
            main.delete(ann)
            try await main.save()
            #expect(try main.count(FetchRequest<Excursion>()) == 0)
            try await container.close()
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S182: predicates test classes and cast to them`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: BusinessExcursion.self, Tourist.self, Sponsor.self, store: description)
            let main = container.mainContext
            for (name, perDiem) in [("a", 5.0), ("b", 50)] { main.insert(BusinessExcursion(name: name, perDiem: perDiem)) }
            main.insert(Excursion(name: "c"))
            let tourist = Tourist(name: "T", excursions: [])
            main.insert(tourist)
            tourist.excursions = try main.fetch(FetchRequest<Excursion>())
            for _ in 0..<2 {
                func names(_ predicate: Predicate<Excursion>) throws -> [String] {
                    let request = FetchRequest(where: predicate, sortBy: [.init(\.name)])
                    let found = try main.fetch(request).map(\.name)
                    #expect(try main.count(request) == found.count)
                    return found
                }
                #expect(try names(#Predicate { $0 is BusinessExcursion }) == ["a", "b"])
                #expect(try names(#Predicate { !($0 is BusinessExcursion) }) == ["c"])
                #expect(try names(#Predicate { ($0 as? BusinessExcursion)?.perDiem ?? 0 > 10 }) == ["b"])
                #expect(try names(CostlyExcursions.predicate).isEmpty)
                #expect(try names(#Predicate { ($0 as? BusinessExcursion)?.perDiem ?? 99 > 10 }) == ["b", "c"])
                #expect(try names(#Predicate { ($0 as? BusinessExcursion)?.perDiem == nil }) == ["c"])
                #expect(try names(#Predicate { ($0 as? BusinessExcursion)?.sponsor == nil }) == ["a", "b", "c"])
                #expect(try names(#Predicate { ($0 as? BusinessExcursion) == nil || $0.name == "a" }) == ["a", "c"])
                #expect(try names(#Predicate { ($0 as? BusinessExcursion).flatMap { $0.perDiem * 2 > 20 } ?? false }) == ["b"])
                let own = FetchRequest<BusinessExcursion>(
                    where: #Predicate { $0.name != "a" && $0.perDiem > 1 }, sortBy: [.init(\.days)])
                #expect(try main.fetch(own).map(\.name) == ["b"])
                let people = #Predicate<Tourist> { $0.excursions.contains { ($0 as? BusinessExcursion)?.perDiem ?? 0 > 10 } }
                #expect(try main.count(where: people) == 1)
                let counted = #Predicate<Tourist> { $0.excursions.filter { $0 is BusinessExcursion }.count == 2 }
                #expect(try main.count(where: counted) == 1)
                #expect(try main.sum(\BusinessExcursion.perDiem) == 55)
                #expect(try main.sum(\BusinessExcursion.days) == 2)
                try await main.save()
            }
            try await container.close()
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S181: models of a hierarchy can be created while others of it are being created`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: Square.self, Circle.self, Point.self, store: description)
            let main = container.mainContext
            let point = Point()
            main.insert(point)
            #expect(throws: Polygon.Refused.self) { try Square(refusedAt: point, side: 0) }
            #expect(point.squares.isEmpty && main.insertedObjects.count == 1)
            // The square arrives in the context of the point, to which its initializer relates it.
            let square = Square(label: "s", side: 2, metadata: point)
            #expect(point.squares == [square])
            #expect(square.managedObjectContext === main)
            #expect(square.corners == 4 && square.label == "s" && square.code == "s" && square.side == 2)
            #expect(square.color == "red" && square.notes == [] && square.next == nil && square.others == [])
            let around = Polygon(around: "inner")
            #expect(around.label == "inner" && around.code == "around" && around.corners == 3)
            #expect((around.next as? Circle)?.label == "before")
            #expect(throws: Polygon.Refused.self) { try Polygon(refusing: "") }
            let made = try Polygon(refusing: "kept")
            #expect(made.label == "kept" && made.code == "kept")
            around.others = [made, square]
            main.insert(around)
            square.notes = ["x"]
            try await main.save()
            #expect(square.id.entity == around.id.entity)
            try await container.newBatchOperationContext().perform { context throws in
                let shapes = try context.fetch(FetchRequest<Shape>(sortBy: [.init(\.label)]))
                #expect(
                    shapes.map { "\(type(of: $0)) \($0.label)" } == [
                        "Circle before", "Polygon inner", "Polygon kept", "Square s",
                    ])
                let around = try #require(shapes[1] as? Polygon)
                #expect(Set(around.others.map(\.label)) == ["kept", "s"] && (around.next as? Circle)?.woken == 1)
                let square = try #require(shapes[3] as? Square)
                #expect(square.notes == ["x"] && square.metadata?.squares == [square] && square.corners == 4)
                #expect(try context.fetch(FetchRequest<Polygon>(where: #Predicate { $0.label == "s" })) == [square])
            }
            #expect(weakReferenceIsCleared())
            try await container.close()
        }
    }

    private func weakReferenceIsCleared() -> Bool {
        weak var gone: Square?
        do {
            let square = Square(label: "gone", side: 1)
            gone = square
        }
        return gone == nil
    }

    @Test func `S180: a subclass without an initializer is one error`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let messages = try await compiler.messages(
            about: """
                import Strata
                @Model class Base { var a: Int; init() { a = 1 } }
                @Model final class Sub: Base { var b = 2 }
                """)
        let errors = messages.filter { $0.contains(" error: ") }
        #expect(errors.count == 1 && errors[0].contains("calls super.init"), "\(errors)")
    }
}
