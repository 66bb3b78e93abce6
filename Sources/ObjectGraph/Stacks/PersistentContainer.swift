internal import Platform
import StoreInterface
import StoreModel

/// A model, a store and a stack of contexts: the starting point of a program.
///
/// Contexts stay usable until the container is closed (``close()``) or deallocated. Deallocating it flushes deferred saves.
///
/// ```swift
/// let container = try await PersistentContainer(for: Track.self, Album.self, store: .lmdb(file))
/// container.mainContext.insert(Track(title: "Baguette"))
/// try await container.mainContext.save()
/// ```
public final class PersistentContainer: Sendable {
    /// The model of the store's objects.
    public let model: Model
    /// The arrangement of the container's contexts.
    public let stack: ContextStack
    /// The coordinator of the main context's root.
    public let coordinator: PersistentStoreCoordinator
    /// The coordinator of background contexts in `.split` and of batch contexts in `.hybrid`; otherwise ``coordinator``.
    public let backgroundCoordinator: PersistentStoreCoordinator
    let main: MainContextExecutor
    let creation: MainContextCreation
    private let bridges: [CoordinatorBridge]
    let closing = Mutex<Task<Void, any Error>?>(nil)

    /// Opens the store. Blocking work runs off the calling executor.
    ///
    /// - Parameters:
    ///   - model: The model, created at run time or from a list of types.
    ///   - store: `.lmdb(url)`, `.memory`, or `.sqlite(url)` of the module `SQLiteStore`.
    ///   - stack: The arrangement of the contexts.
    ///   - migrationPlan: The migration of files with an older model. Without a plan, a file is migrated by lightweight changes alone
    ///     (S163).
    ///   - allowsDataLoss: Entities ("Playlist"), attributes and relationships ("Track.rating") that are not in the model and may
    ///     be dropped with their values. If stored values would be dropped without being named here, opening throws
    ///     `schemaMismatch` with each name and count (S165). Custom stages of a plan drop the values that their target does not
    ///     have.
    ///   - telemetry: The tracer and metrics to which the container reports; by default those that are installed.
    ///   - progress: A closure called on any thread while the plan's stages run. Cancelling the task stops a migration between its
    ///     steps.
    /// - Throws: `StoreError` if the store cannot be opened with the model.
    public convenience init(
        model: Model, store: StoreDescription, stack: ContextStack = .siblings, migrationPlan: MigrationPlan? = nil,
        allowsDataLoss: Set<String> = [], telemetry: Telemetry = .installed,
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) async throws {
        let opening = Opening(
            model, store: store, stack: stack, plan: migrationPlan, allowsDataLoss: allowsDataLoss, telemetry: telemetry, progress
        )
        self.init(opening, try await opening.run())
        await createFollowingMain()
    }

    /// Opens the store as ``init(model:store:stack:migrationPlan:allowsDataLoss:telemetry:progress:)`` does, and blocks the calling thread until it
    /// is open. A migration may take long.
    ///
    /// The main context is created when it is first used.
    package convenience init(
        openingSynchronously model: Model, store: StoreDescription, stack: ContextStack = .siblings,
        migrationPlan: MigrationPlan? = nil, allowsDataLoss: Set<String> = [], telemetry: Telemetry = .installed,
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) throws {
        let opening = Opening(
            model, store: store, stack: stack, plan: migrationPlan, allowsDataLoss: allowsDataLoss, telemetry: telemetry, progress
        )
        self.init(opening, try opening.runNow())
    }

    /// Opens the store as ``init(model:store:stack:migrationPlan:allowsDataLoss:telemetry:progress:)`` does. The requests of its contexts
    /// take routes of their own.
    ///
    /// - Parameter rootRoute: Makes the route of a root context. It may be called on any thread.
    package convenience init(
        model: Model, store: StoreDescription, stack: ContextStack, rootRoute: @escaping RootRouteFactory
    ) async throws {
        var opening = Opening(
            model, store: store, stack: stack, plan: nil, allowsDataLoss: [], telemetry: .installed, { _ in })
        opening.rootRoute = rootRoute
        self.init(opening, try await opening.run())
        await createFollowingMain()
    }

