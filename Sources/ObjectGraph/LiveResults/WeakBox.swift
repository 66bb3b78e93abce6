/// A weak reference that an observer of a context's view has to the result that it updates.
final class WeakBox<Owner: AnyObject>: @unchecked Sendable {
    // `@unchecked Sendable` is safe because `owner` is set before the observation begins. Later it is used only on the context's
    // executor, on which the owner is also released.
    weak var owner: Owner?
}
