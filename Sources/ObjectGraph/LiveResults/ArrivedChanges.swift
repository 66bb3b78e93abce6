import StoreInterface
import StoreModel

/// The newest view of a context and the changes that led to it, until a ``LiveQuery`` advances to the view.
struct ArrivedChanges: Sendable {
    /// The newest view; nil if none has arrived.
    var view: LayeredView?
    /// All changes up to that view; nil if they are unknown.
    var changes: [ChangeSet]? = []
    /// The context's saves up to that view, which usually do not change the result.
    var saved: [ChangeSet] = []

    mutating func add(_ view: LayeredView, changes: ChangeSet?, saved: ChangeSet) {
        self.view = view
        if !saved.isEmpty { self.saved.append(saved) }
        if let changes {
            if !changes.isEmpty { self.changes?.append(changes) }
        } else {
            self.changes = nil
        }
    }
}
