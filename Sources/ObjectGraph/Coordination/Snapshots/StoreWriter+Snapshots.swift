import Dispatch
import Logging
internal import Platform
import StoreInterface
import StoreModel

/// The budget of snapshots, and the result of its last check.
final class SnapshotBudgetState: Sendable {
    private let shared = Mutex(Shared())
    let queue = DispatchQueue(label: "strata.budget", qos: .utility)

    struct Shared {
        var budget: SnapshotBudget?
        var listener: UInt64?
        /// Whether a check is running, or ran less than the interval ago.
        var isResting = false
        /// Whether the last check found a snapshot over the budget.
        var isExceeded = false
        /// By owners, the time of the last warning, and how often they exceeded the budget since then.
        var warned: [String: Warning] = [:]
    }

    struct Warning {
        var time: DispatchTime
        var repeated = 0
    }

    var budget: SnapshotBudget? { withLock { $0.budget } }

    func withLock<R: Sendable>(_ body: (inout sending Shared) -> sending R) -> R { shared.withLock(body) }
}

extension StoreWriter {
    /// The time between two checks while this process does not save.
    private static let budgetRepetition: DispatchTimeInterval = .milliseconds(500)
    /// The time between two checks after saves.
    private static let budgetInterval: DispatchTimeInterval = .milliseconds(50)
    /// The time between two warnings about the same owners. The second warning contains the number of repetitions.
    private static let warningInterval: DispatchTimeInterval = .seconds(10)

    func liveSnapshots() throws -> [LiveSnapshot] {
        let live = snapshotRegistry.live()
        return try report(live.taken) + resting(live.resting)
    }

    /// Returns the newest state if contexts use it that have read nothing yet. It keeps no pages from reuse.
    private func resting(_ holders: [SnapshotRegistry.Holder]) -> [LiveSnapshot] {
        guard !holders.isEmpty else { return [] }
        return [
            LiveSnapshot(
                owners: holders.map(\.owner).sorted(), processID: SaveMetadata.thisProcess, age: .zero,
                generation: state.generation, bytesRetained: 0, isNewest: true)
        ]
    }

    private func report(_ live: [SnapshotRegistry.Live]) throws -> [LiveSnapshot] {
        let newest = state.committed
        let retention = try store.retention(of: live.map(\.base))
        let now = ContinuousClock.now
        let own = zip(live, retention.bytes).map { entry, bytes in
            LiveSnapshot(
                owners: entry.holders.map(\.owner).sorted(), processID: SaveMetadata.thisProcess, age: now - entry.taken,
                generation: entry.base.generation, bytesRetained: bytes, isNewest: entry.base.generation >= newest)
        }
        let external = retention.external.map {
            LiveSnapshot(
                owners: [], processID: $0.processID, age: nil, generation: nil, bytesRetained: $0.bytes, isNewest: $0.isNewest)
        }
        return own + external
    }

    // MARK: The budget

    func setSnapshotBudget(_ budget: SnapshotBudget?) {
        let old = snapshotRegistry.budget.withLock { state in
            defer {
                state.budget = budget
                state.isExceeded = false
                state.listener = nil
            }
            return state.listener
        }
        if let old { removeListener(old) }
        guard budget != nil else { return }
        let number = addListener { [weak self] _, _ in self?.snapshotsMayCostMore() }
        snapshotRegistry.budget.withLock { $0.listener = number }
        snapshotsMayCostMore()
        lookAgainLater(number)
    }

    /// Repeats the check, because snapshots grow older and other processes save even if this process does not.
    private func lookAgainLater(_ listener: UInt64) {
        clock.run(at: clock.now + Self.budgetRepetition, on: snapshotRegistry.budget.queue) { [weak self] in
            guard let self, snapshotRegistry.budget.withLock({ $0.listener == listener }) else { return }
            lookForExternalSaves()
            holdToBudget()
            lookAgainLater(listener)
        }
    }

    /// Throws if the budget refuses new snapshots. Repeats the check only if the last check found the budget exceeded.
    func checkSnapshotBudget() throws {
        let (budget, wasExceeded) = snapshotRegistry.budget.withLock { ($0.budget, $0.isExceeded) }
        guard let budget, wasExceeded, budget.responses.contains(.refuseNewSnapshots) else { return }
        let over = try liveSnapshots().filter(budget.isExceeded)
        guard !over.isEmpty else { return snapshotRegistry.budget.withLock { $0.isExceeded = false } }
        Self.log.warning("a new snapshot was refused: \(over.map(\.description).joined(separator: "; "))")
        throw SnapshotError.overBudget(over)
    }

    /// Schedules a check. Called after saves, on the writer's queue. Never waits.
    private func snapshotsMayCostMore() {
        let isDue = snapshotRegistry.budget.withLock { state in
            defer { state.isResting = true }
            return !state.isResting && state.budget != nil
        }
        guard isDue else { return }
        let queue = snapshotRegistry.budget.queue
        // At the end of the interval, so that the check includes the last save of a burst.
        clock.run(at: clock.now + Self.budgetInterval, on: queue) { [weak self] in
            self?.snapshotRegistry.budget.withLock { $0.isResting = false }
            self?.holdToBudget()
        }
    }

    private func holdToBudget() {
        guard let budget = snapshotRegistry.budget.budget else { return }
        // The check reads the file, and a suspended store stays closed.
        guard suspension.enterIfOpen() else { return }
        defer { suspension.leave() }
        do {
            let live = snapshotRegistry.live().taken
            let reports = try report(live)
            let over = reports.enumerated().filter { budget.isExceeded(by: $0.element) }
            snapshotRegistry.budget.withLock { $0.isExceeded = !over.isEmpty }
            for (place, snapshot) in over {
                let holders = place < live.count ? live[place].holders : []
                let places = budget.responses.contains(.advanceCleanContexts) ? holders.compactMap(\.place) : []
                warn(snapshot, Self.response(to: places))
                for place in places where place.confinement == nil { place.contextExecutor?.enqueue { $0.advanceIfClean() } }
            }
        } catch {
            Self.log.warning("checking the snapshot budget failed: \(error)")
        }
    }

    /// Returns the end of the warning: the contexts that are advanced. A context without an executor moves itself, at its next request.
    private static func response(to places: [ContextAddress]) -> String {
        let confined = places.count { $0.confinement != nil }
        let advanced = places.count > confined ? "; clean contexts are advanced" : ""
        return confined == 0 ? advanced : advanced + "; contexts without an executor stay until their next request"
    }

    private func warn(_ snapshot: LiveSnapshot, _ what: String) {
        let now = clock.now
        let owners = snapshot.owners.isEmpty ? "process \(snapshot.processID)" : snapshot.owners.joined(separator: ", ")
        let repeated = snapshotRegistry.budget.withLock { state -> Int? in
            if let last = state.warned[owners], now < last.time + Self.warningInterval {
                state.warned[owners]?.repeated += 1
                return nil
            }
            let repeated = state.warned[owners]?.repeated ?? 0
            state.warned = state.warned.filter { now < $0.value.time + Self.warningInterval }
            state.warned[owners] = SnapshotBudgetState.Warning(time: now)
            return repeated
        }
        guard let repeated else { return }
        let before = repeated == 0 ? "" : " (\(repeated) more times since the last warning)"
        Self.log.warning("a snapshot exceeds the budget: \(snapshot)\(what)\(before)")
    }
}
