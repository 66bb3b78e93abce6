import Dispatch

/// The clock by which a writer and its coordinators schedule later work. Tests use a clock that they advance themselves.
protocol WriterClock: Sendable {
    var now: DispatchTime { get }
    /// Runs `body` on the queue at the given time.
    func run(at time: DispatchTime, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void)
}

/// The system's clock, which does not advance while the system sleeps.
struct SystemClock: WriterClock {
    var now: DispatchTime { .now() }

    func run(at time: DispatchTime, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: time, execute: body)
    }
}
