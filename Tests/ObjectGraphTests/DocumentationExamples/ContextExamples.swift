import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel

/// The examples in the documentation comments of contexts and saves, compiled. The architecture tests compare both.
@MainActor private enum ContextExamples {
    static func opening(_ file: URL) async throws {
        // Sources/ObjectGraph/Stacks/PersistentContainer.swift
        let container = try await PersistentContainer(for: Track.self, Album.self, store: .lmdb(file))
        container.mainContext.insert(Track(title: "Baguette"))
        try await container.mainContext.save()
        // end
        // Sources/ObjectGraph/Stacks/ContextStack.swift
        let nested = try await PersistentContainer(for: Track.self, Album.self, store: .lmdb(file), stack: .nested)
        let draft = nested.newBackgroundContext(name: "draft")  // a child of the main context
        // end
        print(draft)
        try await contexts(container, ["Baguette"], isrc: "GBAYE6300001")
    }

    static func contexts(_ container: PersistentContainer, _ titles: [String], isrc: String) async throws {
        // Sources/ObjectGraph/Contexts/Executors/BackgroundContext.swift
        let importer = container.newBackgroundContext(name: "importer")
        let ids = await importer.perform { context in
            titles.map { title in
                let track = Track(title: title)
                context.insert(track)
                return track.id
            }
        }
        try await importer.save()
        // end
        let (context, id) = (container.mainContext, ids[0])
        // Sources/ObjectGraph/Contexts/ManagedObjectContext.swift
        let track = try context.existingObject(Track.self, with: id)
        track.playCount += 1
        context.insert(Album(title: "Live"))
        try await context.save()
        // end
        relating(in: context)
    }

    static func relating(in context: ManagedObjectContext) {
        // Sources/ObjectGraph/Contexts/Changes/ManagedObjectContext+Objects.swift
        let album = Album(title: "Live")
        context.insert(album)
        let track = Track(title: "Intro")
        track.album = album  // Inserts the track, too.
        // end
    }

    static func lookingUp(_ context: ManagedObjectContext, _ selection: [ObjectID]) {
        // Sources/ObjectGraph/Contexts/Changes/ManagedObjectContext+Objects.swift
        for id in selection {
            if let track = context.model(for: id) as? Track { track.playCount += 1 }
        }
        // end
    }

    static func performing(_ importer: BackgroundContext, _ url: Lines) async throws {
        // Sources/ObjectGraph/Contexts/Executors/BackgroundContext.swift
        try await importer.perform { _, context in
            for try await line in url.lines { context.insert(Track(title: line)) }
            try await context.save()
        }
        // end
        // Sources/ObjectGraph/Contexts/Executors/BackgroundContext.swift
        let id = try await importer.perform(andSave: .durable) { context in
            let track = Track(title: "Baguette")
            context.insert(track)
            return track.id
        }
        // end
        print(id)
    }

    static func transactions(_ container: PersistentContainer, isrc: String) async throws {
        // Sources/ObjectGraph/Stacks/PersistentContainer+Transactions.swift
        let titles = try await container.read { context in
            try context.fetch(FetchRequest<Track>(sortBy: [.init(\.title)])).map(\.title)
        }
        // end
        print(titles)
        // Sources/ObjectGraph/Stacks/PersistentContainer+Transactions.swift
        try await container.write(retrying: 5) { context in
            guard let track = try context.fetch(FetchRequest<Track>(where: #Predicate { $0.isrc == isrc })).first else { return }
            track.playCount += 1
        }
        // end
    }

    static func notices(_ context: ManagedObjectContext) {
        var observation: ObservationToken?
        // Sources/ObjectGraph/Contexts/Merging/ManagedObjectContext+Notices.swift
        observation = context.observe { notice in
            if notice.kind == .didSave { upload(notice.changes) }
        }
        // end
        // Sources/ObjectGraph/Contexts/Merging/ObservationToken.swift
        let token = context.observe { notice in print(notice.kind) }
        token.cancel()
        // end
        observation?.cancel()
    }

    static func saving(_ context: ManagedObjectContext, _ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Coordination/Checking/SaveError.swift
        do {
            try await context.save()
        } catch SaveError.conflicts {
            context.refreshAllObjects()
        }
        // end
        // Sources/StoreModel/Stores/StoreError.swift
        do {
            try await context.save()
        } catch let error as StoreError where error.code == .full {
            show(error.localizedDescription)
        }
        // end
        // Sources/StoreInterface/StoreCapabilities.swift
        try await context.save(.deferred(within: .seconds(5)))  // visible at once
        try await container.flush()  // on disk
        // end
        // Sources/ObjectGraph/Coordination/Checking/MergePolicy.swift
        context.mergePolicy = .custom { conflicts in
            conflicts.reduce(into: [:]) { resolutions, conflict in
                resolutions[conflict.objectID] = conflict.isDeletedInStore ? .rollback : .objectTrump
            }
        }
        // end
        // Sources/ObjectGraph/Coordination/Checking/MergePolicy.swift
        do {
            try await context.save()
        } catch SaveError.conflicts(let conflicts) {
            for conflict in conflicts { print(conflict.entityName, conflict.properties.map(\.name)) }
        }
        // end
        // Sources/ObjectGraph/Coordination/Checking/SavePreview.swift
        let preview = await context.previewSave()
        if preview.conflicts.isEmpty && preview.failure == nil { try await context.save() }
        // end
    }

    private static func upload(_ changes: ChangeSet) {}
    private static func show(_ text: String) {}

    /// A file whose lines can be iterated, like `URL` on Apple's systems.
    struct Lines: Sendable {
        let lines: AsyncThrowingStream<String, any Error>
    }
}
