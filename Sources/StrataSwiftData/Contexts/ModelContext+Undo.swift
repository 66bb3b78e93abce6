import ObjectGraph

extension ModelContext {
    /// The changes that can be undone; nil while undo is off, as it is at first. `UndoHistory` is a class of the module `ObjectGraph`.
    ///
    /// A group of changes ends at ``processPendingChanges()``, at ``save()``, and at an undo or redo. In the main context, it also ends
    /// after the job of the main actor that made the changes. ``rollback()`` forgets all groups, and ``save()`` keeps them: after an undo,
    /// save again to store the old values. Changes made before this is set, and deletions by a predicate, cannot be undone. nil turns
    /// undo off.
    ///
    /// Use the history where the context is used. Recording costs nothing per change. At the end of a group, the old value of each
    /// changed property is read.
    ///
    /// ```swift
    /// let history = UndoHistory(levels: 50)
    /// context.undoHistory = history
    /// trip.name = "Oslo"
    /// context.processPendingChanges()
    /// try history.undo()
    /// try history.redo()
    /// ```
    /// - Precondition: The history belongs to no other context.
    public var undoHistory: UndoHistory? {
        get { context.undoHistory }
        set { context.undoHistory = newValue }
    }
}
