import Dispatch

/// The time by which a writer and its coordinators do what is due later. Tests step one of their own.
protocol WriterClock: Sendable {
    var now: DispatchTime { get }
    /// Runs `body` on the queue once the time has come.
    func run(at time: DispatchTime, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void)
}

/// The clock of the system, which stands still while it sleeps.
struct SystemClock: WriterClock {
    var now: DispatchTime { .now() }

    func run(at time: DispatchTime, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: time, execute: body)
    }
}
