import Foundation
import Histogram

/// The figures of a load test, as text.
struct Report {
    var samples: [Workload.Sample]
    var duration: Duration
    var repeated: Int
    var states: Int
    /// The threads of the server before the first request.
    var threadsAtStart: Int?
    /// The largest use of threads and memory during the requests.
    var peak: ServerProcess.Usage
    /// The largest number of snapshots held at once during the requests.
    var snapshots: Int

    func write() {
        print("                   requests     p50, ms     p99, ms     max, ms")
        line("all", samples)
        for operation in Workload.Operation.allCases { line(operation.rawValue, samples.filter { $0.operation == operation }) }
        let seconds = Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
        row("requests per second", String(format: "%.0f", Double(samples.count) / seconds))
        row("repeated after 503", "\(repeated)")
        row("states sent to listeners", "\(states)")
        row("threads of the server, at most", threads)
        row("resident memory, at most", peak.residentKilobytes.map { "\($0 / 1_024) MiB" } ?? "unknown on this system")
        row("snapshots held at once, at most", "\(snapshots)")
    }

    /// The threads, beside the number that contexts add at most according to Docs/Concurrency.md. Requests also start threads of Swift's
    /// tasks, of Dispatch and of the HTTP server, at times that differ between runs. So a larger number is no failure.
    private var threads: String {
        guard let most = peak.threads, let threadsAtStart else { return "unknown on this system" }
        let bound = ProcessInfo.processInfo.activeProcessorCount + 4
        return "\(most), and \(threadsAtStart) before the requests; contexts add \(bound) at most, the rest is of other parts"
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
