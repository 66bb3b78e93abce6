/// The minimum, the median and the maximum of repeated measurements.
public struct Spread: Sendable, Hashable, Codable {
    public var min: Double
    public var median: Double
    public var max: Double

    /// Precondition: at least one measurement.
    public init(_ values: [Double]) {
        let sorted = values.sorted()
        min = sorted[0]
        max = sorted[sorted.count - 1]
        let middle = sorted.count / 2
        median = sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
