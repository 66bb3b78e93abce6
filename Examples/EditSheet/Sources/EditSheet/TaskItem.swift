import ObjectGraph

/// A task of a to-do list, written without the `@Model` macro so that this example compiles without it.
public final class TaskItem: PersistentModel, ManagedObjectLifecycle {
    /// The problem of a task that cannot be saved.
    public enum Problem: Error, CustomStringConvertible {
        case emptyTitle

        public var description: String { "A task needs a title." }
    }

    private let anchor: ModelAnchor
    public var managedObject: ManagedObject { anchor.object }

    public var title: String {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }

    public var isDone: Bool {
        get { managedObject.get(1) }
        set { managedObject.set(1, to: newValue) }
    }

    public init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    public convenience init(title: String) {
        self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
        self.title = title
    }

    public func validateForInsert() throws { if title.isEmpty { throw Problem.emptyTitle } }

    public func validateForUpdate() throws { try validateForInsert() }

    public static let entityDescription = EntityDescription(
        name: "TaskItem",
        properties: [
            .attribute(AttributeDescription("title", of: \TaskItem.title)),
            .attribute(AttributeDescription("isDone", of: \TaskItem.isDone)),
        ])

    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) public static let columnsByKeyPath: [AnyKeyPath: String] = [
        \TaskItem.title: "title", \TaskItem.isDone: "isDone",
    ]
}
