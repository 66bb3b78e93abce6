import Dispatch
import ObjectGraph
import Observation
internal import Platform
import StoreModel

/// A counter that changes when the history of a container's store gets saves of chosen models and authors, by any context or process.
///
/// Read the saves with ``ModelContext/fetchHistory(_:)``. Saves in quick succession may be counted once. The counter changes in the actor
/// that made the observer, so that views of that actor can show it.
///
/// ```swift
/// let observer = try HistoryObserver(observedModels: [Trip.self], modelContainer: container)
/// withObservationTracking {
///     print("saves were seen \(observer.eventCounter) times")
/// } onChange: {
///     fetchNewSaves()
/// }
/// ```
public final class HistoryObserver: Observable, Sendable {
    /// The container whose history is observed.
    public let modelContainer: ModelContainer
    /// The models whose changes count; empty for all.
    public let observedModels: [any PersistentModel.Type]
    /// The authors whose saves count; empty for all.
    public let authors: Set<String>
    private let registrar = ObservationRegistrar()
    private let state: Mutex<State>
    /// The queue on which the history is read.
    let queue = DispatchQueue(label: "strata.swiftdata.history-observer")
    private let observation = Mutex<ObservationToken?>(nil)
    private let isolation: ObserverIsolation

    private struct State {
        var count = 0
        /// The position from which the next reading starts.
        var token: ObjectGraph.HistoryToken
        /// The position that observers have been told.
        var shown: ObjectGraph.HistoryToken
        /// The number of readings.
        var readings = 0
        /// The number of the reading whose position observers have been told.
        var shownReading = 0
        /// Whether the history is to be read.
        var isWanted = false
        /// A closure of a test; see ``HistoryObserver/duringNextReading(_:)``.
        var interruption: (@Sendable () throws -> Void)?
    }

    /// Creates an observer.
    ///
    /// - Parameters:
    ///   - historyTokens: The positions after which saves count, by the identifiers of stores; nil for saves from now on.
    ///   - observedModels: The models whose changes count; empty for all.
    ///   - authors: The authors whose saves count; empty for all.
    ///   - modelContainer: The container.
    ///   - isolation: The actor in which the counter changes; nil for any thread.
    /// - Throws: The store's error if saves of other processes cannot be observed.
    public init(
        historyTokens: [String: any HistoryToken]? = nil, observedModels: [any PersistentModel.Type] = [],
        authors: Set<String> = [], modelContainer: ModelContainer, isolation: isolated (any Actor)? = #isolation
    ) throws {
        self.modelContainer = modelContainer
        self.observedModels = observedModels
        self.authors = authors
        self.isolation = ObserverIsolation(isolation)
        let container = modelContainer.storage.container
        // The program's next flush reports saves that were left out (S067).
        try container.flushNow(reportsFailures: false)
        let newest = container.coordinator.currentHistoryToken
        let start = (historyTokens?[newest.store.uuidString] as? DefaultHistoryToken)?.token ?? newest
        state = Mutex(State(token: start, shown: start))
        try container.followOtherProcesses()
        let token = container.coordinator.observeSaves { [weak self] in self?.read() }
        observation.withLock { $0 = token }
        // Finds the saves after the given position, and those that came before they were observed.
        read()
    }

    /// The number of times that relevant saves were found.
    public var eventCounter: Int {
        registrar.access(self, keyPath: \.eventCounter)
        return state.withLock { $0.count }
    }

    /// The position up to which the history was read, by the identifier of the store.
    public var historyTokens: [String: any HistoryToken] {
        registrar.access(self, keyPath: \.historyTokens)
        let token = state.withLock { $0.shown }
        return [token.store.uuidString: DefaultHistoryToken(token: token)]
    }

    /// Reads the new part of the history, off the calling thread. Calls that come while one waits are combined with it.
    private func read() {
        let isFirst = state.withLock { state in
            defer { state.isWanted = true }
            return !state.isWanted
        }
        guard isFirst else { return }
        queue.async { [weak self] in
            guard let self else { return }
            state.withLock { $0.isWanted = false }
            readNow()
        }
    }

    private func readNow() {
        let coordinator = modelContainer.storage.container.coordinator
        let start = state.withLock { $0.token }
        let names = observedModels.isEmpty ? nil : Set(observedModels.map { Schema.entityName(for: $0) })
        do {
            let isRead: Void? = try coordinator.unlessSuspended {
                // The history has only what is on disk.
                try modelContainer.storage.container.flushNow(reportsFailures: false)
                let end = coordinator.currentHistoryToken
                // A position of another copy may be after every save of this one, also within an incarnation that both have. Reading from
                // there throws.
                guard end != start else { return }
                let request = HistoryRequest(
                    after: start, authors: authors.isEmpty ? nil : authors, entities: names, limit: 1)
                try state.withLock { $0.interruption.take() }?()
                // A save that came meanwhile counts in the next reading.
                let first = try coordinator.historyNow(request).first
                finish(through: end, isRelevant: first.map { $0.id <= end.generation } ?? false)
            }
            if isRead == nil { readLater() }
        } catch is HistoryError {
            // The saves after the token are gone, so it is unknown what they changed.
            finish(through: coordinator.currentHistoryToken, isRelevant: true)
        } catch {
            Log.once("history \(ObjectIdentifier(self))", "the history was not observed: \(error)")
            // The cause may pass without another save, whose reading would find this one.
            if (error as? StoreError)?.code != .closed { readLater() }
        }
    }

    /// Calls a closure of a test once: in the next reading of new saves, when it has chosen its end and before it reads them.
    func duringNextReading(_ body: @escaping @Sendable () throws -> Void) { state.withLock { $0.interruption = body } }

    private func readLater() {
        Task { [weak self] in
            try? await Task.sleep(for: suspensionDelay)
            self?.read()
        }
    }

    private func finish(through token: ObjectGraph.HistoryToken, isRelevant: Bool) {
        // The next reading begins here, even if the actor is busy.
        let reading = state.withLock { state in
            state.token = token
            state.readings += 1
            return state.readings
        }
        if isolation.isNone { return show(token, of: reading, isRelevant: isRelevant) }
        // Without its actor, the observer has no place to change.
        guard let actor = isolation.actor else { return }
        Task { await show(token, of: reading, isRelevant: isRelevant, in: actor) }
    }

    private func show(_ token: ObjectGraph.HistoryToken, of reading: Int, isRelevant: Bool, in isolation: isolated any Actor) {
        show(token, of: reading, isRelevant: isRelevant)
    }

    private func show(_ token: ObjectGraph.HistoryToken, of reading: Int, isRelevant: Bool) {
        if isRelevant { registrar.withMutation(of: self, keyPath: \.eventCounter) { state.withLock { $0.count += 1 } } }
        registrar.withMutation(of: self, keyPath: \.historyTokens) {
            state.withLock { state in
                // Tasks of one actor may run in another order than they were made.
                if reading > state.shownReading { (state.shown, state.shownReading) = (token, reading) }
            }
        }
    }
}
