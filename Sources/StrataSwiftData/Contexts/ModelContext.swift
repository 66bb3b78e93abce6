import ObjectGraph
internal import Platform

/// A workspace in which a program fetches, changes and saves objects.
///
/// A context made by ``init(_:)`` may be used on any thread, but on one at a time. It shows the newest saves at each fetch, unless it
/// has unsaved changes.
///
/// ```swift
/// let context = ModelContext(container)
/// context.insert(Trip(name: "Oslo"))
/// try context.save()
/// ```
public final class ModelContext {
    let context: ManagedObjectContext
    /// nil in the context of a migration.
    let storage: ContainerStorage?
    private weak var knownContainer: ModelContainer?
    /// The container of a context that is not the main one. It keeps the main context, which may have changes to save.
    private let ownedContainer: ModelContainer?
    /// Whether the context is the main one, which may save by itself.
    let isMain: Bool
    /// A Boolean value that indicates whether the context saves by itself. True for the main context only.
    ///
    /// The main context saves shortly after the first change. A context of another thread never saves by itself.
    public var autosaveEnabled: Bool {
        didSet {
            guard autosaveEnabled != oldValue else { return }
            if autosaveEnabled { continueAutosaving() } else { noteUnlessChanged() }
        }
    }
    /// A closure that receives the errors of automatic saves. Without it, they are logged.
    public var onAutosaveError: ((any Error) -> Void)?
    /// Whether a timer runs for the next attempt of an automatic save that has failed.
    var isNextAttemptDue = false
    /// The timer of automatic saves, which runs a job on the main actor after a time. Tests replace the timer.
    var runLater: (Duration, @escaping @MainActor @Sendable () -> Void) -> Void = { delay, job in
        Task { @MainActor in
            try? await Task.sleep(for: delay)
            job()
        }
    }

    /// Creates a context of a container, for any one thread at a time.
    public convenience init(_ container: ModelContainer) {
        let storage = container.storage
        self.init(storage.container.makeConfinedContext(), storage: storage, container: container, isMain: false)
        expectSaves()
    }

    /// Creates the context of the main actor.
    @MainActor convenience init(main storage: ContainerStorage, _ container: ModelContainer) {
        self.init(storage.container.mainContext, storage: storage, container: container, isMain: true)
        expectSaves()
    }

    /// Creates the context of a migration, whose changes are saved by the migration.
    convenience init(migrating context: ManagedObjectContext) {
        self.init(context, storage: nil, container: nil, isMain: false)
    }

    private init(
        _ context: ManagedObjectContext, storage: ContainerStorage?, container: ModelContainer?, isMain: Bool
    ) {
        self.context = context
        self.storage = storage
        knownContainer = container
        ownedContainer = isMain ? nil : container
        self.isMain = isMain
        autosaveEnabled = isMain
        context.mergePolicy = .objectTrump
        context.clearsMissingReferences = true
        ContextTable.add(self)
    }

    deinit { ContextTable.remove(context, of: ObjectIdentifier(self)) }

    /// The container of the context.
    ///
    /// - Precondition: The context is not that of a migration.
    public var container: ModelContainer {
        guard let storage else { preconditionFailure("the context of a migration has no container") }
        return knownContainer ?? ModelContainer(storage)
    }

    /// Whether saves write nothing, because the migration saves.
    var isMigrating: Bool { storage == nil }
    /// The configuration of the container; nil in a migration.
    var configuration: ModelConfiguration? { storage?.configuration }

    /// The author that the history records for saves of the context.
    public var author: String? {
        get { context.transactionAuthor }
        set { context.transactionAuthor = newValue }
    }

    /// A Boolean value that indicates whether there are unsaved changes.
    public var hasChanges: Bool { context.hasChanges }

    /// Returns the context that wraps one of Strata's; nil if there is none.
    static func wrapping(_ context: ManagedObjectContext) -> ModelContext? { ContextTable.context(context) }
}

@available(*, unavailable)
extension ModelContext: Sendable {}

extension ModelContext: Equatable, CustomDebugStringConvertible {
    /// Returns whether two references are to one context.
    public static func == (a: ModelContext, b: ModelContext) -> Bool { a === b }
    /// The name of the context.
    public var debugDescription: String { "context \(context.name)" }
}

/// The contexts of the process, by the contexts that they wrap.
private enum ContextTable {
    private struct Entry: @unchecked Sendable {
        // `@unchecked Sendable` is safe because a reference is read on the thread that uses the context.
        weak var context: ModelContext?
        let wrapper: ObjectIdentifier
    }

    private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    static func add(_ context: ModelContext) {
        let entry = Entry(context: context, wrapper: ObjectIdentifier(context))
        let key = ObjectIdentifier(context.context)
        entries.withLock { $0[key] = entry }
    }

    /// Removes a context that is being released. Another thread may have wrapped the same one again meanwhile.
    static func remove(_ context: ManagedObjectContext, of wrapper: ObjectIdentifier) {
        let key = ObjectIdentifier(context)
        entries.withLock { if $0[key]?.wrapper == wrapper { $0[key] = nil } }
    }

    static func context(_ context: ManagedObjectContext) -> ModelContext? {
        let key = ObjectIdentifier(context)
        return entries.withLock { $0[key] }?.context
    }
}
