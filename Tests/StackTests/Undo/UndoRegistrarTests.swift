import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The groups of a history as actions of an undo manager outside the store (S162).
@Suite @MainActor struct UndoRegistrarTests {
    /// Does what Foundation's `UndoManager` does with actions: those registered during an undo are to redo, together and last first.
    private final class WindowUndo {
        typealias Action = (owner: Int, name: String?, run: () -> Void)
        private(set) var undoable: [[Action]] = []
        private(set) var redoable: [[Action]] = []
        private var reverting: [Action]?

        func register(_ name: String?, owner: Int, _ run: @escaping () -> Void) {
            guard reverting == nil else {
                reverting?.append((owner, name, run))
                return
            }
            redoable = []
            undoable.append([(owner, name, run)])
        }

        private func reverted(_ actions: [Action]) -> [Action] {
            reverting = []
            defer { reverting = nil }
            for action in actions.reversed() { action.run() }
            return reverting ?? []
        }

        func undo() {
            guard let actions = undoable.popLast() else { return }
            let made = reverted(actions)
            if !made.isEmpty { redoable.append(made) }
        }

        func redo() {
            guard let actions = redoable.popLast() else { return }
            let made = reverted(actions)
            if !made.isEmpty { undoable.append(made) }
        }

        func removeAll(owner: Int) {
            for path in [\WindowUndo.undoable, \WindowUndo.redoable] {
                let kept = self[keyPath: path].map { $0.filter { $0.owner != owner } }.filter { !$0.isEmpty }
                if path == \WindowUndo.undoable { undoable = kept } else { redoable = kept }
            }
        }

        var registrar: UndoRegistrar {
            UndoRegistrar(
                registerAction: { self.register($0, owner: 1, $1) },
                setActionName: { self.undoable[self.undoable.count - 1][0].name = $0 },
                removeActions: { self.removeAll(owner: 1) })
        }
    }

    private func failing(_ error: any Error) { Issue.record(error) }

