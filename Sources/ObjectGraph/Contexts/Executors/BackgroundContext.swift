import Dispatch
import StoreInterface
import StoreModel

/// A context with its own executor, for imports, long reads and child contexts.
///
/// Pass work to the context as closures that return `Sendable` values; objects cannot leave the closure (S170).
/// Releasing the last reference drops the context and its unsaved changes.
///
/// ```swift
/// let importer = container.newBackgroundContext(name: "importer")
/// let ids = await importer.perform { context in
///     titles.map { title in
///         let track = Track(title: title)
///         context.insert(track)
///         return track.id
///     }
/// }
/// try await importer.save()
/// ```
public actor BackgroundContext: ContextExecutor {
    let context: ManagedObjectContext
    private nonisolated let executor: QueueExecutor
    /// The name of the context in messages, notices and the history.
    public nonisolated let name: String

    /// The executor of the context. It runs jobs one at a time on threads that all background contexts share, outside of the cooperative pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ new: NewContext) {
        let configuration = new.configuration
        name = configuration.name
        executor = QueueExecutor(name: configuration.name)
        let place = ContextAddress(executor: executor, below: configuration.parent?.place)
        context = ManagedObjectContext(new, place: place)
        place.contextExecutor = self
        if configuration.writer.suspension.isSuspended { enqueue { $0.suspendIfStoreIs() } }
        if configuration.automaticallyMergesChanges { enqueue { $0.follow() } }
        if configuration.coordinator.closesNewContexts { enqueue { $0.close {} } }
    }

    /// Runs `body` on the context's executor with exclusive access to the context, then processes pending changes.
    ///
    /// The result must be `Sendable`, so objects cannot leave the closure. Return their ids instead. Rethrows the error of `body`;
    /// changes made before the error stay in the context, unsaved.
    public func perform<T: Sendable, E: Error>(_ body: @Sendable (ManagedObjectContext) throws(E) -> T) throws(E) -> T {
        defer { context.processPendingChanges() }
        return try body(context)
    }

    /// Runs an asynchronous `body` on the context's executor, then processes pending changes.
    ///
    /// Between two suspensions, `body` has exclusive access to the context. While it is suspended, other work of the context may run, as in
    /// every actor: another `perform` may change objects, save or roll back, and a context that merges automatically may move to a newer
    /// state. After a suspension, read again what must be current. For steps that belong together, use ``perform(andSave:through:_:)`` or
    /// ``perform(_:)`` with a synchronous body.
    ///
    /// ```swift
    /// try await importer.perform { _, context in
    ///     for try await line in url.lines { context.insert(Track(title: line)) }
    ///     try await context.save()
    /// }
    /// ```
    /// - Parameter body: Gets this actor, which makes the closure run on its executor, and the context. Rules for the result and for errors are
    ///   those of a synchronous body.
    public func perform<T: Sendable, E: Error>(
        _ body: @Sendable (isolated BackgroundContext, ManagedObjectContext) async throws(E) -> T
    ) async throws(E) -> T {
        // The two parameters keep this overload apart from the other: with closures of one parameter, the compiler would choose among the
        // overloads and not see objects among the results.
        defer { context.processPendingChanges() }
        return try await body(self, context)
    }

    /// Runs `body` and saves its changes without a gap.
    ///
    /// No other work of the context runs between the beginning of `body` and the moment at which its changes are handed over. A running save
    /// is awaited first. Earlier unsaved changes are saved too. If `body` or the save throws, nothing is saved and all changes stay in
    /// the context, with one exception: see ``ManagedObjectContext/save(_:)``.
    ///
    /// ```swift
    /// let id = try await importer.perform(andSave: .durable) { context in
    ///     let track = Track(title: "Baguette")
    ///     context.insert(track)
    ///     return track.id
    /// }
    /// ```
    /// - Parameters:
    ///   - durability: When the save counts as done.
    ///   - target: `.store` saves a child, its parents and the root as one step (S064). nil, the default, saves one level.
    ///   - body: The work, with exclusive access to the context.
    /// - Returns: The result of `body`, after the save.
    public func perform<T: Sendable>(
        andSave durability: Durability, through target: SaveTarget? = nil,
        _ body: @Sendable (ManagedObjectContext) throws -> T
    ) async throws -> T {
        try await context.save(durability, through: target) {
            defer { context.processPendingChanges() }
            return try body(context)
        }
    }

    /// Creates a child with its own executor, which shows the present state of this context (S071). O(layers), whatever their size.
    public func newBackgroundChild(name: String = "child") -> BackgroundContext { context.newBackgroundChild(name: name) }

    /// Creates a child on the main actor, which shows the present state of this context (S081). The caller retains it.
    @MainActor public func newMainChild(name: String = "child") async -> ManagedObjectContext {
        let new = await perform { NewContext.child(of: $0, name: name) }
        return ChildExecutor.makeContext(new, on: nil)
    }

    /// Runs `body`, and saves its changes if `durability` is given. Then resets the context on this executor, so that its objects are not
    /// deallocated on the caller's executor and the snapshot is released. For contexts with a single user.
    func performOnce<T: Sendable>(
        andSave durability: Durability?, _ body: @Sendable (ManagedObjectContext) throws -> T
    ) async throws -> T {
        // The context was not used if it is suspended. A reset would open the file again.
        defer { if !context.phase.isSuspended { context.reset() } }
        guard let durability else { return try body(context) }
        do {
            return try await context.save(durability, through: nil) { try body(context) }
        } catch let error as SaveError where error.code == .uniqueConstraint && context.isOvertaken {
            throw DuplicateOfNewerSave(error: error)
        }
    }

    /// A unique value was taken, and others have saved since the context began to read: it may not have seen who took the value.
    struct DuplicateOfNewerSave: Error {
        let error: SaveError
    }

    /// Saves one level: a root context to the store, a child to its parent. See ``ManagedObjectContext/save(_:)``.
    public func save(_ durability: Durability = .durable) async throws {
        try await context.save(durability)
    }

    /// Saves the context, its parents and the root as one step (S064).
    public func save(through target: SaveTarget, _ durability: Durability = .durable) async throws {
        try await context.save(through: target, durability)
    }

    /// Moves a child to its parent's present state (S072).
    public func refreshFromParent() async throws { try await context.refreshFromParent() }

    @discardableResult
    nonisolated func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) -> Bool {
        executor.async { self.runIsolated(job) }
        return true
    }

    nonisolated func runHere(_ job: (ManagedObjectContext) -> Void) {
        // Safe because the job is called on this thread before `assumeIsolated` returns.
        nonisolated(unsafe) let job = job
        assumeIsolated { job($0.context) }
    }

    nonisolated func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) {
        if executor.isCurrent { return assumeIsolated { job($0.context) } }
        executor.sync { self.runIsolated(job) }
    }

    private nonisolated func runIsolated(_ job: @Sendable (ManagedObjectContext) -> Void) {
        assumeIsolated { contextExecutor in contextExecutor.context.moving { job(contextExecutor.context) } }
    }
}

/// The destination of a save through parent contexts.
///
/// ```swift
/// try await draft.save()  // into its parent
/// try await draft.save(through: .store)  // and through all parents into the file
/// ```
public enum SaveTarget: Sendable {
    /// The store, through every parent.
    case store
}

extension BackgroundContext: CustomStringConvertible, CustomReflectable {
    /// The name of the context.
    public nonisolated var description: String { "background context \(name)" }

    /// No children, because printing the context's state off its executor would be an error.
    public nonisolated var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
