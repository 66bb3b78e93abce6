import CoreMetrics
import Tracing

/// The tracer and the metrics to which a container reports its work (S174).
///
/// By default, a container uses the tracer and the metrics that the program has installed when it opens the container. Without any, it
/// reports nothing: a fetch costs one relaxed atomic read, and each other operation one comparison with nil.
///
/// ```swift
/// InstrumentationSystem.bootstrap(tracer)
/// MetricsSystem.bootstrap(metrics)
/// let container = try await PersistentContainer(for: Track.self, Album.self, store: .lmdb(file))
/// ```
///
/// | span | covers |
/// | --- | --- |
/// | `strata.open` | Opening a store, with lightweight migration. |
/// | `strata.migrate` | The stages of a migration plan. |
/// | `strata.save` | A save to the store, with the spans `strata.save.wait`, `strata.save.check` and `strata.save.write`. |
/// | `strata.fetch` | A fetch, count, aggregate or read of a range of keys of a context, but not the query of a live result. |
/// | `strata.merge` | The move of a context to a newer state, after saves of other contexts or of its parent. |
/// | `strata.batch.insert`, `strata.batch.update`, `strata.batch.delete` | A batch with its saves. |
/// | `strata.compact` | A compaction. |
///
/// | metric | kind |
/// | --- | --- |
/// | `strata.saves` | Counter of saves that changed the store. |
/// | `strata.conflicts` | Counter of saves that were refused because of conflicts or equal unique values. |
/// | `strata.objects.written` | Counter of inserted, updated and deleted objects. |
/// | `strata.bytes.written` | Counter of the bytes of their values, before compression. |
/// | `strata.fetches` | Counter of fetches, counts, aggregates and reads of ranges of keys. |
/// | `strata.cache.hits`, `strata.cache.misses` | Counters of look-ups in the cache of unpacked pages of an LMDB file. |
/// | `strata.saves.deferred` | Meter of the accepted saves that are not on disk yet. |
/// | `strata.snapshots.held` | Meter of the snapshots that contexts and snapshots hold. |
/// | `strata.save.duration` | Timer of saves, from the request to the result. |
///
/// Meters are set at the end of each save, and the counters of the cache at the end of each save and fetch. Containers on one store share its
/// cache: a look-up is counted once, by the container that reports next.
public struct Telemetry: Sendable {
    let tracer: (any Tracer)?
    let metrics: (any MetricsFactory)?
    let dimensions: [(String, String)]

    /// Creates a destination for reports, for tests, and for programs with several containers.
    ///
    /// - Parameters:
    ///   - tracer: Receives spans; nil for none.
    ///   - metrics: Receives counters, meters and timers; nil for none.
    ///   - dimensions: The dimensions of all metrics, to tell containers apart.
    public init(
        tracer: (any Tracer)? = nil, metrics: (any MetricsFactory)? = nil, dimensions: [(String, String)] = []
    ) {
        self.tracer = tracer
        self.metrics = metrics
        self.dimensions = dimensions
    }

    /// The tracer and the metrics that are installed now: those of the current task, or else of the process.
    public static var installed: Telemetry {
        let tracer = InstrumentationSystem.tracer
        let metrics = MetricsSystem.factory
        return Telemetry(
            tracer: tracer is NoOpTracer ? nil : tracer, metrics: metrics is NOOPMetricsHandler ? nil : metrics)
    }

    /// No reports, whatever is installed.
    public static var none: Telemetry { Telemetry() }
}
