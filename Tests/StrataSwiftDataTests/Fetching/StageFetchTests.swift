import StrataSwiftData
import Testing

private enum BoatsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self] }

    @Model final class Boat {
        var name: String
        init(name: String) { self.name = name }
    }
}

private enum BoatsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Boat.self] }

    @Model final class Boat {
        var name: String
        var length: Int?
        var label: String { name.uppercased() }
        init(name: String) { self.name = name }
    }
}

private enum BoatsPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [BoatsV1.self, BoatsV2.self]
    static let stages: [MigrationStage] = [
        .custom(
            fromVersion: BoatsV1.self, toVersion: BoatsV2.self, willMigrate: nil,
            didMigrate: { context in
                // The history of the copy that the migration changes.
                let saves = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
                #expect(saves.first?.changes.count == 1)
                for boat in try context.fetch(FetchDescriptor<BoatsV2.Boat>()) { boat.name = "changed" }
                context.insert(BoatsV2.Boat(name: "new"))
                for (label, count) in [("OLD", 1), ("CHANGED", 0), ("NEW", 0)] {
                    var request = FetchDescriptor<BoatsV2.Boat>(predicate: #Predicate { $0.label == label })
                    request.includePendingChanges = false
                    let found = try context.fetch(request).map(\.name)
                    #expect(found == Array(repeating: "changed", count: count), "\(label)")
                    request.includePendingChanges = true
                    let all = try context.fetchCount(request)
                    #expect(all == 1 - count, "\(label)")
                }
                var sorted = FetchDescriptor<BoatsV2.Boat>(sortBy: [SortDescriptor(\.label)])
                sorted.includePendingChanges = false
                let names = try context.fetch(sorted).map(\.name)
                #expect(names == ["changed"])
            })
    ]
}

/// Requests of the context that a custom stage of a migration gets.
@Suite struct StageFetchTests {
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `a stage's fetch without pending changes that is answered in memory finds the saved values`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let old = try ModelContainer(for: Schema(versionedSchema: BoatsV1.self), configurations: file.configuration)
            do {
                let context = ModelContext(old)
                context.insert(BoatsV1.Boat(name: "old"))
                try context.save()
            }
            try await old.close()
            let container = try ModelContainer(
                for: Schema(versionedSchema: BoatsV2.self), migrationPlan: BoatsPlan.self, configurations: file.configuration)
            let context = ModelContext(container)
            defer { withExtendedLifetime(context) {} }
            let names = try context.fetch(FetchDescriptor<BoatsV2.Boat>(sortBy: [SortDescriptor(\.name)])).map(\.name)
            #expect(names == ["changed", "new"])
        }
    }
}