    @Test(arguments: Combination.all)
    func `S162: an undo manager undoes groups and actions of others in their order`(_ combination: Combination) async throws {
        var random = SeededGenerator(test: #function)
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("0")
        try await container.saveMain()
        let (manager, history) = (WindowUndo(), UndoHistory())
        main.undoHistory = history
        history.register(with: manager.registrar, onFailure: failing)
        var text = "0"
        func setText(_ new: String) {
            let old = text
            text = new
            manager.register("Typing", owner: 2) { setText(old) }
        }
        // The states before and after the present one, as title and text.
        var (past, present, future): ([[String]], [String], [[String]]) = ([], ["0", "0"], [])
        func step(to new: [String]) {
            past.append(present)
            (present, future) = (new, [])
        }
        for number in 1...60 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                track["title"] = .string("\(number)")
                main.processPendingChanges()
                step(to: ["\(number)", present[1]])
            case 1:
                setText("\(number)")
                step(to: [present[0], "\(number)"])
            case 2, 3:
                manager.undo()
                if let state = past.popLast() {
                    future.append(present)
                    present = state
                }
            case 4:
                manager.redo()
                if let state = future.popLast() {
                    past.append(present)
                    present = state
                }
            default: try await container.saveMain()
            }
            #expect(track["title"] == .string(present[0]) && text == present[1], "step \(number), seed \(random.seed)")
        }
        // These actions refer to the manager.
        manager.removeAll(owner: 2)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: changes of an open group are undone with the action below them`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (manager, history) = (WindowUndo(), UndoHistory())
        main.undoHistory = history
        history.register(with: manager.registrar, onFailure: failing)
        main.makeTrack("a")
        main.processPendingChanges()
        main.makeTrack("b")
        manager.undo()
        #expect(try main.trackTitles() == [])
        manager.redo()
        #expect(try main.trackTitles() == ["a", "b"])
        #expect(manager.undoable.count == 1 && manager.redoable.isEmpty)
        try await container.close()
    }

    /// Catches: a redo that also brings back a nested group, which the program had undone before.
    @Test(arguments: StoreKind.allCases)
    func `S162: an action redoes its group without a nested one that was undone before`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (manager, history) = (WindowUndo(), UndoHistory())
        main.undoHistory = history
        history.register(with: manager.registrar, onFailure: failing)
        try history.group("Outer") {
            main.makeTrack("a")
            history.group("Inner") { main.makeTrack("b") }
            try history.undoNestedGroup()
        }
        main.processPendingChanges()
        manager.undo()
        #expect(try main.trackTitles() == [])
        manager.redo()
        #expect(try main.trackTitles() == ["a"])
        try history.redo()
        #expect(try main.trackTitles() == ["a", "b"])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: an action that conflicts reports it, and its group stays in the history`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let track = main.makeTrack("a")
        try await container.saveMain()
        let (manager, history) = (WindowUndo(), UndoHistory())
        main.undoHistory = history
        var failures: [any Error] = []
        history.register(with: manager.registrar) { failures.append($0) }
        track["title"] = "b"
        main.processPendingChanges()
        history.withoutRegistration { track["title"] = "c" }
        manager.undo()
        #expect(failures.count == 1 && failures.first is UndoError)
        #expect(track["title"] == "c" && manager.redoable.isEmpty)
        try history.undo(onConflict: .force)
        #expect(track["title"] == "a")
        try await container.close()
    }

    /// Catches: actions that do nothing, because the undo itself has ended a group beyond the bound and dropped theirs.
    @Test(arguments: StoreKind.allCases)
    func `S162: an undo that finds changes beyond the bound reports it and removes all actions`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (manager, history) = (WindowUndo(), UndoHistory(byteLimit: 2_000))
        main.undoHistory = history
        var failures: [any Error] = []
        history.register(with: manager.registrar) { failures.append($0) }
        for title in ["a", "b"] {
            main.makeTrack(title)
            main.processPendingChanges()
        }
        #expect(manager.undoable.count == 2)
        for number in 0..<100 { main.makeTrack("\(number)") }
        manager.undo()
        #expect(failures.count == 1 && failures.first is UndoError)
        #expect(manager.undoable.isEmpty && manager.redoable.isEmpty && !history.canUndo)
        main.makeTrack("c")
        main.processPendingChanges()
        #expect(manager.undoable.count == 1, "later groups are actions again")
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: actions are named, and go when the history forgets their groups`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (manager, history) = (WindowUndo(), UndoHistory(byteLimit: 2_000))
        main.undoHistory = history
        history.group("Insert") { _ = main.makeTrack("a") }
        main.processPendingChanges()
        history.register(with: manager.registrar, onFailure: failing)
        #expect(manager.undoable.map { $0[0].name } == ["Insert"])
        history.setActionName("Add")
        #expect(manager.undoable.map { $0[0].name } == ["Add"])
        manager.register("Typing", owner: 2) {}
        main.rollback()
        #expect(manager.undoable.map { $0[0].name } == ["Typing"])
        main.makeTrack("b")
        main.processPendingChanges()
        // Larger than the limit.
        for number in 0..<100 { main.makeTrack("\(number)") }
        main.processPendingChanges()
        #expect(manager.undoable.map { $0[0].name } == ["Typing"])
        main.rollback()
        main.makeTrack("c")
        main.processPendingChanges()
        #expect(manager.undoable.count == 2)
        history.unregister()
        #expect(manager.undoable.count == 1 && history.canUndo)
        try await container.close()
    }

    /// Catches: an action that undoes the changes of an observer and leaves its own group as it is.
    @Test(arguments: StoreKind.allCases)
    func `S162: an action undoes its group although an observer of a newer one changes other objects`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (track, other) = (main.makeTrack("a"), main.makeTrack("b"))
        try await container.saveMain()
        let (history, window) = (UndoHistory(), WindowUndo())
        main.undoHistory = history
        history.register(with: window.registrar, onFailure: failing)
        track["title"] = "edited"
        main.processPendingChanges()
        track["plays"] = 5
        let watch = Watch({ _ = track["plays"] }, note: { other["plays"] = 7 })
        window.undo()
        #expect(track["plays"] == 0 && track["title"] == "a" && other["plays"] == 7)
        #expect(watch.count > 0)
        try await container.close()
    }
}
