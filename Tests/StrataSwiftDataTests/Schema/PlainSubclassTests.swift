import StrataSwiftData
import Testing

private enum Depot {
    @Model class Vehicle {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Truck: Vehicle {
        init(truck name: String) { super.init(name: name) }
    }

    @Model final class Van: Vehicle {
        override init(name: String) { super.init(name: name) }
    }

    @Model final class Car: Vehicle {
        @Transient var seats = 4
        init(car name: String) { super.init(name: name) }
    }
}

@Suite struct PlainSubclassTests {
    /// Catches: an anchor that is created twice, so that the model has another object than the one that it wraps.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S180: classes without initial values are read by other contexts, also without properties of their own`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let container = try ModelContainer(
                for: Depot.Vehicle.self, Depot.Truck.self, Depot.Van.self, Depot.Car.self, configurations: file.configuration)
            let context = ModelContext(container)
            let other = ModelContext(container)
            // Objects do not retain their context.
            defer { withExtendedLifetime((context, other)) {} }
            context.insert(Depot.Vehicle(name: "plain"))
            context.insert(Depot.Truck(truck: "truck"))
            context.insert(Depot.Van(name: "van"))
            context.insert(Depot.Car(car: "car"))
            try context.save()
            let trucks = try other.fetch(FetchDescriptor<Depot.Truck>()).map(\.name)
            let vans = try other.fetch(FetchDescriptor<Depot.Van>()).map(\.name)
            let cars = try other.fetch(FetchDescriptor<Depot.Car>()).map { "\($0.name) \($0.seats)" }
            let all = try other.fetch(FetchDescriptor<Depot.Vehicle>(sortBy: [SortDescriptor(\.name)])).map(\.name)
            #expect(trucks == ["truck"] && vans == ["van"] && cars == ["car 4"])
            #expect(all == ["car", "plain", "truck", "van"])
        }
    }
}
