import ObjectGraph
import StoreInterface
import StoreModel

/// The examples in the documentation comments of validation, compiled. The architecture tests compare both.
@MainActor private enum ValidationExamples {
    static func describing() -> [Any] {
        // Sources/ObjectGraph/Validation/PropertyRule.swift
        let title = AttributeDescription(name: "title", type: .string, rules: [.length(1...80)])
        let isrc = AttributeDescription(
            name: "isrc", type: .string, isOptional: true, rules: [.required, .pattern("[A-Z]{2}[A-Z0-9]{3}[0-9]{7}")])
        let tracks = RelationshipDescription(
            name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, rules: [.count(1...)])
        // end
        return [title, isrc, tracks]
    }

    static func describingLength() -> AttributeDescription {
        // Sources/ObjectGraph/ObjectGraph.docc/ValidatingObjects.md
        let title = AttributeDescription(name: "title", type: .string, rules: [.length(1...80)])
        // end
        return title
    }

    static func checking(_ track: Track, show: (String) -> Void) {
        // Sources/ObjectGraph/Validation/RuleViolation.swift
        for case let violation as RuleViolation in track.validationErrors() {
            print(violation.message)  // title must have 1 to 80 characters, has 0
        }
        // end
        // Sources/ObjectGraph/Validation/ManagedObject+Validation.swift
        do { try track.validate(\.title) } catch { show("\(error)") }
        // end
    }

    static func saving(_ context: ManagedObjectContext) async throws {
        // Sources/ObjectGraph/Validation/ValidationErrors.swift
        do {
            try await context.save()
        } catch SaveError.validation(let errors) {
            for violation in errors.ruleViolations { print(violation.message) }
        }
        // end
    }

    static func reporting(_ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Validation/ValidationReport.swift
        let report = try await container.coordinator.validationReport()
        if !report.isValid { print(report) }
        // end
    }

    static func migrating(_ models: (v1: Model, v2: Model)) -> MigrationStage {
        // Sources/ObjectGraph/Validation/ValidationReport.swift
        let stage = MigrationStage.custom(
            from: models.v1, to: models.v2,
            didMigrate: { context in
                for violation in try context.validationReport().violations where violation.property == "title" {
                    guard let id = violation.objectID else { continue }
                    try context.existingObject(with: id)["title"] = "untitled"
                }
                try context.validationReport().requireValid()
            })
        // end
        return stage
    }
}
