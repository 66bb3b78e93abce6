import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Work that runs on every stack, store and routing, and checks its own result.
public protocol Workload: Sendable {
    /// The command's name.
    var name: String { get }
    /// The number of objects and links of a run.
    var objectCount: Int { get }
    var durability: DurabilityKind { get }
    /// The number of objects per save. nil means that the workload has its own save points.
    var saveEvery: Int? { get }
    /// Runs once in new files. Throws ``VerificationError`` if the result is wrong.
    func run(_ setting: BenchmarkConfiguration) async throws -> RunFigures
}

/// Runs a workload in several configurations, alternating: A B C, A B C. Other load on the machine therefore affects all alike.
public struct WorkloadRunner: Sendable {
    public var settings: [BenchmarkConfiguration]
    public var repeats: Int
    public var progress: ProgressBar

    public init(settings: [BenchmarkConfiguration], repeats: Int, progress: ProgressBar) {
        self.settings = settings
        self.repeats = repeats
        self.progress = progress
    }

    /// Returns one row per configuration, in the given order.
    public func rows(_ workload: some Workload) async throws -> [Report.Row] {
        var runs: [[RunFigures]] = Array(repeating: [], count: settings.count)
        for _ in 0..<repeats {
            for (number, setting) in settings.enumerated() {
                progress.step("\(workload.name): \(setting.name)")
                do { runs[number].append(try await workload.run(setting)) } catch let error as VerificationError {
                    throw VerificationError("\(workload.name), \(setting.name): \(error)")
                }
            }
        }
        return zip(settings, runs).map { setting, runs in
            var row = Report.Row(
                benchmark: workload.name, durability: workload.durability.rawValue, objects: workload.objectCount, verified: true)
            row.stack = setting.stack.rawValue
            row.store = setting.store.rawValue
            row.routing = setting.routing.rawValue
            row.saveEvery = workload.saveEvery
            row.take(runs)
            return row
        }
    }
}

extension PersistentContainer {
    /// Returns the context for an import in this stack. If the stack has a batch context, it is used.
    func importContext(name: String) async -> BackgroundContext {
        stack == .hybrid ? newBatchOperationContext(name: name) : await newBackgroundContext(name: name)
    }
}