    private init(_ opening: Opening, _ coordinators: Opening.Coordinators) {
        let (first, second) = coordinators
        model = opening.model
        stack = opening.stack
        coordinator = first
        backgroundCoordinator = second
        let creation = MainContextCreation()
        self.creation = creation
        let merging = stack != .nested
        switch stack {
        case .nested, .siblings, .split:
            main = MainContextExecutor {
                creation.begin()
                return .root(of: first, name: "main", merging: merging, beginsAtFirstRead: true)
            }
        case .masterMainWorker, .hybrid:
            let merging = stack == .hybrid
            main = MainContextExecutor {
                creation.begin()
                let root = creation.makeRoot(.root(of: first, name: "master", merging: merging, beginsAtFirstRead: true))
                let new = try? root.wait { root in
                    // A `write` that returned before the root could be found has not moved it. A suspended root moves at the end of
                    // the suspension. An earlier move would open the file again.
                    if root.phase.closure == nil, !root.phase.isSuspended {
                        root.advance(to: root.configuration.writer.firstState())
                    }
                    return NewContext.child(of: root, name: "main", followsStore: merging, decidesForParent: true)
                }
                guard let new else { preconditionFailure("the context of a container exists as long as the container") }
                return new
            }
        }
        bridges =
            first.writer === second.writer
            ? [] : [CoordinatorBridge(from: second, to: first), CoordinatorBridge(from: first, to: second)]
    }

    /// Creates the main context in the stacks in which it merges automatically. In the others it is created at its first use. Until then
    /// it would keep the state at the opening, with the pages of that state, and then show it.
    private func createFollowingMain() async {
        if stack != .nested, stack != .masterMainWorker { await MainActor.run { _ = main.context } }
    }

    /// Opens the store with a model of these types. See
    /// ``init(model:store:stack:migrationPlan:allowsDataLoss:telemetry:progress:)``.
    ///
    /// - Throws: ``ModelError`` if the types do not form a valid model; `StoreError` if the store cannot be opened with it.
    public convenience init(
        for types: any PersistentModel.Type..., store: StoreDescription, stack: ContextStack = .siblings,
        allowsDataLoss: Set<String> = []
    ) async throws {
        try await self.init(
            model: types.isEmpty ? .empty : Model(types), store: store, stack: stack, allowsDataLoss: allowsDataLoss)
    }

    /// The context of the main actor, with synchronous reads and `async` saves. Its objects stay on the main actor.
    ///
    /// In the stacks `.nested` and `.masterMainWorker`, the first use creates the context. It shows the newest state of that time until it
    /// saves, is refreshed or merges. In the other stacks it merges each save.
    ///
    /// The container retains the context, and not the other way round: retain the container as long as you use the context.
    @MainActor public var mainContext: ManagedObjectContext { main.context }

    /// Creates a context with its own executor, at the place that ``stack`` determines. O(1), whatever the size of the main context.
    /// The caller retains it. Off the main actor, use ``makeBackgroundContext(name:)``.
    @MainActor public func newBackgroundContext(name: String = "background") -> BackgroundContext {
        switch stack {
        case .nested, .masterMainWorker, .hybrid: mainContext.newBackgroundChild(name: name)
        case .siblings: coordinator.newBackgroundContext(name: name)
        case .split: backgroundCoordinator.newBackgroundContext(name: name)
        }
    }

    /// Creates a context as ``newBackgroundContext(name:)`` does, from any executor.
    ///
    /// Waits for the main actor only in stacks whose background contexts are children of the main context: `.nested`,
    /// `.masterMainWorker` and `.hybrid`.
    public func makeBackgroundContext(name: String = "background") async -> BackgroundContext {
        switch stack {
        case .nested, .masterMainWorker, .hybrid: await newBackgroundContext(name: name)
        case .siblings, .split: backgroundCoordinator.newBackgroundContext(name: name)
        }
    }

