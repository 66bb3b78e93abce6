import Dispatch
import StoreInterface

/// Frees layers elsewhere than on the executor that used them last.
enum BackgroundDeallocator {
    private static let queue = DispatchQueue(label: "strata.disposal", qos: .utility)
    /// A moment in which whoever hands layers over has let go of them.
    private static let delay = DispatchTimeInterval.milliseconds(1)

    static func release(of layers: [Layer]) {
        guard !layers.isEmpty else { return }
        queue.asyncAfter(deadline: .now() + delay) { withExtendedLifetime(layers) {} }
    }
}
