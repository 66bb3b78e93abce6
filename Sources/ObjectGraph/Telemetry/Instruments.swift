import CoreMetrics
internal import Platform
import StoreInterface
import StoreModel
import Tracing

/// The spans and metrics of a coordinator. A coordinator without any has none.
final class Instruments: Sendable {
    let tracer: (any Tracer)?
    let metrics: StoreMetrics?

    /// Returns nil if nothing is installed.
    init?(_ telemetry: Telemetry) {
        if telemetry.tracer == nil, telemetry.metrics == nil { return nil }
        tracer = telemetry.tracer
        metrics = telemetry.metrics.map { StoreMetrics($0, telemetry.dimensions) }
    }

    /// Runs `body` in a span, whose context is current while it runs.
    nonisolated(nonsending) func span<R>(
        _ name: String, attributes: KeyValuePairs<String, SpanAttribute>, _ body: () async throws -> R
    ) async throws -> R {
        guard let span = start(name, attributes) else { return try await body() }
        defer { span.end() }
        do {
            return try await InstrumentationContext.$current.withValue(span.context) { try await body() }
        } catch {
            span.fail(error)
            throw error
        }
    }

    /// Runs `body` in a span, whose context is current while it runs, and blocks until it returns.
    func spanNow<R>(
        _ name: String, attributes: KeyValuePairs<String, SpanAttribute>, _ body: () throws -> R
    ) throws -> R {
        guard let span = start(name, attributes) else { return try body() }
        defer { span.end() }
        do { return try InstrumentationContext.$current.withValue(span.context, operation: body) } catch {
            span.fail(error)
            throw error
        }
    }

    /// Starts a span in the current context; nil without a tracer.
    func start(_ name: String, _ attributes: KeyValuePairs<String, SpanAttribute>) -> (any Span)? {
        guard let tracer else { return nil }
        let span: any Span = tracer.startSpan(name)
        span.set(attributes)
        return span
    }

    /// Runs a fetch in a span.
    func fetch<R>(_ name: String, in context: String, of writer: StoreWriter, _ body: () throws -> R) throws -> R {
        metrics?.fetches.increment()
        let span = start("strata.fetch", ["strata.entity": "\(name)", "strata.context": "\(context)"])
        defer {
            span?.end()
            metrics?.noteCache(of: writer)
        }
        do {
            let result = try body()
            let keys = result as? [ObjectKey] ?? (result as? OrderedData)?.keys ?? (result as? BatchSource)?.keys
            if let count = keys?.count ?? result as? Int { span?.set(["strata.objects": .int(Int64(count))]) }
            return result
        } catch {
            span?.fail(error)
            throw error
        }
    }
}

extension Instruments? {
    /// Runs `body` in a span, or alone if nothing is installed.
    nonisolated(nonsending) func span<R>(
        _ name: String, attributes: KeyValuePairs<String, SpanAttribute>, _ body: () async throws -> R
    ) async throws -> R {
        guard let self else { return try await body() }
        return try await self.span(name, attributes: attributes, body)
    }

    /// Runs `body` in a span, or alone if nothing is installed, and blocks until it returns.
    func spanNow<R>(
        _ name: String, attributes: KeyValuePairs<String, SpanAttribute>, _ body: () throws -> R
    ) throws -> R {
        guard let self else { return try body() }
        return try self.spanNow(name, attributes: attributes, body)
    }
}

extension Span {
    func set(_ attributes: KeyValuePairs<String, SpanAttribute>) {
        updateAttributes { all in
            for (name, value) in attributes { all[name] = value }
        }
    }

    func fail(_ error: any Error) {
        recordError(error)
        setStatus(SpanStatus(code: .error, message: "\(error)"))
    }
}

/// The metrics of a coordinator's store.
struct StoreMetrics: Sendable {
    let saves: Counter
    let conflicts: Counter
    let objects: Counter
    let bytes: Counter
    let fetches: Counter
    let cacheHits: Counter
    let cacheMisses: Counter
    let deferredSaves: Meter
    let snapshots: Meter
    let saveDuration: CoreMetrics.Timer

    init(_ factory: any MetricsFactory, _ dimensions: [(String, String)]) {
        func counter(_ name: String) -> Counter { Counter(label: "strata.\(name)", dimensions: dimensions, factory: factory) }
        func meter(_ name: String) -> Meter { Meter(label: "strata.\(name)", dimensions: dimensions, factory: factory) }
        saves = counter("saves")
        conflicts = counter("conflicts")
        objects = counter("objects.written")
        bytes = counter("bytes.written")
        fetches = counter("fetches")
        cacheHits = counter("cache.hits")
        cacheMisses = counter("cache.misses")
        deferredSaves = meter("saves.deferred")
        snapshots = meter("snapshots.held")
        saveDuration = CoreMetrics.Timer(label: "strata.save.duration", dimensions: dimensions, factory: factory)
    }

    /// Counts the use of the store's cache that no coordinator of the store has counted.
    func noteCache(of writer: StoreWriter) {
        guard let use = writer.takeCacheUse() else { return }
        if use.hits > 0 { cacheHits.increment(by: use.hits) }
        if use.misses > 0 { cacheMisses.increment(by: use.misses) }
    }
}

extension StoreWriter {
    /// Returns the use of the store's cache since the last call; nil for a store without a cache. Each look-up is returned once, because all
    /// coordinators of a store share its writer.
    fileprivate func takeCacheUse() -> CacheUse? {
        guard let now = store.cacheUse else { return nil }
        return shared.withLock { shared in
            let last = shared.countedCacheUse
            // Another thread may have read newer numbers and come first.
            let newest = CacheUse(hits: max(now.hits, last.hits), misses: max(now.misses, last.misses))
            shared.countedCacheUse = newest
            return CacheUse(hits: newest.hits - last.hits, misses: newest.misses - last.misses)
        }
    }
}
