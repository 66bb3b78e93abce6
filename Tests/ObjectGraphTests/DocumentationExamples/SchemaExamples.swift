import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel

/// The examples in the documentation comments of models and schemas, compiled. The architecture tests compare both.
@MainActor private enum SchemaExamples {
    static func comparing() {
        // Sources/ObjectGraph/Fetching/Sorting/SortBy.swift
        let request = FetchRequest<Track>(sortBy: [.init(\.title, comparing: .localizedStandard)])
        // end
        print(request)
    }

    static func placingNil() {
        // Sources/ObjectGraph/Fetching/Sorting/SortBy.swift
        let request = FetchRequest<Track>(sortBy: [.init(\.playCount, .descending, nils: .last), .init(\.title)])
        // end
        print(request)
    }

    static func entities(_ model: Model) {
        // Sources/ObjectGraph/Model/Entity.swift
        if let track = model.entity(named: "Track") {
            print(track.attributes.map(\.name), track.relationships.map(\.name))
        }
        // end
    }

    static func entityParts(_ entity: Entity, _ model: Model) {
        // Sources/ObjectGraph/Model/Entity.swift
        for attribute in entity.attributes where attribute.index == .unique { print(attribute.name, attribute.type) }
        // end
        // Sources/ObjectGraph/Model/Entity.swift
        for relationship in entity.relationships where relationship.deleteRule == .cascade {
            print(relationship.name, model.entities[relationship.destination].name)
        }
        // end
    }

    static func deleteRules() {
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let tracks = RelationshipDescription(
            name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany, deleteRule: .deny)
        // end
        print(tracks)
    }

    static func cardinalities() {
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let composer = RelationshipDescription(name: "composer", destination: "Artist", cardinality: .toOne)
        // end
        print(composer)
    }

    static func properties() {
        // Sources/ObjectGraph/Model/EntityDescription.swift
        let properties: [PropertyDescription] = [
            .attribute(AttributeDescription(name: "title", type: .string)),
            .relationship(RelationshipDescription(name: "album", destination: "Album", cardinality: .toOne)),
        ]
        // end
        print(properties)
    }

    static func inferring() {
        // Sources/ObjectGraph/Model/InferredInverses.swift
        let album = RelationshipDescription(name: "album", destination: "Album", cardinality: .toOne, inference: .wanted)
        // end
        print(album)
    }

    static func modelErrors(_ descriptions: [EntityDescription]) -> Model? {
        // Sources/ObjectGraph/Model/ModelError.swift
        do {
            return try Model(descriptions)
        } catch {
            print(error.entity, error.property ?? "", error.remedy)
            return nil
        }
        // end
    }

    static func fixtures(_ history: ModelHistory, _ folder: URL) async throws {
        // Sources/ObjectGraph/ModelHistory/ModelHistory.swift
        do {
            _ = try await history.check(fixtures: folder)
        } catch let error as FixtureError {
            print(error.file.lastPathComponent, error.error)
        }
        // end
    }

    static func stages(_ models: (v1: Model, v2: Model)) {
        // Sources/ObjectGraph/Stacks/MigrationPlan.swift
        let titles = MigrationStage.custom(
            from: models.v1, to: models.v2,
            didMigrate: { context in
                for track in try context.fetch(EntityFetchRequest("Track")) { track["sortTitle"] = track["title"] }
            })
        // end
        print(titles)
    }

    static func columnTypes() {
        // Sources/StoreModel/Schema/StoreSchema.swift
        let released = AttributeDescription(name: "released", type: .date, isOptional: true)
        // end
        print(released)
    }

    static func indexKinds() {
        // Sources/StoreModel/Schema/StoreSchema.swift
        let isrc = AttributeDescription(name: "isrc", type: .string, index: .unique)
        // end
        print(isrc)
    }

    static func versions(_ descriptions: [EntityDescription]) throws {
        // Sources/StoreModel/Schema/SchemaVersion.swift
        let model = try Model(descriptions, version: SchemaVersion(2, 1, 0))
        // end
        print(model)
    }

    static func migrating(_ model: Model, _ file: URL, _ plan: MigrationPlan) async throws {
        // Sources/StoreModel/Schema/SchemaEvolution.swift
        let container = try await PersistentContainer(model: model, store: .lmdb(file), migrationPlan: plan) { progress in
            print(progress.activity, progress.completed, progress.total)
        }
        // end
        print(container.stack)
    }
}
