import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Work that runs on every stack, store and routing, and checks its own result.
public protocol Workload: Sendable {
    /// The command's name.
    var name: String { get }
    /// Objects and links that a run makes.
    var objectCount: Int { get }
    var durability: DurabilityKind { get }
    /// How many objects lie between two saves; nil: the workload has its own save points.
    var saveEvery: Int? { get }
    /// Runs once in new files. Throws ``VerificationError`` when the result is not what it should be.
    func run(_ setting: BenchmarkConfiguration) async throws -> RunFigures
}

/// Runs a workload over settings, alternating: A B C, A B C, so that what the machine does meanwhile hits all alike.
public struct WorkloadRunner: Sendable {
    public var settings: [BenchmarkConfiguration]
    public var repeats: Int
    public var progress: ProgressBar

    public init(settings: [BenchmarkConfiguration], repeats: Int, progress: ProgressBar) {
        self.settings = settings
        self.repeats = repeats
        self.progress = progress
    }

    /// One row a setting, in the order of the settings.
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
    /// The context that an import uses in this stack: where there is a batch context, that is what it is for.
    func importContext(name: String) async -> BackgroundContext {
        stack == .hybrid ? newBatchOperationContext(name: name) : await newBackgroundContext(name: name)
    }
}
