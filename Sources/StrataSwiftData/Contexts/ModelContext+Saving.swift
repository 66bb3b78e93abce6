import ObjectGraph
internal import Platform
import StoreModel

extension ModelContext {
    /// Saves the changes. Other contexts see them when this returns. They reach the disk within a second, or when
    /// ``ModelContainer/flush()`` returns.
    ///
    /// If another context saved other values meanwhile, those of this context win, property by property. If another object has a unique
    /// value of a new object, that object gets the new values, and the new object is deleted. A relationship to an object that another
    /// context has deleted loses that object. If its type is not optional, the save throws `SaveError.danglingReference`, which names the
    /// object and the property, until the program sets another object or deletes this one.
    ///
    /// - Throws: Strata's `SaveError`, or the store's error. Then nothing is saved, and the changes stay.
    public func save() throws {
        if isMigrating { return }
        try checkSaving()
        defer { noteUnlessChanged() }
        guard hasChanges else { return context.awaitUnsavedChange() }
        post(Self.willSave, nil)
        // Stays empty if hooks or observers undo all changes.
        var saved = ChangeSet()
        let observer = context.addObserver { if $0.kind == .didSave { saved = $0.changes } }
        defer { context.removeObserver(observer) }
        try context.saveNow()
        post(Self.didSave, saved)
    }

    /// Throws an error if the configuration does not allow saves.
    func checkSaving() throws {
        guard let configuration, !configuration.allowsSave else { return }
        throw SwiftDataError.modelValidationFailure.saying(
            "cannot save to \(configuration.place): its configuration does not allow it. Use a configuration with allowsSave: true."
        )
    }

    /// Runs a closure, and saves.
    ///
    /// If the closure throws, this does not save, and the changes stay unsaved, apart from deletions by a predicate, which are saved at
    /// once. In the main context, the next automatic save would write the changes: call ``rollback()``, or set ``autosaveEnabled`` to false
    /// before.
    public func transaction(block: () throws -> Void) throws {
        try block()
        try save()
    }

    /// Announces a save at the first change, so that it does not wait for the sync of a durable save. The main context then also saves by
    /// itself.
    func expectSaves() {
        let reference = isMain ? MainContextReference(context: self) : nil
        context.onFirstUnsavedChange = { [weak context] in
            context?.expectSynchronousSave()
            reference?.context?.autosaveSoon()
        }
    }

    private static let autosaveDelay = Duration.milliseconds(50)

    /// Saves the present changes soon, and later changes after the first of them.
    func continueAutosaving() {
        guard isMain else { return }
        context.awaitUnsavedChange()
        if hasChanges { autosaveSoon() }
    }

    /// Saves the changes after a short time if the context saves by itself. Keeps the context and its store until then, also if the
    /// program releases the container.
    private func autosaveSoon() {
        // Setting `autosaveEnabled` continues.
        guard autosaveEnabled else { return }
        storage?.mainMayHaveChanges.store(true, ordering: .releasing)
        let kept = KeptMainContext(context: self)
        runLater(Self.autosaveDelay) { kept.context.autosave() }
    }

    /// Tries to save again after a longer time, if the program still has the context: the cause may never pass. One attempt waits at a
    /// time, however many have failed.
    private func autosaveLater() {
        guard !isNextAttemptDue else { return }
        isNextAttemptDue = true
        let reference = MainContextReference(context: self)
        runLater(suspensionDelay) {
            reference.context?.isNextAttemptDue = false
            reference.context?.autosave()
        }
    }

    /// Saves the changes now if the context would soon save them by itself. If the store is suspended, a timer runs already.
    func autosaveUnlessSuspended() { if !context.isStoreSuspended { autosave() } }

    /// If the main context has nothing to save by itself, notes that a flush need not wait for the main actor. The next change then counts
    /// as the first one, and takes the note back.
    func noteUnlessChanged() {
        guard isMain, let storage, !autosaveEnabled || !hasChanges else { return }
        if storage.mainMayHaveChanges.exchange(false, ordering: .acquiringAndReleasing) { context.awaitUnsavedChange() }
    }

    /// Saves the changes if the context saves by itself. Reports the error of the save, and tries again later if the cause may
    /// pass.
    func autosave() {
        // Setting `autosaveEnabled` continues.
        guard autosaveEnabled else { return }
        // The context is not used meanwhile.
        if context.isStoreSuspended { return autosaveLater() }
        // Not only after a save: the changes may be undone by now, or the save may fail.
        defer { context.awaitUnsavedChange() }
        guard hasChanges else { return noteUnlessChanged() }
        do {
            try save()
            // Observers and hooks may have changed objects during the save.
            if hasChanges { autosaveSoon() }
        } catch let error as StoreError where error.code == .suspended {
            autosaveLater()
        } catch {
            // The other process may end its work without another change here.
            if (error as? StoreError)?.code == .storeBusy { autosaveLater() }
            if let onAutosaveError { return onAutosaveError(error) }
            Log.logger.error("the main context was not saved: \(error)")
        }
    }
}

/// A reference to the main context.
private struct MainContextReference: @unchecked Sendable {
    // `@unchecked Sendable` is safe because the reference is read on the main actor, to which the context belongs.
    weak var context: ModelContext?
}

/// The main context, for a job that keeps it.
private struct KeptMainContext: @unchecked Sendable {
    // `@unchecked Sendable` is safe because the context is used on the main actor, to which it belongs.
    let context: ModelContext
}

// MARK: Notifications

extension ModelContext {
    /// The name of the notification before a save. Its object is the context.
    public static let willSave = Notification.Name("ModelContextWillSave")
    /// The name of the notification after a save. Its object is the context, and its user info has the keys of ``NotificationKey``.
    public static let didSave = Notification.Name("ModelContextDidSave")

    /// A key of the user info of notifications. The raw values are the keys.
    public enum NotificationKey: String, Sendable {
        /// Not used.
        case queryGeneration
        /// Not used.
        case invalidatedAllIdentifiers
        /// The identifiers of inserted objects: `[PersistentIdentifier]`.
        case insertedIdentifiers = "inserted"
        /// The identifiers of updated objects: `[PersistentIdentifier]`.
        case updatedIdentifiers = "updated"
        /// The identifiers of deleted objects: `[PersistentIdentifier]`.
        case deletedIdentifiers = "deleted"
        /// Not used.
        case refreshedIdentifiers = "refreshed"
        /// Not used.
        case invalidatedIdentifiers = "invalidated"
    }

    private func post(_ name: Notification.Name, _ changes: ChangeSet?) {
        var info: [AnyHashable: Any] = [:]
        if let changes {
            let store = context.storeIdentity
            info[NotificationKey.insertedIdentifiers.rawValue] = identifiers(changes.insertedIDs(in: store))
            info[NotificationKey.updatedIdentifiers.rawValue] = identifiers(
                changes.updatedIDs(in: store, withPairsOf: context.model))
            info[NotificationKey.deletedIdentifiers.rawValue] = identifiers(changes.deletedIDs(in: store))
        }
        NotificationCenter.default.post(name: name, object: self, userInfo: info.isEmpty ? nil : info)
    }

    private func identifiers(_ ids: [ObjectID]) -> [PersistentIdentifier] {
        let entities = context.model.entities
        return ids.filter { entities.indices().contains($0.entity) }
            .map { PersistentIdentifier($0, entityName: entities[$0.entity].name) }
    }
}
