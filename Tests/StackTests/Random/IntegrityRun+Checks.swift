import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Steps that are checked by themselves: saves, refreshes without merging, undo, and changes that leave nothing.
extension IntegrityRun {
    /// Saves. A save without changes must write nothing (S063). A root that clears references to missing objects must not fail because of
    /// them, unless it has deleted the object itself (S050).
    func save(_ step: IntegrityStep, _ context: BackgroundContext) async throws -> String? {
        guard case .save(let policy, let isDeferred, let isThrough, let clears) = step.action else { return nil }
        let root = roots[step.context % 2]
        await root.perform { context in
            context.mergePolicy = IntegrityTests.policies[policy]
            context.clearsMissingReferences = clears
        }
        let hasChanges = await context.perform { $0.hasChanges }
        let hasChangesInRoot = await root.perform { $0.hasChanges }
        let before = try container.coordinator.snapshot().generation
        let durability: Durability = isDeferred ? .deferred : .durable
        do {
            if isThrough {
                try await context.save(through: .store, durability)
            } else {
                try await context.save(durability)
            }
        } catch let error as SaveError {
            guard clears, case .danglingReference(_, _, let target) = error else { throw error }
            let isDeletedHere = await Self.hasDeleted(target, in: context)
            let isDeletedInRoot = await Self.hasDeleted(target, in: root)
            if isDeletedHere || isDeletedInRoot { throw error }
            return "a reference to a missing object was not cleared: \(error)"
        }
        guard isAlone, !hasChanges, !(isThrough && hasChangesInRoot) else { return nil }
        let after = try container.coordinator.snapshot().generation
        return after == before ? nil : "a save without changes wrote save \(after) after save \(before)"
    }

    private static func hasDeleted(_ id: ObjectID, in context: BackgroundContext) async -> Bool {
        await context.perform { context in context.deletedObjects.contains { $0.objectID == id } }
    }

    /// The values that a context shows of an object after a refresh.
    private struct Refreshed: Sendable {
        var id: ObjectID
        /// The objects that the context has deleted.
        var deleted: Set<ObjectID>
        var content: [String]
    }

    /// Drops the changes of an object. In a root that reads the newest state, the object must then look as it is stored, but for members
    /// that the context has deleted (S055).
    func dropChanges(_ step: IntegrityStep, _ context: BackgroundContext) async throws -> String? {
        let seed = step.seed
        let refreshed = try await context.perform { context throws -> Refreshed? in
            var generator = SeededGenerator(seed: seed)
            // A move to a newer state keeps changes, which could then concern the object. So the context moves before.
            context.refreshAllObjects()
            let entity = ["Artist", "Artist", "Album", "Track", "Profile", "Playlist"][generator.below(6)]
            var object = try Self.any(entity, context, &generator)
            let deleted = context.deletedObjects.filter { $0.entityName == entity }
            if generator.chance(50), let gone = deleted.randomElement(using: &generator) { object = gone }
            guard let object else { return nil }
            context.refresh(object, mergeChanges: false)
            // A new object keeps its values, and an object that others have deleted has none.
            if object.isInserted || object.isDeleted { return nil }
            let left = Set(context.deletedObjects.map(\.objectID))
            return Refreshed(id: object.objectID, deleted: left, content: Self.content(of: object, without: left))
        }
        guard let refreshed, isAlone, step.context < 2 else { return nil }
        let stored = try await container.coordinator.newBackgroundContext().perform { context throws in
            Self.content(of: try context.existingObject(with: refreshed.id), without: refreshed.deleted)
        }
        if stored == refreshed.content { return nil }
        return "a refresh without merging shows \(refreshed.content), not \(stored)"
    }

    /// Returns the values of an object and the keys of its members in words.
    private static func content(of object: ManagedObject, without deleted: Set<ObjectID>) -> [String] {
        guard let entity = Music.model.entity(named: object.entityName) else { return [] }
        var content = ["\(entity.name) \(object.objectID.key)"]
        for column in entity.columns { content.append("\(column.name) \(object[column.name])") }
        for relationship in entity.relationships {
            guard case .toMany = relationship.kind else { continue }
            let members = object.relatedObjects(relationship.name).map(\.objectID).filter { !deleted.contains($0) }
            content.append("\(relationship.name) \(members.map(\.key).sorted())")
        }
        return content
    }

    /// Inserts, relates and deletes an object. In between, the insertion is sealed, or a child saves it to the context. No change must be
    /// left, also not at the other end (S007).
    static func insertAndDelete(_ context: BackgroundContext, _ seed: UInt64) async throws -> String? {
        let before = await context.perform { $0.unsavedIDs }
        if seed.isMultiple(of: 2) {
            try await context.perform { context throws in
                var generator = SeededGenerator(seed: seed)
                let list = context.insert("Playlist")
                if let track = try Self.any("Track", context, &generator) { list.add(track, to: "tracks") }
                // A child seals the layer.
                if generator.chance(50) { _ = context.newBackgroundChild() }
                context.delete(list)
            }
        } else {
            let child = await context.newBackgroundChild()
            let id = try await child.perform { context throws in
                var generator = SeededGenerator(seed: seed)
                let list = context.insert("Playlist")
                if let track = try Self.any("Track", context, &generator) { list.add(track, to: "tracks") }
                return list.objectID
            }
            try await child.save()
            try await child.perform { context throws in context.delete(try context.existingObject(with: id)) }
            try await child.save()
        }
        let after = await context.perform { $0.unsavedIDs }
        return after == before ? nil : "an object that is gone leaves changes of \(after.symmetricDifference(before).map(\.key))"
    }

    /// Undoes or redoes a group, takes that back, and does it again. The content must be as before, and then as after the first time. A
    /// refused undo must change nothing (S162).
    static func revert(_ context: ManagedObjectContext, isRedo: Bool, _ policy: UndoPolicy) throws -> String? {
        guard let history = context.undoHistory else { return nil }
        let before = try ContentCopy(objectsOf: context)
        do {
            _ = try isRedo ? history.redo(onConflict: policy) : history.undo(onConflict: policy)
        } catch is UndoError {
            let left = try ContentCopy(objectsOf: context)
            return left == before ? nil : "a refused undo changed the content: \(left.difference(to: before))"
        }
        let after = try ContentCopy(objectsOf: context)
        // A group without an effect is gone.
        if after == before { return nil }
        do {
            _ = try isRedo ? history.undo() : history.redo()
            let back = try ContentCopy(objectsOf: context)
            if back != before { return "wrong content after taking an undo back: \(back.difference(to: before))" }
            _ = try isRedo ? history.redo() : history.undo()
        } catch is UndoError {
            // The state before may have led to objects that others have deleted.
            return nil
        }
        let again = try ContentCopy(objectsOf: context)
        return again == after ? nil : "wrong content after a second undo: \(again.difference(to: after))"
    }
}

extension ManagedObjectContext {
    /// The ids of the objects with unsaved changes.
    var unsavedIDs: Set<ObjectID> { Set((insertedObjects + updatedObjects + deletedObjects).map(\.objectID)) }
}
