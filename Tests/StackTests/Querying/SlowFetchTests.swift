import Logging
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The log of slow fetches. A threshold of zero logs every fetch, so no test depends on speed.
@Suite struct SlowFetchTests {
    /// Keeps the messages of a logger.
    private final class Messages: Sendable {
        let all = Mutex<[String]>([])

        var logger: Logger { Logger(label: "test") { _ in LineHandler { line in self.all.withLock { $0.append(line) } } } }

        /// Returns the messages so far, without the measured times, and forgets them.
        func take() -> [String] {
            all.withLock { all in
                defer { all = [] }
                return all.map {
                    $0.replacing(/took .* seconds/, with: "took t").replacing(/, examined [0-9]+ objects/, with: "")
                }
            }
        }
    }

    @MainActor @Test(arguments: Combination.all)
    func `S174: a slow fetch is logged with its context, its objects and its plan`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let messages = Messages()
        container.logFetches(slowerThan: .zero, to: messages.logger)
        let context = container.mainContext
        for number in 0..<3 { context.makeTrack("\(number)", plays: number) }
        let request = EntityFetchRequest("Track", matching: .compare("plays", .greater, to: .int(0)))
        let plan = try context.explain(request)
        #expect(messages.take().isEmpty, "explaining is no fetch")
        _ = try context.fetch(request)
        #expect(messages.take() == ["warning a fetch of Track in the context main took t and found 2; plan: \(plan)"])
        _ = try context.count(request)
        #expect(messages.take() == ["warning a fetch of Track in the context main took t and found 2; plan: \(plan)"])
        _ = try context.aggregate(.sum("plays"), of: request)
        #expect(messages.take().count == 1)
        #expect(throws: FetchError.self) { try context.fetch(EntityFetchRequest("Nothing")) }
        #expect(messages.take().isEmpty)
        // In some stacks, such a context uses the second coordinator.
        _ = try await container.newBatchOperationContext(name: "b").perform { try $0.count(EntityFetchRequest("Album")) }
        #expect(messages.take().count { $0.hasPrefix("warning a fetch of Album in the context b ") } == 1)
        container.logFetches(slowerThan: .seconds(3600), to: messages.logger)
        _ = try context.count(EntityFetchRequest("Track"))
        container.logFetches(slowerThan: nil)
        _ = try context.count(EntityFetchRequest("Track"))
        #expect(messages.take().isEmpty)
    }

    /// Catches: reads of ranges of keys that are never logged, because they are no fetches of objects.
    @Test(arguments: StoreKind.allCases)
    func `S174: slow reads of children, of contexts of a snapshot and of ranges of keys are logged`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.write { context in
            let numbers = try context.collection("numbers", of: Int.self)
            for (number, key) in ["a", "b", "c"].enumerated() { try numbers.setValue(number, forKey: key) }
            context.makeTrack("a")
        }
        let snapshot = try container.coordinator.snapshot()
        let parent = await container.newBackgroundContext(name: "parent")
        defer { withExtendedLifetime(parent) {} }
        let child = await parent.newBackgroundChild(name: "child")
        await child.perform { _ = $0.makeTrack("b") }
        let old = container.coordinator.newBackgroundContext(name: "old", reading: snapshot)
        let messages = Messages()
        container.logFetches(slowerThan: .zero, to: messages.logger)
        for context in [child, old] {
            try await context.perform { context throws in
                _ = try context.count(EntityFetchRequest("Track"))
                let numbers = try context.collection("numbers", of: Int.self)
                _ = try numbers.all.keys()
                _ = try numbers["b"...].entries()
                _ = try numbers.count
            }
        }
        let found = messages.take().map { String($0.prefix { $0 != ";" }) }
        let read = { (name: String, count: Int, context: String) in
            "warning a fetch of \(name) in the context \(context) took t and found \(count)"
        }
        #expect(
            found
                == [("child", 2), ("old", 1)].flatMap { name, tracks in
                    [read("Track", tracks, name)] + [3, 2, 3].map { read("numbers", $0, name) }
                })
    }

    /// Catches: a query of a live result that is never logged, because no fetch of the context runs it.
    @MainActor @Test(arguments: Combination.all)
    func `S174: the slow query of a live result is logged each time that it runs as a whole`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let messages = Messages()
        container.logFetches(slowerThan: .zero, to: messages.logger)
        let context = container.mainContext
        for number in 0..<3 { context.makeTrack("\(number)", plays: number) }
        let request = EntityFetchRequest(
            "Track", matching: .compare("plays", .greater, to: .int(0)), sortBy: [.init("title")])
        let controller = try FetchedResultsController(request, context: context)
        #expect(messages.take().isEmpty, "nothing is fetched yet")
        try controller.performFetch()
        let line = "warning a fetch of Track in the context main took t and found 2; plan: \(try context.explain(request))"
        #expect(messages.take() == [line])
        try await controller.performFetchInBackground()
        #expect(messages.take() == [line])
        let results = try Results(request, context: context)
        #expect(results.count == 2 && messages.take() == [line])
        // So many changes are not looked up one by one. The queue may compute the result as well as this read.
        for number in 0..<1100 { context.makeTrack("\(number)", plays: 1) }
        context.processPendingChanges()
        #expect(results.count == 1102)
        #expect(messages.take().contains { $0.contains("in the context main took t and found 1102; plan: ") })
        container.logFetches(slowerThan: nil)
        try controller.performFetch()
        #expect(controller.snapshot.count == 1102)
        try await container.close()
    }

    /// Catches: a stream whose batches are read after its start is logged, so that nothing tells that they are slow.
    @Test(arguments: StoreKind.allCases)
    func `S136, S174: each read of a stream or of batches is logged, with a sort once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = await container.newBackgroundContext(name: "worker")
        try await context.perform(andSave: .durable) { context in
            for number in 0..<300 { context.makeTrack("\(number)", plays: number) }
        }
        let messages = Messages()
        for sort in [[], [AttributeSort("title")]] {
            var batches = EntityFetchRequest("Track", matching: .compare("plays", .less, to: .int(250)), sortBy: sort)
            batches.fetchBatchSize = 50
            let request = batches
            /// Checks the messages about one stream, and forgets them.
            func expectReads(_ name: String) throws {
                let lines = messages.take()
                let start = "warning a fetch of Track in the context worker took t and found "
                let found = try lines.map { line in
                    #expect(line.hasPrefix(start) && line.contains("; plan: "), "\(name): \(line)")
                    return try #require(Int(line.dropFirst(start.count).prefix { $0 != ";" }), "\(name): \(line)")
                }
                #expect(found.reduce(0, +) == 250, "\(name): \(found)")
                #expect(sort.isEmpty ? found.count > 1 : found.count == 1, "\(name): \(found)")
            }
            container.logFetches(slowerThan: .zero, to: messages.logger)
            var count = 0
            for try await _ in context.stream(request, { $0["plays"] }) { count += 1 }
            #expect(count == 250)
            try expectReads("stream")
            try await context.perform { context throws in try context.forEachBatch(of: request) { _ in } }
            try expectReads("forEachBatch")
            container.logFetches(slowerThan: nil)
            try await context.perform { context throws in try context.forEachBatch(of: request) { _ in } }
            #expect(messages.take().isEmpty)
        }
        try await container.close()
    }

    /// A scan examines every object, and an index or a list of ids those that it selects. SQLite counts the rows of scans alone.
    @Test(arguments: StoreKind.allCases)
    func `S174: a slow fetch is logged with the number of objects that the store examined`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = await container.newBackgroundContext()
        try await context.perform(andSave: .durable) { context in
            for number in 0..<100 { context.makeTrack("\(number)", plays: number) }
        }
        let lines = Mutex<[String]>([])
        let handler = LineHandler { line in if line.contains("Track") { lines.withLock { $0.append(line) } } }
        container.logFetches(slowerThan: .zero, to: Logger(label: "test") { _ in handler })
        func examined(_ condition: Condition) async throws -> Int? {
            _ = try await context.perform { try $0.fetch(EntityFetchRequest("Track", matching: condition)).count }
            let line = lines.withLock { lines in
                defer { lines = [] }
                return lines.joined()
            }
            return line.firstMatch(of: /, examined ([0-9]+) objects/).flatMap { Int($0.1) }
        }
        #expect(try await examined(.equal("title", "7")) == 100, "a scan")
        let indexed = try await examined(.compare("plays", .less, to: 3))
        // SQLite chooses a scan or the index.
        if kind != .sqlite { #expect(indexed == (kind == .memory ? 100 : 3)) }
        // Another thread's query is not counted.
        async let other: Void = {
            for _ in 0..<50 {
                _ = try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Album")) }
            }
        }()
        for _ in 0..<20 { #expect(try await examined(.equal("title", "7")) == 100) }
        try await other
    }
}
