internal import Platform

/// The progress of creating a container's main context, which begins at its first use on the main actor.
final class MainContextCreation: Sendable {
    private let isBegun = Atomic(false)
    private let created = Mutex<BackgroundContext?>(nil)

    /// Whether the main context is used. If false after a save, the main context will read a state that contains the save.
    var hasBegun: Bool { isBegun.load(ordering: .acquiring) }

    /// The root above the main context, which programs do not see. nil in stacks without one, and until the main context is used.
    var root: BackgroundContext? { created.withLock { $0 } }

    /// Marks the main context as used. Call this before reading its first state.
    func begin() { isBegun.store(true, ordering: .releasing) }

    /// Creates the root above the main context. It may lack a save that was made before ``root`` returns it.
    func makeRoot(_ new: NewContext) -> BackgroundContext {
        let made = BackgroundContext(new)
        created.withLock { $0 = made }
        return made
    }
}
