import ObjectGraph

/// A task of a to-do list, written without the `@Model` macro so that this example compiles without it.
package final class TaskItem: PersistentModel, ManagedObjectLifecycle {
    /// The problem of a task that cannot be saved.
    package enum Problem: Error, CustomStringConvertible {
        case emptyTitle

        package var description: String { "A task needs a title." }
    }

    private let anchor: ModelAnchor
    package var managedObject: ManagedObject { anchor.object }

    package var title: String {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }

    package var isDone: Bool {
        get { managedObject.get(1) }
        set { managedObject.set(1, to: newValue) }
    }

    package init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    package convenience init(title: String) {
        self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
        self.title = title
    }

    package func validateForInsert() throws { if title.isEmpty { throw Problem.emptyTitle } }

    package func validateForUpdate() throws { try validateForInsert() }

    package static let entityDescription = EntityDescription(
        name: "TaskItem",
        properties: [
            .attribute(AttributeDescription("title", of: \TaskItem.title)),
            .attribute(AttributeDescription("isDone", of: \TaskItem.isDone)),
        ])

    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) package static let columnsByKeyPath: [AnyKeyPath: String] = [
        \TaskItem.title: "title", \TaskItem.isDone: "isDone",
    ]
}
