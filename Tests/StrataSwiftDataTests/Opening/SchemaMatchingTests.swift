import StrataSwiftData
import Testing

@Model private final class Planet {
    var name: String
    init(_ name: String) { self.name = name }
}

@Model private final class Star {
    var name: String
    init(_ name: String) { self.name = name }
}

private enum RidesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Ride.self] }

    @Model class Ride {
        var name: String
        init(name: String) { self.name = name }
    }
}

private enum RidesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Ride.self, PaidRide.self] }

    @Model class Ride {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class PaidRide: Ride {
        var price: Double
        init(name: String, price: Double) {
            self.price = price
            super.init(name: name)
        }
    }
}

private enum RidesPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [RidesV1.self, RidesV2.self]
    static var stages: [MigrationStage] { [] }
}

private enum WheelsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Ride.self, Wheel.self] }

    @Model class Ride {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Wheel {
        var size: Int
        init(size: Int) { self.size = size }
    }
}

/// Adds a subclass, and does not list its superclass.
private enum WheelsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [PaidRide.self, Wheel.self] }

    @Model class Ride {
        var name: String
        init(name: String) { self.name = name }
    }

    @Model final class PaidRide: Ride {
        var price: Double = 0
        init(paid name: String) { super.init(name: name) }
    }

    @Model final class Wheel {
        var size: Int
        init(size: Int) { self.size = size }
    }
}

private enum WheelsPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [WheelsV1.self, WheelsV2.self]
    static var stages: [MigrationStage] { [] }
}

/// Opening files with lists of models, which have no version.
@Suite struct SchemaMatchingTests {
    private func planned(_ file: TestFile, _ types: any PersistentModel.Type...) throws -> ModelContainer {
        try ModelContainer(for: types, migrationPlan: RecipesPlan.self, configurations: file.configuration)
    }

    private func names(_ container: ModelContainer) throws -> [String] {
        let context = ModelContext(container)
        return try withExtendedLifetime(context) { try context.fetch(FetchDescriptor<Recipe>()).map(\.name).sorted() }
    }

    private func add(_ name: String, _ container: ModelContainer) throws {
        let context = ModelContext(container)
        context.insert(Recipe(name: name))
        try context.save()
    }

    /// Catches: a plan that migrates only containers of a versioned schema, so that the usual way to open a container fails.
    @Test(arguments: [false, true], ModelConfiguration.Store.allCases)
    func `S164: a plan migrates a file for a container of a list of models`(
        _ isVersioned: Bool, _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let first = isVersioned ? Schema(versionedSchema: RecipesV1.self) : Schema([RecipesV1.Recipe.self])
            let old = try ModelContainer(for: first, configurations: file.configuration)
            do {
                let context = ModelContext(old)
                context.insert(RecipesV1.Recipe(title: "soup", minutes: "20"))
                try context.save()
            }
            try await old.close()
            let container = try planned(file, Recipe.self)
            #expect(container.schema.version == RecipesV3.versionIdentifier)
            #expect(try names(container) == ["soup"])
            try add("stew", container)
            try await container.close()
            // Once more, with the models in another order.
            let again = try planned(file, RecipesV3.Step.self, Recipe.self)
            #expect(try names(again) == ["soup", "stew"])
            try await again.close()
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S164: a plan opens a file that a list of models made, and one of its last version`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            for schema in [Schema([RecipesV3.Step.self, Recipe.self]), Schema(versionedSchema: RecipesV3.self)] {
                let container = try ModelContainer(for: schema, configurations: file.configuration)
                try add("soup", container)
                try await container.close()
                let planned = try planned(file, Recipe.self)
                try add("stew", planned)
                try await planned.close()
            }
            let plain = try file.open(Recipe.self)
            #expect(plain.schema.version == RecipesV3.versionIdentifier)
            #expect(try names(plain) == ["soup", "soup", "stew", "stew"])
            try await plain.close()
        }
    }

    /// Catches: a list of models that takes the version of a file with other contents, and drops what a newer program stored.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S165: a list of models does not open a file of a version that stores more`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let container = try ModelContainer(
                for: Schema(versionedSchema: RecipesV3.self), configurations: file.configuration)
            try add("soup", container)
            try await container.close()
            #expect(throws: (any Error).self) { try file.open(RecipesV1.Recipe.self) }
            let again = try planned(file, Recipe.self)
            #expect(try names(again) == ["soup"])
            try await again.close()
        }
    }

    /// Catches: identifiers that lead to objects of another model, because they count the models of a list.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `an identifier leads to the same object if models are added or listed in another order`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Planet.self)
            let coded = try {
                let context = ModelContext(container)
                let planet = Planet("Mars")
                context.insert(planet)
                try context.save()
                return try JSONEncoder().encode(planet.persistentModelID)
            }()
            try await container.close()
            for _ in 0..<2 {
                let larger = try file.open(Star.self, Planet.self)
                do {
                    let context = ModelContext(larger)
                    context.insert(Star("Sun"))
                    try context.save()
                    let id = try JSONDecoder().decode(PersistentIdentifier.self, from: coded)
                    #expect((context.model(for: id) as? Planet)?.name == "Mars")
                    #expect(
                        try context.fetchCount(FetchDescriptor<Planet>(predicate: #Predicate { $0.persistentModelID == id })) == 1
                    )
                }
                try await larger.close()
            }
        }
    }

    /// Catches: a list of models that is compared with the plan's without the superclasses that a model adds.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S164, S180: a list of models without their superclass stands for the newest version of a plan`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let old = try ModelContainer(for: Schema(versionedSchema: RidesV1.self), configurations: file.configuration)
            do {
                let context = ModelContext(old)
                context.insert(RidesV1.Ride(name: "walk"))
                try context.save()
            }
            try await old.close()
            let container = try ModelContainer(
                for: RidesV2.PaidRide.self, migrationPlan: RidesPlan.self, configurations: file.configuration)
            #expect(container.schema.version == RidesV2.versionIdentifier)
            do {
                let context = ModelContext(container)
                #expect(try context.fetchCount(FetchDescriptor<RidesV2.Ride>()) == 1)
            }
            try await container.close()
        }
    }

    /// Catches: a subclass that moves its superclass behind the models of the file, so that identifiers lead to another model.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S164, S180: identifiers stay if a plan adds a subclass without listing its superclass`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let old = try ModelContainer(for: Schema(versionedSchema: WheelsV1.self), configurations: file.configuration)
            let coded = try {
                let context = ModelContext(old)
                let wheel = WheelsV1.Wheel(size: 7)
                context.insert(wheel)
                context.insert(WheelsV1.Ride(name: "walk"))
                try context.save()
                return try JSONEncoder().encode(wheel.persistentModelID)
            }()
            try await old.close()
            let container = try ModelContainer(
                for: Schema(versionedSchema: WheelsV2.self), migrationPlan: WheelsPlan.self, configurations: file.configuration)
            do {
                let context = ModelContext(container)
                let id = try JSONDecoder().decode(PersistentIdentifier.self, from: coded)
                #expect((context.model(for: id) as? WheelsV2.Wheel)?.size == 7)
            }
            try await container.close()
        }
    }
}
