internal import Platform
import StoreInterface
import StoreModel
import Tracing

/// The report of one save to the store: how long it waited, was checked, and was written.
///
/// A monotonic clock measures it, so that the durations are right if the system's time is set meanwhile. The times of spans are derived from the
/// system's time at the beginning.
final class SaveTrace: Sendable {
    private struct Times {
        var checkBegan: ContinuousClock.Instant?
        var checkEnded: ContinuousClock.Instant?
        var bytes = 0
    }

    private let instruments: Instruments
    private let span: (any Span)?
    private let began = ContinuousClock.now
    /// The system's time at ``began``, in nanoseconds since 1970.
    private let systemTime = DefaultTracerClock.now.nanosecondsSinceEpoch
    private let times = Mutex(Times())

    init(_ instruments: Instruments, metadata: SaveMetadata, durability: Durability) {
        self.instruments = instruments
        let isDurable = durability == .durable
        span = instruments.start(
            "strata.save",
            [
                "strata.context": "\(metadata.contextName)", "strata.author": "\(metadata.author)",
                "strata.durability": isDurable ? "durable" : "deferred",
            ])
    }

    /// Records the check of the save. A transaction that is repeated checks again, and the last check counts.
    func checking<R>(_ body: () throws -> R) rethrows -> R {
        let began = ContinuousClock.now
        defer {
            times.withLock { times in
                times.checkBegan = began
                times.checkEnded = ContinuousClock.now
            }
        }
        return try body()
    }

    /// Records the layer that the check accepted.
    func accepted(_ layer: Layer) {
        guard instruments.metrics != nil else { return }
        let bytes = layer.valueByteCount
        times.withLock { $0.bytes = bytes }
    }

    /// Ends the report. Runs on the writer's queue.
    func end(_ result: Result<SaveOutcome, any Error>, _ writer: StoreWriter) {
        let ended = ContinuousClock.now
        let times = times.withLock { $0 }
        if let span, let tracer = instruments.tracer {
            func part(_ name: String, from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) {
                let part: any Span = tracer.startSpan("strata.save.\(name)", context: span.context, at: timestamp(of: start))
                part.end(at: timestamp(of: end))
            }
            part("wait", from: began, to: times.checkBegan ?? ended)
            if let began = times.checkBegan, let checked = times.checkEnded {
                part("check", from: began, to: checked)
                if (try? result.get()) != nil { part("write", from: checked, to: ended) }
            }
        }
        switch result {
        case .success(let outcome): span?.set(["strata.objects": .int(Int64(outcome.changes.objectCount))])
        case .failure(let error): span?.fail(error)
        }
        span?.end(at: timestamp(of: ended))
        if let metrics = instruments.metrics { count(result, bytes: times.bytes, ended: ended, writer: writer, metrics: metrics) }
    }

    /// Returns the nanoseconds from the beginning to an instant.
    private func nanoseconds(until instant: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = (instant - began).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    private func timestamp(of instant: ContinuousClock.Instant) -> DefaultTracerClock.Timestamp {
        DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: systemTime + UInt64(clamping: nanoseconds(until: instant)))
    }

    private func count(
        _ result: Result<SaveOutcome, any Error>, bytes: Int, ended: ContinuousClock.Instant, writer: StoreWriter,
        metrics: StoreMetrics
    ) {
        switch result {
        case .success(let outcome) where !outcome.changes.isEmpty:
            metrics.saves.increment()
            metrics.objects.increment(by: outcome.changes.objectCount)
            metrics.bytes.increment(by: bytes)
        case .success: break
        case .failure(let error as SaveError) where error.code == .conflicts || error.code == .uniqueConstraint:
            metrics.conflicts.increment()
        case .failure: break
        }
        metrics.saveDuration.recordNanoseconds(nanoseconds(until: ended))
        metrics.deferredSaves.set(writer.state.pendingSaves)
        metrics.snapshots.set(writer.snapshotRegistry.live().taken.count)
        metrics.noteCache(of: writer)
    }
}

extension ChangeSet {
    /// The number of inserted, updated and deleted objects. O(pages).
    fileprivate var objectCount: Int {
        entities.reduce(0) { sum, entity in
            entity.pages.reduce(sum) { $0 + ($1.inserted | $1.updated | $1.deleted).nonzeroBitCount }
        }
    }
}

extension Layer {
    /// The bytes of the values in the layer: of strings and data their length, and eight of each other value. O(values).
    fileprivate var valueByteCount: Int {
        var bytes = 0
        for number in entityIndices {
            guard let entity = entity(number) else { continue }
            for (_, page) in entity.pages {
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    for column in row.columnIndices where row.isSet(column) { bytes += row[column].byteCount }
                }
            }
        }
        return bytes
    }
}

extension Value {
    fileprivate var byteCount: Int {
        switch self {
        case .null: 0
        case .string(let text): text.utf8.count
        case .data(let data): data.count
        case .uuid: 16
        default: 8
        }
    }
}
