import Platform
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

// The lists are alphabetical, so that a new model may come before an older one.

enum SongsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Song.self] }

    @Model final class Song {
        var title: String
        init(title: String) { self.title = title }
    }
}

enum SongsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Playlist.self, SongsV1.Song.self] }

    @Model final class Playlist {
        var minutes: String
        init(minutes: String) { self.minutes = minutes }
    }
}

enum SongsV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Album.self, Playlist.self, SongsV1.Song.self] }

    @Model final class Album {
        var title: String
        init(title: String) { self.title = title }
    }

    @Model final class Playlist {
        var minutes: Int = 0
        init() {}
    }
}

/// The second stage keeps values by the identifiers of their objects.
enum SongsPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [SongsV1.self, SongsV2.self, SongsV3.self]
    static var stages: [MigrationStage] {
        let minutes = Mutex<[PersistentIdentifier: String]>([:])
        return [
            .custom(
                fromVersion: SongsV1.self, toVersion: SongsV2.self, willMigrate: nil,
                didMigrate: { $0.insert(SongsV2.Playlist(minutes: "20")) }),
            .custom(
                fromVersion: SongsV2.self, toVersion: SongsV3.self,
                willMigrate: { context in
                    for list in try context.fetch(FetchDescriptor<SongsV2.Playlist>()) {
                        minutes.withLock { $0[list.persistentModelID] = list.minutes }
                    }
                },
                didMigrate: { context in
                    for list in try context.fetch(FetchDescriptor<SongsV3.Playlist>()) {
                        let known = minutes.withLock { $0[list.persistentModelID] }
                        if let known { list.minutes = Int(known) ?? 0 }
                    }
                }),
        ]
    }
}

enum EarlyShelves: VersionedSchema {
    static let versionIdentifier = Schema.Version(0, 2, 0)
    static var models: [any PersistentModel.Type] { [Shelf.self] }

    @Model final class Shelf {
        var label: String
        init(label: String) { self.label = label }
    }
}

enum EarlyPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [EarlyShelves.self]
    static var stages: [MigrationStage] { [] }
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

    /// Catches: a plan that knows no way for the file of a list of models, if one of its stages skips the version that stores the same.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S164: a file that a list of models wrote has the stage of the version that stores the same`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let old = try file.open(ShelvesV2.Shelf.self)
            do {
                let context = ModelContext(old)
                context.insert(ShelvesV2.Shelf(label: "poems", room: "hall"))
                try context.save()
            }
            try await old.close()
            let container = try ModelContainer(
                for: Schema(versionedSchema: ShelvesV3.self), migrationPlan: DirectShelvesPlan.self,
                configurations: file.configuration)
            do {
                let context = ModelContext(container)
                #expect(try context.fetch(FetchDescriptor<ShelvesV3.Shelf>()).map(\.label) == ["poems of 2"])
            }
            try await container.close()
        }
    }

    /// Catches: identifiers that change between two stages, because each orders the new models by its own list.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S164: a model that the file does not have keeps its identifiers in all stages`(_ store: ModelConfiguration.Store)
        async throws
    {
        try await TestFile.use(store) { file in
            let old = try ModelContainer(for: Schema(versionedSchema: SongsV1.self), configurations: file.configuration)
            try await old.close()
            let container = try ModelContainer(
                for: Schema(versionedSchema: SongsV3.self), migrationPlan: SongsPlan.self, configurations: file.configuration)
            do {
                let context = ModelContext(container)
                #expect(try context.fetch(FetchDescriptor<SongsV3.Playlist>()).map(\.minutes) == [20])
            }
            try await container.close()
        }
    }

    /// Catches: a list of models that writes its own version over an earlier one, so that the plan takes the file for a newer one.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S164: a list of models keeps the version of a file, also one before 1.0.0`(_ store: ModelConfiguration.Store)
        async throws
    {
        try await TestFile.use(store) { file in
            for isList in [false, true, false] {
                let container =
                    isList
                    ? try file.open(EarlyShelves.Shelf.self)
                    : try ModelContainer(
                        for: Schema(versionedSchema: EarlyShelves.self), migrationPlan: EarlyPlan.self,
                        configurations: file.configuration)
                try await container.close()
            }
        }
        try await TestFile.use(store) { file in
            try await file.open(EarlyShelves.Shelf.self).close()
            #expect(throws: SwiftDataError.backwardMigration) {
                _ = try ModelContainer(
                    for: Schema(versionedSchema: EarlyShelves.self), migrationPlan: EarlyPlan.self,
                    configurations: file.configuration)
            }
        }
    }
}
