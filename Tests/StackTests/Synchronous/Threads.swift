import Foundation
import ObjectGraph

/// A confined context that is passed from thread to thread.
///
/// `@unchecked Sendable` is safe because the tests use it on one thread at a time.
final class Carrier: @unchecked Sendable {
    var context: ManagedObjectContext?

    init(_ container: PersistentContainer, _ name: String = "confined", merging: Bool = false) {
        context = container.makeConfinedContext(name: name, merging: merging)
    }

    /// Runs `body` with the context on a new thread, and waits for it without blocking.
    func onThread<T: Sendable>(_ body: @escaping @Sendable (ManagedObjectContext) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        guard let context = self.context else { throw CancellationError() }
                        return try body(context)
                    })
            }
        }
    }

    /// Releases the context on a new thread.
    func release() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                self.context = nil
                continuation.resume()
            }
        }
    }
}
