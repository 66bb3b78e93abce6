import Figures
import Synchronization

/// A piece of work that keeps one processor busy for a given time and touches no memory: it stands for an importer's parsing.
///
/// It is a fixed number of steps. The time of a step is measured once per process.
public struct ProcessorWork: Sendable, Hashable {
    private let steps: Int

    /// - Parameter nanoseconds: the time that one run takes on an idle processor.
    public init(nanoseconds: Double) {
        steps = nanoseconds > 0 ? max(1, Int(nanoseconds * Self.stepsPerNanosecond)) : 0
    }

    /// Does the work and returns the nanoseconds that it took.
    func run() -> UInt64 {
        if steps == 0 { return 0 }
        let start = Clock.now()
        Self.sink.store(Self.mixed(steps, seed: start), ordering: .relaxed)
        return Clock.now() - start
    }

    /// Keeps the compiler from removing the work.
    private static let sink = Atomic<UInt64>(0)

    /// The fastest of several measurements: other load on the machine can only slow one down.
    private static let stepsPerNanosecond: Double = {
        let steps = 200_000
        let times = (0..<20).map { round in
            let start = Clock.now()
            sink.store(mixed(steps, seed: UInt64(round)), ordering: .relaxed)
            return Clock.now() - start
        }
        return Double(steps) / Double(max(1, times.min() ?? 1))
    }()

    /// Each step needs the result of the one before.
    @inline(never)
    private static func mixed(_ steps: Int, seed: UInt64) -> UInt64 {
        var state = seed | 1
        for _ in 0..<steps {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
        }
        return state
    }
}
