import StrataSwiftData
import Testing

// Three versions of one schema. The last one drops what the second one has renamed and added.

enum ShelvesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Shelf.self] }

    @Model final class Shelf {
        var label: String
        var place: String
        init(label: String, place: String) {
            self.label = label
            self.place = place
        }
    }
}

enum ShelvesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Shelf.self] }

    @Model final class Shelf {
        var label: String
        @Attribute(originalName: "place") var room: String
        var note: String = ""
        init(label: String, room: String) {
            self.label = label
            self.room = room
        }
    }
}

enum ShelvesV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Shelf.self] }

    @Model final class Shelf {
        var label: String
        init(label: String) { self.label = label }
    }
}

/// Each stage is lightweight.
enum ShelvesPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelvesV1.self, ShelvesV2.self, ShelvesV3.self]
    static var stages: [MigrationStage] { [] }
}

/// The first stage fills what the second one drops.
enum FilledShelvesPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelvesV1.self, ShelvesV2.self, ShelvesV3.self]
    static let stages: [MigrationStage] = [
        .custom(
            fromVersion: ShelvesV1.self, toVersion: ShelvesV2.self, willMigrate: nil,
            didMigrate: { context in
                for shelf in try context.fetch(FetchDescriptor<ShelvesV2.Shelf>()) { shelf.note = shelf.label }
            }),
        .lightweight(fromVersion: ShelvesV2.self, toVersion: ShelvesV3.self),
    ]
}

/// The first stage skips the second version, which has a stage of its own.
enum DirectShelvesPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelvesV1.self, ShelvesV2.self, ShelvesV3.self]
    static let stages: [MigrationStage] = [
        .custom(
            fromVersion: ShelvesV1.self, toVersion: ShelvesV3.self, willMigrate: nil,
            didMigrate: { context in
                for shelf in try context.fetch(FetchDescriptor<ShelvesV3.Shelf>()) { shelf.label += " of 1" }
            }),
        .custom(
            fromVersion: ShelvesV2.self, toVersion: ShelvesV3.self, willMigrate: nil,
            didMigrate: { context in
                for shelf in try context.fetch(FetchDescriptor<ShelvesV3.Shelf>()) { shelf.label += " of 2" }
            }),
    ]
}

/// Opening a file with a program that is newer by more than one version of the models.
@Suite struct SkippedVersionTests {
    /// Catches: a plan that may drop only what the file stores, so that a stage cannot drop what an earlier one has renamed or added.
    @Test(arguments: [false, true], ModelConfiguration.Store.allCases)
    func `S164: a stage drops what an earlier stage has renamed or added`(
        _ isFilled: Bool, _ store: ModelConfiguration.Store
    ) async throws {
        let plans: [any SchemaMigrationPlan.Type] = [ShelvesPlan.self, FilledShelvesPlan.self]
        try await TestFile.use(store) { file in
            let old = try ModelContainer(for: Schema(versionedSchema: ShelvesV1.self), configurations: file.configuration)
            do {
                let context = ModelContext(old)
                context.insert(ShelvesV1.Shelf(label: "poems", place: "hall"))
                try context.save()
            }
            try await old.close()

            let container = try ModelContainer(
                for: Schema(versionedSchema: ShelvesV3.self), migrationPlan: plans[isFilled ? 1 : 0],
                configurations: file.configuration)
            do {
                let context = ModelContext(container)
                #expect(try context.fetch(FetchDescriptor<ShelvesV3.Shelf>()).map(\.label) == ["poems"])
            }
            try await container.close()
        }
    }

    /// Catches: a plan that knows no way for files of a version that one of its stages skips.
    @Test(arguments: [false, true], ModelConfiguration.Store.allCases)
    func `S164: a file of a version that a stage skips has its own stage, and an older file goes the direct way`(
        _ isSkipped: Bool, _ store: ModelConfiguration.Store
    ) async throws {
        let versions: [any VersionedSchema.Type] = [ShelvesV1.self, ShelvesV2.self]
        try await TestFile.use(store) { file in
            let schema = Schema(versionedSchema: versions[isSkipped ? 1 : 0])
            let old = try ModelContainer(for: schema, configurations: file.configuration)
            do {
                let context = ModelContext(old)
                if isSkipped {
                    context.insert(ShelvesV2.Shelf(label: "poems", room: "hall"))
                } else {
                    context.insert(ShelvesV1.Shelf(label: "poems", place: "hall"))
                }
                try context.save()
            }
            try await old.close()

            let container = try ModelContainer(
                for: Schema(versionedSchema: ShelvesV3.self), migrationPlan: DirectShelvesPlan.self,
                configurations: file.configuration)
            do {
                let context = ModelContext(container)
                let labels = try context.fetch(FetchDescriptor<ShelvesV3.Shelf>()).map(\.label)
                #expect(labels == [isSkipped ? "poems of 2" : "poems of 1"])
            }
            try await container.close()
        }
    }
}
