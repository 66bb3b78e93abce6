import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel

/// The examples in the documentation comments of results, changes and errors, compiled. The architecture tests compare both.
@MainActor private enum ResultExamples {
    private static func iterating(_ drafts: KeyedCollection<String, Draft>) {
        // Sources/ObjectGraph/Collections/KeyedIterator.swift
        for (name, draft) in drafts where draft.isNew { print(name) }
        // end
    }

    static func finding(_ context: ManagedObjectContext, _ id: ObjectID) throws {
        // Sources/ObjectGraph/Contexts/Changes/ManagedObjectContext+Objects.swift
        do {
            show(try context.existingObject(Track.self, with: id).title)
        } catch ContextError.objectNotFound {
            show("This track was deleted.")
        }
        // end
    }

    static func savingThrough(_ draft: BackgroundContext) async throws {
        // Sources/ObjectGraph/Contexts/Executors/BackgroundContext.swift
        try await draft.save()  // into its parent
        try await draft.save(through: .store)  // and through all parents into the file
        // end
    }

    static func notices(_ context: ManagedObjectContext) async {
        // Sources/ObjectGraph/Contexts/Merging/ManagedObjectContext+Notices.swift
        for await notice in context.notices where notice.kind == .objectsDidChange {
            print(notice.contextName, notice.changes)
        }
        // end
    }

    static func undoing(_ history: UndoHistory) throws {
        // Sources/ObjectGraph/Contexts/Undo/UndoConflict.swift
        let left = try history.undo(onConflict: .skip)
        for conflict in left { print("not undone: \(conflict)") }
        // end
    }

    static func importing(_ coordinator: PersistentStoreCoordinator, _ rows: [[Value]]) async throws {
        // Sources/ObjectGraph/Coordination/Batches/BatchRequest.swift
        do {
            try await coordinator.insert(into: "Track", ["title"], rows: rows)
        } catch BatchError.importStopped(let savedRows, let error) {
            show("\(savedRows) rows are saved. \(error)")
        }
        // end
    }

    static func resolving(_ context: ManagedObjectContext) {
        // Sources/ObjectGraph/Coordination/Checking/MergePolicy.swift
        context.mergePolicy = .custom { conflicts in
            conflicts.reduce(into: [:]) { resolutions, conflict in
                let title = conflict.properties.first { $0.name == "title" }
                resolutions[conflict.objectID] = title?.theirs.map { ConflictResolution.values(["title": $0]) } ?? .objectTrump
            }
        }
        // end
    }

    static func validating(_ context: ManagedObjectContext) async throws {
        // Sources/ObjectGraph/Coordination/Checking/SaveCheck+Values.swift
        do {
            try await context.save()
        } catch SaveError.validation(let errors) {
            for (_, error) in errors {
                if let invalid = error as? InvalidValue { print(invalid.entity, invalid.property, invalid.value) }
            }
        }
        // end
    }

    static func snapshots(_ coordinator: PersistentStoreCoordinator) throws {
        // Sources/ObjectGraph/Coordination/Snapshots/LiveSnapshot.swift
        do {
            print(try coordinator.snapshot(owner: "report").generation)
        } catch SnapshotError.overBudget(let older) {
            for snapshot in older { print(snapshot) }
        }
        // end
    }

    static func flushing(_ coordinator: PersistentStoreCoordinator) async throws {
        // Sources/ObjectGraph/Coordination/Writer/StoreWriter+Flushing.swift
        do {
            try await coordinator.flush()
        } catch SaveError.deferredSavesFailed(let failures) {
            for failure in failures { print(failure.metadata.contextName, failure.error) }
        }
        // end
    }

    static func updating(_ results: Results<Track>) async {
        // Sources/ObjectGraph/LiveResults/ResultSnapshot.swift
        for await update in results.updates {
            remove(update.difference.deletions)
            insert(update.difference.insertions.map { update.snapshot[$0] })
        }
        // end
    }

    static func placing(_ results: Results<Track>) {
        // Sources/ObjectGraph/LiveResults/SectionList.swift
        let place = SectionPosition(section: 2, item: 0)
        let track = results.snapshot[results.sections[place.section].range.lowerBound + place.item]
        // end
        print(track)
    }

    static func undecodable(_ context: ManagedObjectContext) async throws {
        // Sources/ObjectGraph/Validation/UndecodableAttribute.swift
        do {
            try await context.save()
        } catch SaveError.validation(let errors) {
            for (_, error) in errors {
                if let undecodable = error as? UndecodableAttribute { print(undecodable.property, undecodable.reason) }
            }
        }
        // end
    }

    static func changeSets(_ notice: ContextNotice, _ model: Model) {
        // Sources/StoreModel/Changes/ChangeSet.swift
        for entity in notice.changes.entities {
            print(model.entities[entity.entity].name, entity.insertedKeys, entity.updatedKeys, entity.deletedKeys)
        }
        // end
    }

    static func origins(_ transaction: HistoryTransaction) {
        // Sources/StoreModel/Changes/SaveMetadata.swift
        let metadata = transaction.changeSet.metadata
        print(metadata.date, metadata.author, metadata.processID)
        // end
    }

    static func compacting(_ container: PersistentContainer) async throws {
        // Sources/StoreModel/Stores/Compaction.swift
        let result = try await container.compact()
        print(result.pagesPacked, result.bytesBefore - result.bytesAfter)
        // end
    }

    static func backups(_ container: PersistentContainer, _ file: URL) async throws {
        // Sources/StoreModel/Stores/ExistingFile.swift
        try await container.coordinator.backup(to: file, existing: .replace)
        // end
    }

    static func verifying(_ container: PersistentContainer) async throws {
        // Sources/StoreModel/Stores/VerificationFinding.swift
        let findings = try await container.coordinator.verify()
        if !findings.isEmpty { print(findings.map(\.description).joined(separator: "\n")) }
        // end
    }

    static func identities(_ first: Track, _ second: Album) {
        // Sources/StoreModel/Stores/StoreIdentity.swift
        let isSameStore = first.id.store == second.id.store
        // end
        print(isSameStore)
    }

    private struct Draft: Codable, Sendable { var isNew = false }

    private static func show(_ text: String) {}
    private static func remove(_ positions: [Int]) {}
    private static func insert(_ ids: [ObjectID]) {}
}
