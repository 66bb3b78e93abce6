import ObjectGraph

/// An actor with a model context, which only the actor uses. ``ModelActor(disableGenerateInit:)`` generates the requirements.
///
/// ```swift
/// @ModelActor actor Importer {
///     func add(_ names: [String]) throws {
///         for name in names { modelContext.insert(Trip(name: name)) }
///         try modelContext.save()
///     }
/// }
/// ```
public protocol ModelActor: Actor {
    /// The container of the actor's context.
    nonisolated var modelContainer: ModelContainer { get }
    /// The executor of the actor, which has the context.
    nonisolated var modelExecutor: any ModelExecutor { get }
}

extension ModelActor {
    /// The executor of the actor: the ``modelExecutor``.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        guard let executor = modelExecutor as? any SerialModelExecutor else {
            preconditionFailure("the executor of a model actor is a SerialModelExecutor")
        }
        return executor.asUnownedSerialExecutor()
    }

    /// The context of the actor.
    public var modelContext: ModelContext { modelExecutor.modelContext }

    /// Returns the object with an identifier; nil if it is not of this type or its object does not exist.
    public subscript<T: PersistentModel>(id: PersistentIdentifier, as type: T.Type) -> T? {
        modelContext.catchUp(with: id)
        guard id.storeIdentifier == nil else { return try? modelContext.context.existingObject(type, with: id.objectID) }
        // Only the context of the insertion knows an object by its provisional identifier.
        let inserted: T? = modelContext.registeredModel(for: id)
        return inserted.flatMap { $0.isDeleted ? nil : $0 }
    }
}

/// An executor with a context.
public protocol ModelExecutor: Executor {
    /// The context, which jobs of the executor use.
    var modelContext: ModelContext { get }
}

/// A ``ModelExecutor`` that runs one job at a time.
public protocol SerialModelExecutor: ModelExecutor, SerialExecutor {}

/// An executor that runs the jobs of an actor one at a time, on the threads that all background contexts share.
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
    // `@unchecked Sendable` is safe because only the jobs of the executor use the context.
    /// The context of the executor.
    public let modelContext: ModelContext
    private let executor = QueueExecutor(name: "a model actor")

    /// Creates an executor of a context. Use the context on the executor only.
    public init(modelContext: ModelContext) { self.modelContext = modelContext }

    /// Runs a job after all jobs that were added before.
    public func enqueue(_ job: consuming ExecutorJob) { executor.enqueue(job) }

    /// Returns the executor for an actor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Stops the program unless a job of the executor is running on the calling thread.
    public func checkIsolated() { executor.checkIsolated() }
}
