import Dispatch
import StoreInterface
import StoreModel

/// Frees layers on a background queue instead of on the executor that used them last.
enum BackgroundDeallocator {
    private static let queue = DispatchQueue(label: "strata.disposal", qos: .utility)
    /// A delay that gives the caller time to release its own references to the layers.
    private static let delay = DispatchTimeInterval.milliseconds(1)

    static func release(of layers: [Layer]) {
        guard !layers.isEmpty else { return }
        queue.asyncAfter(deadline: .now() + delay) { withExtendedLifetime(layers) {} }
    }
}
