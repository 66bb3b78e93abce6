import CoreDataRouting
import Figures
import ObjectGraph
import StoreInterface

/// The processor time that an import spends on parsing, besides its work on objects.
public enum ParseCost: String, Sendable, Hashable, CaseIterable {
    /// None: the data is ready before the import begins.
    case none
    /// The share of the published import: 40 seconds of parsing where the work below the importer took 27 with siblings.
    case published

    /// The published import took 83 s nested, of which 43 s on the main thread, where all work below the importer ran. So the importer
    /// itself took 40 s, and the work below it 67 - 40 = 27 s with siblings.
    public static let publishedRatio = 40.0 / 27.0
}

/// The time of parsing one object, for each store and routing.
public struct ParseTimes: Sendable {
    struct Place: Sendable, Hashable {
        var store: StoreKind
        var routing: Routing
    }

    private var nanoseconds: [Place: Double] = [:]
    /// One line per store and routing, for the report.
    public private(set) var notes: [String] = []

    public init() {}

    /// Measures the siblings on each store and routing of the configurations, without parsing, and derives the time per object.
    ///
    /// - Parameter repeats: the number of measurements after one that warms up; their median counts.
    public static func published(
        _ workload: Shootout, _ settings: [BenchmarkConfiguration], repeats: Int, progress: ProgressBar
    ) async throws -> ParseTimes {
        var times = ParseTimes()
        for setting in settings {
            let place = Place(store: setting.store, routing: setting.routing)
            if times.nanoseconds[place] != nil { continue }
            let siblings = BenchmarkConfiguration(stack: .siblings, store: setting.store, routing: setting.routing)
            var runs: [Double] = []
            for _ in 0...repeats {
                progress.step("\(workload.name): the parse cost for \(siblings.name)")
                runs.append(try await workload.run(siblings).totalSeconds)
            }
            // The first run warms up.
            let total = Spread(Array(runs.dropFirst())).median
            let each = total * ParseCost.publishedRatio / Double(max(1, workload.importedObjectCount)) * 1e9
            times.nanoseconds[place] = each
            times.notes.append(
                "Parse cost on \(setting.store.rawValue), \(setting.routing.rawValue): siblings took \(Shown.number(total)) s without "
                    + "it (median of \(repeats), measured first), so the importer computes 40/27 of that, "
                    + "\(Shown.number(each / 1000)) µs per object.")
        }
        return times
    }

    func work(_ setting: BenchmarkConfiguration) -> ProcessorWork {
        ProcessorWork(nanoseconds: nanoseconds[Place(store: setting.store, routing: setting.routing)] ?? 0)
    }
}
