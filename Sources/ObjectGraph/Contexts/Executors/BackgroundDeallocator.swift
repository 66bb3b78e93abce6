import Dispatch
import StoreInterface
import StoreModel

/// Frees layers and pages on a background queue instead of on the executor that used them last.
enum BackgroundDeallocator {
    private static let queue = DispatchQueue(label: "strata.disposal", qos: .utility)
    /// A delay that gives the caller time to release its own references to them.
    private static let delay = DispatchTimeInterval.milliseconds(1)

    static func release(of layers: [Layer]) {
        guard !layers.isEmpty else { return }
        release { withExtendedLifetime(layers) {} }
    }

    /// - Parameter owner: A closure that captures the objects to free.
    static func release(_ owner: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + delay, execute: owner)
    }
}
