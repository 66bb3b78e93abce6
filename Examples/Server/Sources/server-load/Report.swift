import Foundation
import Histogram

/// The figures of a load test, as text.
struct Report {
    var samples: [Workload.Sample]
    var duration: Duration
    var repeated: Int
    var states: Int
    var peak: ServerProcess.Usage
    var snapshots: [String]

    func write() {
        print("                   requests     p50, ms     p99, ms     max, ms")
        line("all", samples)
        for operation in Workload.Operation.allCases { line(operation.rawValue, samples.filter { $0.operation == operation }) }
        let seconds = Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
        row("requests per second", String(format: "%.0f", Double(samples.count) / seconds))
        row("repeated after 503", "\(repeated)")
        row("states sent to listeners", "\(states)")
        row("threads of the server, at most", peak.threads.map { "\($0)" } ?? "unknown on this system")
        row("resident memory, at most", peak.residentKilobytes.map { "\($0 / 1_024) MiB" } ?? "unknown on this system")
        row("snapshots held at the end", "\(snapshots.count)")
        for snapshot in snapshots { print("    \(snapshot)") }
    }

    private func line(_ name: String, _ samples: [Workload.Sample]) {
        var histogram = Histogram<UInt64>(highestTrackableValue: 600_000_000_000, numberOfSignificantValueDigits: .three)
        for sample in samples { histogram.record(sample.nanoseconds) }
        let values = [histogram.valueAtPercentile(50), histogram.valueAtPercentile(99), histogram.max]
        let columns = values.map { String(format: "%12.2f", Double($0) / 1e6) }.joined()
        print(name.padding(toLength: 15, withPad: " ", startingAt: 0) + String(format: "%12d", samples.count) + columns)
    }

    private func row(_ name: String, _ value: String) {
        print(name.padding(toLength: 34, withPad: " ", startingAt: 0) + value)
    }
}
