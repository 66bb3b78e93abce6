import Strata
import Testing

/// The texts of transient properties, read from stored models.
private enum Preferences {
    /// The container with the settings. It is nil unless the test fetches on the main actor.
    @TaskLocal static var container: PersistentContainer?

    static func unit() -> String {
        guard let container else { return "none" }
        return MainActor.assumeIsolated {
            guard let setting = try? container.mainContext.fetch(FetchRequest<Setting>()).first else { return "missing" }
            return "\(setting.unit) in \(setting.language)"
        }
    }

    static func language() -> String {
        guard let container else { return "none" }
        return MainActor.assumeIsolated {
            guard let region = try? container.mainContext.fetch(FetchRequest<Region>()).first else { return "missing" }
            return region.language
        }
    }
}

@Model private final class Leg {
    var length: Int
    @Transient var unit = Preferences.unit()
}

@Model private final class Setting {
    var unit = "km"
    @Transient var language = Preferences.language()
}

@Model private final class Region {
    var language = "en"
}

/// Transient properties whose initial values read stored models while their own model is created.
@Suite @MainActor struct TransientReadTests {
    private func container(_ description: StoreDescription, _ stack: ContextStack) async throws -> PersistentContainer {
        try await PersistentContainer(for: Leg.self, Setting.self, Region.self, store: description, stack: stack)
    }

    /// Fetches while the initial values read the settings of a container.
    private func legs(in context: ManagedObjectContext, reading container: PersistentContainer) throws -> [Leg] {
        try Preferences.$container.withValue(container) {
            try context.fetch(FetchRequest<Leg>(sortBy: [.init(\.length)]))
        }
    }

    /// Catches: a fetched model with default values, whose changes are lost, because the model that its initial value read took its object.
    @Test(arguments: TestStore.allCases, ContextStack.allCases)
    func `S001: a model whose initial value reads models that read others is the fetched object`(
        _ store: TestStore, _ stack: ContextStack
    ) async throws {
        for readsOwnContext in [false, true] {
            try await store.use { description in
                // Kept until the end for the sake of the store in memory.
                let written = try await container(description, stack)
                for length in [5, 7] { written.mainContext.insert(Leg(length: length)) }
                written.mainContext.insert(Setting(unit: "mi"))
                written.mainContext.insert(Region(language: "no"))
                try await written.mainContext.save(through: .store)

                let opened = try await container(description, stack)
                let settings = readsOwnContext ? opened : try await container(description, stack)
                let main = opened.mainContext
                let found = try legs(in: main, reading: settings)
                #expect(found.map(\.length) == [5, 7] && found.map(\.unit) == ["mi in no", "mi in no"])
                #expect(found.allSatisfy { $0.managedObject.managedObjectContext === main })
                #expect(try main.fetch(FetchRequest<Leg>(sortBy: [.init(\.length)])) == found)
                try #require(found.count == 2)
                found[0].length = 6
                #expect(main.hasChanges)
                try await main.save(through: .store)
                let stored = try await opened.coordinator.newBackgroundContext().perform { context throws in
                    try context.fetch(FetchRequest<Leg>(sortBy: [.init(\.length)])).map(\.length)
                }
                #expect(stored == [6, 7])
                withExtendedLifetime((written, settings)) {}
            }
        }
    }
}
