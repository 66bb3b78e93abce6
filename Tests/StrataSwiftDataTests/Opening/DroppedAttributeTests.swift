import StrataSwiftData
import Testing

private enum DepotV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Vehicle.self, Bus.self, Truck.self] }

    @Model class Vehicle {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Bus: Vehicle {
        var note: String?
        init(bus name: String, note: String) {
            super.init(name: name)
            self.note = note
        }
    }

    @Model final class Truck: Vehicle {
        var note: String?
        var load: Int = 0
        init(truck name: String, note: String) {
            super.init(name: name)
            self.note = note
            load = 7
        }
    }
}

/// A truck has no note any more.
private enum DepotV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Vehicle.self, Bus.self, Truck.self] }

    @Model class Vehicle {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Bus: Vehicle {
        var note: String?
        init(bus name: String, note: String) {
            super.init(name: name)
            self.note = note
        }
    }

    @Model final class Truck: Vehicle {
        var load: Int = 0
        init(truck name: String) { super.init(name: name) }
    }
}

private enum DepotPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [DepotV1.self, DepotV2.self]
    static var stages: [MigrationStage] { [] }
}

@Suite struct DroppedAttributeTests {
    /// Catches: a file that is refused for an attribute of a subclass which the schema does not have any more.
    @Test(arguments: [false, true], ModelConfiguration.Store.allCases)
    func `S165: a subclass may drop its attributes, also one that another subclass keeps`(
        _ isPlanned: Bool, _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let old = try ModelContainer(for: Schema(versionedSchema: DepotV1.self), configurations: file.configuration)
            do {
                let context = ModelContext(old)
                context.insert(DepotV1.Bus(bus: "one", note: "red"))
                context.insert(DepotV1.Truck(truck: "two", note: "blue"))
                try context.save()
            }
            try await old.close()
            let container = try ModelContainer(
                for: Schema(versionedSchema: DepotV2.self), migrationPlan: isPlanned ? DepotPlan.self : nil,
                configurations: file.configuration)
            let context = ModelContext(container)
            // Objects do not retain their context.
            defer { withExtendedLifetime(context) {} }
            let notes = try context.fetch(FetchDescriptor<DepotV2.Bus>()).map(\.note)
            let trucks = try context.fetch(FetchDescriptor<DepotV2.Truck>()).map(\.name)
            #expect(notes == ["red"])
            #expect(trucks == ["two"])
        }
    }
}
