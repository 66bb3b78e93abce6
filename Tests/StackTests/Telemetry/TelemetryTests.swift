import CoreMetrics
import InMemoryTracing
import MetricsTestKit
import StoreInterface
import StoreModel
import TestSupport
import Testing
import Tracing

@testable import ObjectGraph

/// The spans and metrics of a container. Each test has its own tracer and metrics, so that tests run in parallel.
@Suite struct TelemetryTests {
    private struct Reports {
        let tracer = InMemoryTracer()
        let metrics = TestMetrics()
        var telemetry: Telemetry { Telemetry(tracer: tracer, metrics: metrics, dimensions: [("app", "tests")]) }

        func counter(_ name: String) -> Int64 { metrics.counterTotal(label: "strata.\(name)") }

        /// Returns the finished spans since the last call by name, in the order of their ends.
        func spans() -> [FinishedInMemorySpan] { tracer.popFinishedSpans() }
    }

    private static func names(_ spans: [FinishedInMemorySpan]) -> [String] { spans.map(\.operationName) }

    private static func text(_ span: FinishedInMemorySpan, _ attribute: String) -> String? {
        guard case .string(let text)? = span.attributes.get("strata.\(attribute)") else { return nil }
        return text
    }

    @Test(arguments: Combination.rooted)
    func `S174: opening, saves, fetches and batches are spans of the caller's span`(_ combination: Combination) async throws {
        let reports = Reports()
        let bed = try TestBed(combination.store)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, stack: combination.stack, telemetry: reports.telemetry)
        #expect(Self.names(reports.spans()) == ["strata.open"])
        let context = await container.newBackgroundContext(name: "worker")
        let request: any Span = reports.tracer.startSpan("request")
        try await InstrumentationContext.$current.withValue(request.context) {
            try await context.perform { context throws in
                context.transactionAuthor = "Ann"
                for number in 0..<3 { context.makeTrack("\(number)", plays: number) }
                _ = try context.fetch(EntityFetchRequest("Track"))
            }
            try await context.save()
            try await container.coordinator.batchUpdate(EntityFetchRequest("Track"), set: ["plays": .int(9)])
            try await container.coordinator.insert(into: "Album", ["title"], rows: [["a"], ["b"]])
            try await container.coordinator.batchDelete(EntityFetchRequest("Album"))
        }
        request.end()
        // The main context merges these saves when it has its turn.
        let spans = reports.spans().filter { $0.operationName != "strata.merge" }
        let parts = ["strata.save.wait", "strata.save.check", "strata.save.write", "strata.save"]
        #expect(
            Self.names(spans)
                == ["strata.fetch"] + parts + parts + ["strata.batch.update"] + parts + ["strata.batch.insert"] + parts
                + ["strata.batch.delete", "request"])
        let root = try #require(spans.last)
        #expect(spans.allSatisfy { $0.traceID == root.traceID })
        let fetch = try #require(spans.first)
        #expect(fetch.parentSpanID == root.spanID)
        #expect(Self.text(fetch, "entity") == "Track" && Self.text(fetch, "context") == "worker")
        let save = try #require(spans.first { $0.operationName == "strata.save" })
        #expect(save.parentSpanID == root.spanID)
        #expect(Self.text(save, "context") == "worker" && Self.text(save, "author") == "Ann")
        #expect(save.attributes.get("strata.objects") == .int64(3))
        for part in spans[1...3] {
            #expect(part.parentSpanID == save.spanID)
            #expect(part.startInstant.nanosecondsSinceEpoch <= part.endInstant.nanosecondsSinceEpoch)
        }
        #expect(spans[8].parentSpanID == spans[9].spanID, "the save of a batch is a part of the batch")
    }

    @Test(arguments: StoreKind.allCases)
    func `S174: counters hold saves, objects, conflicts and deferred saves`(_ kind: StoreKind) async throws {
        let reports = Reports()
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, telemetry: reports.telemetry)
        let context = await container.newBackgroundContext()
        await context.perform { context in
            for number in 0..<5 { context.makeTrack("abc")["isrc"] = .string("\(number)") }
        }
        try await context.save()
        #expect(reports.counter("saves") == 1 && reports.counter("objects.written") == 5)
        #expect(reports.counter("bytes.written") >= 5 * 4)
        #expect(try reports.metrics.expectMeter("strata.snapshots.held", [("app", "tests")]).lastValue ?? -1 >= 0)
        #expect(try reports.metrics.expectTimer("strata.save.duration", [("app", "tests")]).values.count == 1)
        await context.perform { context in context.makeTrack("abc")["isrc"] = "0" }
        await #expect(throws: SaveError.self) { try await context.save() }
        #expect(reports.counter("saves") == 1 && reports.counter("conflicts") == 1)
        let failed = try #require(reports.spans().last { $0.operationName == "strata.save" })
        #expect(failed.errors.count == 1 && failed.status?.code == .error)
        await context.perform { context in
            context.rollback()
            context.makeTrack("later")
        }
        try await context.save(.deferred)
        #expect(reports.counter("saves") == 2)
        let deferred = try reports.metrics.expectMeter("strata.saves.deferred", [("app", "tests")])
        #expect(deferred.lastValue ?? -1 >= 0)
        _ = try await context.perform { try $0.count(EntityFetchRequest("Track")) }
        #expect(reports.counter("fetches") == 1)
        try await container.compact()
        #expect(Self.names(reports.spans()).contains("strata.compact") == (kind == .lmdb))
    }

    /// Catches: coordinators that each count all look-ups in the cache that they share.
    @Test func `S174: a look-up in the cache is counted once, however many coordinators use the store`() async throws {
        let reports = Reports()
        let bed = try TestBed(.lmdb)
        let first = try await PersistentContainer(
            model: Music.model, store: bed.description, telemetry: reports.telemetry)
        try await first.write { context in
            for number in 0..<1000 { context.makeTrack("track \(number)", plays: number) }
        }
        #expect(try await first.compact(CompactionOptions(age: .any)).pagesPacked > 0)
        let second = try await PersistentContainer(
            model: Music.model, store: bed.description, stack: .hybrid, telemetry: reports.telemetry)
        let coordinators = [first.coordinator, second.coordinator, second.backgroundCoordinator, first.coordinator]
        for coordinator in coordinators {
            _ = try await coordinator.newBackgroundContext().perform { context throws in
                let titles = try context.trackTitles()
                #expect(titles.count == 1000)
                // Look-ups are counted at the end of a fetch.
                return try context.count(EntityFetchRequest("Track"))
            }
        }
        let counted = Int(reports.counter("cache.hits") + reports.counter("cache.misses"))
        let use = try #require(first.coordinator.store.cacheUse)
        // Other contexts may have read since.
        #expect(counted > 0 && counted <= use.hits + use.misses)
        try await second.close()
        try await first.close()
    }

    /// Catches: a deletion that is neither a span nor counted, because it blocks instead of suspending.
    @Test(arguments: StoreKind.allCases)
    func `S174: synchronous saves and batch deletions are spans and are counted`(_ kind: StoreKind) async throws {
        let reports = Reports()
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, telemetry: reports.telemetry)
        let context = await container.newBackgroundContext(name: "worker")
        _ = reports.spans()
        try await context.perform { context throws in
            for number in 0..<3 { context.makeTrack("\(number)") }
            try context.saveNow(.durable)
        }
        let parts = ["strata.save.wait", "strata.save.check", "strata.save.write", "strata.save"]
        // The main context merges these saves when it has its turn.
        #expect(Self.names(reports.spans().filter { $0.operationName != "strata.merge" }) == parts)
        #expect(reports.counter("saves") == 1 && reports.counter("objects.written") == 3)
        let request: any Span = reports.tracer.startSpan("request")
        let result = try Self.deleteTracksNow(container, in: request)
        request.end()
        #expect(result.deletedCount == 3)
        let spans = reports.spans().filter { $0.operationName != "strata.merge" }
        try #require(Self.names(spans) == parts + ["strata.batch.delete", "request"])
        #expect(Self.text(spans[4], "entity") == "Track")
        #expect(spans[3].parentSpanID == spans[4].spanID && spans[4].parentSpanID == spans[5].spanID)
        #expect(reports.counter("saves") == 2 && reports.counter("objects.written") == 6)
        try await container.close()
    }

    private static func deleteTracksNow(_ container: PersistentContainer, in span: any Span) throws -> BatchResult {
        try InstrumentationContext.$current.withValue(span.context) {
            try container.coordinator.batchDeleteNow(EntityFetchRequest("Track"))
        }
    }

    @MainActor @Test(arguments: Combination.parented)
    func `S174: a save through to the store is one span, whatever the stack`(_ combination: Combination) async throws {
        let reports = Reports()
        let bed = try TestBed(combination.store)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, stack: combination.stack, telemetry: reports.telemetry)
        let child = container.newBackgroundContext()
        await child.perform { _ = $0.makeTrack("a") }
        try await child.save(through: .store)
        #expect(Self.names(reports.spans()).count { $0 == "strata.save" } == 1)
        #expect(reports.counter("saves") == 1 && reports.counter("objects.written") == 1)
    }

    @Test(arguments: StoreKind.allCases, [ContextStack.siblings, .split])
    func `S174: merges of saves and of a parent's state are spans`(_ kind: StoreKind, _ stack: ContextStack) async throws {
        let reports = Reports()
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, stack: stack, telemetry: reports.telemetry)
        let reader = container.coordinator.newBackgroundContext(name: "reader")
        let ids = try await reader.perform(andSave: .durable) { context in
            context.retainsRegisteredObjects = true
            return (0..<3).map { context.makeTrack("\($0)").objectID }
        }
        let child = await reader.newBackgroundChild(name: "child")
        await child.perform { context in
            context.retainsRegisteredObjects = true
            for id in ids { _ = context.object(with: id)["title"] }
        }
        try await container.coordinator.newBackgroundContext(name: "writer").perform(andSave: .durable) { context in
            for id in ids.prefix(2) { context.object(with: id)["title"] = "new" }
        }
        _ = reports.spans()
        await reader.perform { $0.refreshAllObjects() }
        try await child.refreshFromParent()
        let merges = reports.spans().filter { $0.operationName == "strata.merge" && Self.text($0, "context") != "main" }
        #expect(merges.map { Self.text($0, "context") } == ["reader", "child"])
        // The child does not know what its parent has merged, so it refreshes all its objects.
        #expect(merges.map { $0.attributes.get("strata.objects") } == [.int64(2), .int64(3)])
    }

    /// Returns the fetches since the last call: what was fetched, in which context, and how many objects were found.
    private static func fetches(_ reports: Reports) -> [String] {
        reports.spans().filter { $0.operationName == "strata.fetch" }.map { span in
            guard case .int64(let count)? = span.attributes.get("strata.objects") else { return "\(span.attributes)" }
            return "\(text(span, "entity") ?? "?") in \(text(span, "context") ?? "?"): \(count)"
        }
    }

    /// Catches: contexts that ask something else than the coordinator of their container for its tracer.
    @Test(arguments: Combination.all)
    func `S174: fetches of children and of contexts of a snapshot are spans and are counted`(_ combination: Combination)
        async throws
    {
        let reports = Reports()
        let bed = try TestBed(combination.store)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, stack: combination.stack, telemetry: reports.telemetry)
        let parent = await container.newBackgroundContext(name: "parent")
        defer { withExtendedLifetime(parent) {} }
        await parent.perform { _ = $0.makeTrack("a") }
        try await parent.save(through: .store)
        let snapshot = try container.coordinator.snapshot()
        await parent.perform { _ = $0.makeTrack("b") }
        let child = await parent.newBackgroundChild(name: "child")
        await child.perform { _ = $0.makeTrack("c") }
        let old = container.coordinator.newBackgroundContext(name: "old", reading: snapshot)
        _ = reports.spans()
        let before = reports.counter("fetches")
        for context in [child, old] {
            try await context.perform { context throws in
                _ = try context.fetch(EntityFetchRequest("Track"))
                _ = try context.count(EntityFetchRequest("Album"))
            }
        }
        #expect(
            Self.fetches(reports)
                == ["Track in child: 3", "Album in child: 0", "Track in old: 1", "Album in old: 0"])
        #expect(reports.counter("fetches") == before + 4)
    }

    /// Catches: a stream of which only the start is a span, before anything is read.
    @Test(arguments: StoreKind.allCases)
    func `S136, S174: each read of a stream is a span and is counted, with a sort once`(_ kind: StoreKind) async throws {
        let reports = Reports()
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, telemetry: reports.telemetry)
        let context = await container.newBackgroundContext(name: "worker")
        try await context.perform(andSave: .durable) { context in
            for number in 0..<300 { context.makeTrack("\(number)", plays: number) }
        }
        for sort in [[], [AttributeSort("title")]] {
            var request = EntityFetchRequest("Track", sortBy: sort)
            request.fetchBatchSize = 50
            _ = reports.spans()
            let before = reports.counter("fetches")
            var count = 0
            for try await _ in context.stream(request, { $0["plays"] }) { count += 1 }
            #expect(count == 300)
            let spans = reports.spans().filter { $0.operationName == "strata.fetch" && Self.text($0, "context") == "worker" }
            let found = spans.map { span -> Int64 in
                guard case .int64(let count)? = span.attributes.get("strata.objects") else { return -1 }
                return count
            }
            #expect(found.reduce(0, +) == 300 && !found.contains(-1), "\(found)")
            #expect(sort.isEmpty ? found.count > 1 : found.count == 1, "\(found)")
            #expect(reports.counter("fetches") == before + Int64(found.count))
        }
        try await container.close()
    }

    /// Catches: reads of ranges that pass the reports by, because they are no fetches of objects.
    @Test(arguments: StoreKind.allCases)
    func `S174: reads of ranges of keyed values are spans with the name of the collection, with and without unsaved values`(
        _ kind: StoreKind
    ) async throws {
        let reports = Reports()
        let bed = try TestBed(kind)
        let container = try await PersistentContainer(
            model: Music.model, store: bed.description, telemetry: reports.telemetry)
        try await container.write { context in
            let numbers = try context.collection("numbers", of: Int.self)
            for (number, key) in ["a", "b", "c"].enumerated() { try numbers.setValue(number, forKey: key) }
        }
        let context = await container.newBackgroundContext(name: "worker")
        for unsaved in [0, 1] {
            let before = reports.counter("fetches")
            let spans = try await context.perform { context throws in
                let numbers = try context.collection("numbers", of: Int.self)
                if unsaved > 0 { try numbers.setValue(3, forKey: "d") }
                _ = reports.spans()
                let value = numbers["a"]
                let lookups = Self.fetches(reports)
                #expect(value == 0 && lookups == [], "a look-up is no fetch")
                _ = try numbers.all.keys()
                _ = try numbers.count
                _ = try numbers["b"..<"c"].entries()
                _ = try numbers.range(withPrefix: "x").isEmpty
                _ = try context.storedCollections()
                return Self.fetches(reports)
            }
            let all = 3 + unsaved
            #expect(
                spans == [
                    "numbers in worker: \(all)", "numbers in worker: \(all)", "numbers in worker: 1", "numbers in worker: 0",
                    "collections in worker: 1",
                ])
            #expect(reports.counter("fetches") == before + 5)
        }
    }

    /// Catches: instruments that are made, and asked at each operation, although there is nothing to report to.
    @Test(arguments: StoreKind.allCases, [ContextStack.siblings, .hybrid])
    func `S174: nothing is kept for reports if nothing is installed`(_ kind: StoreKind, _ stack: ContextStack) async throws {
        #expect(Instruments(Telemetry.none) == nil && Instruments(Telemetry(dimensions: [("app", "tests")])) == nil)
        let spansOnly = try #require(Instruments(Telemetry(tracer: InMemoryTracer())))
        #expect(spansOnly.metrics == nil)
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let coordinators = [container.coordinator, container.backgroundCoordinator]
        func watching() -> [Bool] { coordinators.map { $0.watchesFetches.load(ordering: .relaxed) } }
        #expect(coordinators.allSatisfy { $0.instruments == nil } && watching() == [false, false])
        // The log of slow fetches alone is on for as long as it has a threshold.
        container.logFetches(slowerThan: .seconds(3600))
        #expect(watching() == [true, true])
        container.logFetches(slowerThan: nil)
        #expect(watching() == [false, false])
        let logs = coordinators.filter { coordinator in coordinator.slowFetches.withLock { $0 != nil } }
        #expect(logs.isEmpty)
    }

    @Test func `S174: a container reports to what is installed when it is opened, and else to nothing`() async throws {
        let reports = Reports()
        let container = try await withTracer(reports.tracer) {
            try await PersistentContainer(model: Music.model, store: .memory)
        }
        try await container.coordinator.insert(into: "Album", ["title"], rows: [["a"]])
        // Otherwise main may merge the save later, while the other container is watched.
        await MainActor.run { container.mainContext.refreshAllObjects() }
        #expect(Self.names(reports.spans()).contains("strata.save"))
        let silent = try await withTracer(reports.tracer) {
            try await PersistentContainer(model: Music.model, store: .memory, telemetry: .none)
        }
        try await silent.coordinator.insert(into: "Album", ["title"], rows: [["a"]])
        #expect(reports.spans().isEmpty)
    }
}
