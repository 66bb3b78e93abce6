/// The undo manager of a user interface, whose actions include the groups of an ``UndoHistory``.
///
/// A window often has changes to undo that no store knows, such as the text of a field. With a registrar, one Undo command undoes both kinds
/// in their order. On Apple's systems, `register(with:onConflict:onFailure:)` takes the `UndoManager` of Foundation instead. For other
/// toolkits, pass their functions:
///
/// ```swift
/// history.register(
///     with: UndoRegistrar(
///         registerAction: { name, action in window.addUndo(name ?? "", action) },
///         setActionName: { name in window.renameLastUndo(name ?? "") },
///         removeActions: { window.removeUndo() }),
///     onFailure: { error in window.show(error) })
/// ```
/// The functions are called where the context of the history is used.
public struct UndoRegistrar {
    let registerAction: (_ name: String?, _ action: @escaping () -> Void) -> Void
    let setActionName: (_ name: String?) -> Void
    let removeActions: () -> Void

    /// Creates a registrar from the functions of an undo manager.
    ///
    /// - Parameters:
    ///   - registerAction: Adds an action to undo. While the manager undoes an action, it adds one to redo instead, as Foundation's does.
    ///     The manager calls the action where the context of the history is used.
    ///   - setActionName: Names the action that was added last.
    ///   - removeActions: Removes all actions that this registrar has added, those to redo too.
    public init(
        registerAction: @escaping (_ name: String?, _ action: @escaping () -> Void) -> Void,
        setActionName: @escaping (_ name: String?) -> Void, removeActions: @escaping () -> Void
    ) {
        self.registerAction = registerAction
        self.setActionName = setActionName
        self.removeActions = removeActions
    }
}

/// A registrar, and the way that its actions undo.
struct UndoRegistration {
    let registrar: UndoRegistrar
    let policy: UndoPolicy
    let onFailure: (any Error) -> Void

    /// Adds the action that undoes or redoes a group. If the history no longer has the group, the action does nothing.
    func register(_ group: UndoGroup, of history: UndoHistory, isRedo: Bool) {
        registrar.registerAction(group.name) { [weak history] in
            history?.performAction(of: group.id, isRedo: isRedo)
        }
    }
}

extension UndoHistory {
    /// Registers each group as an action with the undo manager of a user interface (S162).
    ///
    /// Groups that can be undone already are registered at once, oldest first. Use the commands of the manager from then on: an action whose
    /// group was undone by ``undo(onConflict:)`` does nothing. A history has one registrar; a second call replaces it.
    ///
    /// - Parameters:
    ///   - registrar: The functions of the manager.
    ///   - policy: The treatment of conflicts. By default they are errors, and nothing changes.
    ///   - onFailure: Called with the error of an action, an ``UndoError`` for example. The group stays in the history, where
    ///     ``undo(onConflict:)`` can undo it with another policy.
    public func register(
        with registrar: UndoRegistrar, onConflict policy: UndoPolicy = .error, onFailure: @escaping (any Error) -> Void
    ) {
        unregister()
        context?.checkIsolation()
        let registration = UndoRegistration(registrar: registrar, policy: policy, onFailure: onFailure)
        for group in stacks.undoable where !group.isTooLarge { registration.register(group, of: self, isRedo: false) }
        self.registration = registration
    }

    /// Removes the actions of this history from its registrar, and registers no more. The groups stay.
    public func unregister() {
        registration?.registrar.removeActions()
        registration = nil
        unregistered = []
    }

    /// Undoes or redoes the groups from the newest to one of an action.
    ///
    /// Changes that belong to no closed group yet are newer than the action, so they are undone before it.
    fileprivate func performAction(of id: Int, isRedo: Bool) {
        guard let registration else { return }
        isPerformingUndo = !isRedo
        defer { isPerformingUndo = false }
        if !isRedo { context?.closeUndoEvent() }
        // Observers of the undo may make newer groups, which stay.
        let newest = stacks.undoable.last?.id ?? id
        do {
            while let group = isRedo ? stacks.redoable.last : stacks.undoable.last(where: { $0.id <= newest }),
                isRedo ? group.id <= id : group.id >= id
            {
                if isRedo {
                    try redo(onConflict: registration.policy)
                    // Changes of observers end redo.
                    guard stacks.undoable.contains(where: { $0.id == group.id }) else { break }
                } else {
                    try undo(group.id, onConflict: registration.policy)
                }
                unregistered.remove(group.id)
                registration.register(group, of: self, isRedo: !isRedo)
                // A nested group that was undone before this one is older, and no action of the manager.
                if group.id == id { break }
            }
        } catch {
            registration.onFailure(error)
        }
    }
}

#if canImport(Darwin)
    import Foundation

    /// The target of a history's actions, by which a manager finds them.
    private final class UndoTarget: Sendable {}

    extension UndoHistory {
        /// Registers each group as an action with an undo manager of Foundation, such as that of a window (S162).
        ///
        /// The context belongs to the main actor, like the manager.
        ///
        /// - Parameters:
        ///   - manager: The manager. Its `levelsOfUndo` are independent of ``levels``.
        ///   - policy: The treatment of conflicts. By default they are errors, and nothing changes.
        ///   - onFailure: Called with the error of an action. The group stays in the history.
        /// - Precondition: The context of the history is used on the main actor.
        @MainActor public func register(
            with manager: UndoManager, onConflict policy: UndoPolicy = .error, onFailure: @escaping (any Error) -> Void
        ) {
            let target = UndoTarget()
            // Used on the main actor only: each closure below checks that it runs there.
            nonisolated(unsafe) let manager = manager
            let registrar = UndoRegistrar(
                registerAction: { name, action in
                    // Does not leave the main actor, on which the manager keeps and calls it.
                    nonisolated(unsafe) let action = action
                    MainActor.assumeIsolated {
                        // The manager does not retain its targets, and the history may be gone when the action runs.
                        manager.registerUndo(withTarget: target) { _ in withExtendedLifetime(target) { action() } }
                        if let name { manager.setActionName(name) }
                    }
                },
                setActionName: { name in MainActor.assumeIsolated { manager.setActionName(name ?? "") } },
                removeActions: { MainActor.assumeIsolated { manager.removeAllActions(withTarget: target) } })
            register(with: registrar, onConflict: policy, onFailure: onFailure)
        }
    }
#endif
