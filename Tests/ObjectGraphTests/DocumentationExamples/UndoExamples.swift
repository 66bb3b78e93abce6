import ObjectGraph
import StoreInterface
import StoreModel

/// The examples in the documentation comments of undo, compiled. The architecture tests compare both.
@MainActor private enum UndoExamples {
    static func undoing(_ context: ManagedObjectContext, _ track: Track) throws {
        // Sources/ObjectGraph/Contexts/Undo/UndoHistory.swift
        let history = UndoHistory(levels: 50)
        context.undoHistory = history
        track.title = "Baguette"
        context.processPendingChanges()
        try history.undo()
        try history.redo()
        // end
    }

    static func grouping(_ history: UndoHistory, _ tracks: [Track]) throws {
        // Sources/ObjectGraph/Contexts/Undo/UndoHistory.swift
        history.group("Rename") {
            for track in tracks { track.title = track.title.capitalized }
        }
        // end
    }

    protocol Window {
        func addUndo(_ name: String, _ action: @escaping () -> Void)
        func renameLastUndo(_ name: String)
        func removeUndo()
        func show(_ error: any Error)
    }

    static func registering(_ history: UndoHistory, with window: any Window) {
        // Sources/ObjectGraph/Contexts/Undo/UndoRegistrar.swift
        history.register(
            with: UndoRegistrar(
                registerAction: { name, action in window.addUndo(name ?? "", action) },
                setActionName: { name in window.renameLastUndo(name ?? "") },
                removeActions: { window.removeUndo() }),
            onFailure: { error in window.show(error) })
        // end
    }

    static func conflicting(_ history: UndoHistory) throws {
        // Sources/ObjectGraph/Contexts/Undo/UndoConflict.swift
        do {
            try history.undo()
        } catch UndoError.conflicts(let conflicts) {
            for conflict in conflicts { print(conflict) }
            try history.undo(onConflict: .skip)
        }
        // end
        // Sources/ObjectGraph/Contexts/Undo/UndoConflict.swift
        do {
            try history.undo()
        } catch UndoError.groupTooLarge {
            print("this import cannot be undone")
        }
        // end
    }

    static func undoingAuthors(_ container: PersistentContainer, _ importer: BackgroundContext) async throws {
        // Sources/ObjectGraph/Contexts/Undo/PersistentContainer+UndoingAuthors.swift
        let before = try container.coordinator.snapshot(owner: "before the import")
        try await importer.save()
        try await container.undoChanges(by: "importer", since: before, onConflict: .skip)
        // end
    }
}
