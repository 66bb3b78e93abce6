import StrataSwiftData

// Three versions of one schema, and a plan with a custom stage.

enum RecipesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Recipe.self] }

    @Model final class Recipe {
        var title: String
        var minutes: String
        init(title: String, minutes: String) {
            self.title = title
            self.minutes = minutes
        }
    }
}

enum RecipesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Recipe.self, Step.self] }

    @Model final class Recipe {
        @Attribute(originalName: "title") var name: String
        var minutes: String
        @Relationship(deleteRule: .cascade, inverse: \Step.recipe) var steps: [Step] = []
        init(name: String, minutes: String) {
            self.name = name
            self.minutes = minutes
        }
    }

    @Model final class Step {
        var text: String
        var recipe: Recipe?
        init(_ text: String) { self.text = text }
    }
}

enum RecipesV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Recipe.self, Step.self] }

    @Model final class Recipe {
        var name: String
        var duration: Int = 0
        @Relationship(deleteRule: .cascade, inverse: \Step.recipe) var steps: [Step] = []
        init(name: String) { self.name = name }
    }

    @Model final class Step {
        var text: String
        var recipe: Recipe?
        init(_ text: String) { self.text = text }
    }
}

typealias Recipe = RecipesV3.Recipe

/// The schemas and stages are constants, as in many programs. Swift 6 accepts them because they can be sent between threads.
enum RecipesPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [RecipesV1.self, RecipesV2.self, RecipesV3.self]
    static var stages: [MigrationStage] { [renamed, measured] }

    private static let renamed = MigrationStage.lightweight(fromVersion: RecipesV1.self, toVersion: RecipesV2.self)
    private static let measured = MigrationStage.custom(
        fromVersion: RecipesV2.self, toVersion: RecipesV3.self, willMigrate: nil,
        didMigrate: { context in
            for recipe in try context.fetch(FetchDescriptor<RecipesV3.Recipe>()) { recipe.duration = recipe.name.count }
            try context.save()
        })
}
