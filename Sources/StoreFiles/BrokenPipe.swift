import StoreModel
internal import Platform

/// Runs `body` so that writing to a pipe or socket without a reader is an error and does not kill the process. This includes
/// threads that `body` creates.
public func withoutBrokenPipeSignal<R>(_ body: () throws -> R) rethrows -> R {
    try CurrentThread.withoutBrokenPipeSignal(body)
}
