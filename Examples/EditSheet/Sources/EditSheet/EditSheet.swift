import ObjectGraph
import Observation

/// The model of a form that edits a task, or makes a new one.
@MainActor @Observable package final class EditSheet {
    /// The task that the form's fields are bound to. It belongs to the sheet's own context.
    package let task: TaskItem
    /// The reason why the last save failed; nil if none did.
    package private(set) var message: String?
    private let context: ManagedObjectContext

    /// Opens a sheet on a task, or on a new task.
    package init(editing edited: TaskItem? = nil, in parent: ManagedObjectContext) {
        context = parent.newChild(name: "edit sheet")
        if let edited {
            task = context.object(TaskItem.self, with: edited.id)
        } else {
            task = TaskItem(title: "")
            context.insert(task)
        }
    }

    // Objects of the main actor must also be released there.
    isolated deinit {}

    /// Moves the edit to the parent, whose next save stores it. Returns whether the sheet can be closed.
    package func save() async -> Bool {
        do {
            try await context.save()
            message = nil
            return true
        } catch SaveError.validation(let problems) {
            message = problems.map { "\($0.1)" }.joined(separator: "\n")
        } catch {
            message = "\(error)"
        }
        return false
    }

    /// Returns the fields to the parent's values.
    package func revert() { context.rollback() }
}