    /// Creates a root context for large imports. In `.hybrid` and `.split` it uses a coordinator of its own.
    public func newBatchOperationContext(name: String = "batch") -> BackgroundContext {
        backgroundCoordinator.newBackgroundContext(name: name)
    }

    /// Creates a confined context: a root context without an executor, which any thread may use, one thread at a time.
    ///
    /// Debug builds stop the program when two threads use it at one time. Without unsaved changes, each request, save and refresh first moves
    /// the context to the newest state. With unsaved changes, it does so if it merges automatically. Between requests it reads one state.
    /// It has no children, and live results of it are updated at its requests. Closing the container waits for its running request or save,
    /// and then ends its reads: properties read as if the objects were deleted, and requests throw.
    package func makeConfinedContext(name: String = "confined", merging: Bool = false) -> sending ManagedObjectContext {
        coordinator.makeConfinedContext(name: name, merging: merging)
    }

    /// Waits until every save made so far is on disk.
    public func flush() async throws {
        try await coordinator.flush()
        if backgroundCoordinator !== coordinator { try await backgroundCoordinator.flush() }
    }

    /// Waits, blocking the calling thread, until every save made so far is on disk.
    ///
    /// - Parameter reportsFailures: Whether to throw if earlier deferred saves could not be written. Each is reported once, so work that the
    ///   program does not wait for leaves the report to the program's next flush.
    package func flushNow(reportsFailures: Bool = true) throws {
        try coordinator.flushNow(reportsFailures: reportsFailures)
        if backgroundCoordinator !== coordinator { try backgroundCoordinator.flushNow(reportsFailures: reportsFailures) }
    }

    // MARK: Building

    /// Notifies one coordinator of another's saves if each has its own store object (SQLite).
    private final class CoordinatorBridge: Sendable {
        private let source: StoreWriter
        private let listener: UInt64

        init(from: PersistentStoreCoordinator, to: PersistentStoreCoordinator) {
            source = from.writer
            to.writer.shared.withLock { $0.sibling = from.writer }
            listener = from.writer.addListener { [weak to] _, source in
                // Saves that were learned from the other coordinator count as external.
                guard let to, source != .externalProcess else { return }
                // Adopt the save now, so that the other coordinator's contexts are notified before the save returns (S068).
                to.writer.adoptSavesOfSibling()
            }
        }

        deinit { source.removeListener(listener) }
    }
}

extension PersistentStoreCoordinator {
    /// Creates a confined context. See ``PersistentContainer/makeConfinedContext(name:merging:)``.
    package func makeConfinedContext(name: String, merging: Bool = false) -> sending ManagedObjectContext {
        ConfinedExecutor.makeContext(.root(of: self, name: name, merging: merging, beginsAtFirstRead: true))
    }

    /// Creates a root context with its own executor. It reads the newest state until it saves, merges or is advanced (S090).
    public func newBackgroundContext(name: String = "background") -> BackgroundContext {
        BackgroundContext(.root(of: self, name: name))
    }

    /// Creates a root context that reads the state of a snapshot (S150).
    ///
    /// - Precondition: The snapshot belongs to the coordinator's store.
    public func newBackgroundContext(name: String = "background", reading snapshot: Snapshot) -> BackgroundContext {
        precondition(snapshot.store == store.identity, "the context \(name) cannot read a snapshot of another store")
        var new = NewContext.root(of: self, name: name)
        new.baseState.state = snapshot.state(for: writer)
        new.baseState.isPinned = true
        return BackgroundContext(new)
    }
}

extension PersistentContainer: CustomStringConvertible, CustomReflectable {
    /// The store and the stack: `container of music.strata, siblings`.
    public var description: String { "container of \(coordinator.store.name), \(stack)" }

    /// No children: the state of contexts is no content to print.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
