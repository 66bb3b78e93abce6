import Foundation
import ObjectGraph
import Observation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite @MainActor struct ResultsTests {
    static let popular = EntityFetchRequest(
        "Track", matching: .compare("plays", .greaterOrEqual, to: .int(10)),
        sortBy: [AttributeSort("plays", .descending), AttributeSort("title")], limit: 5)

    @Test(arguments: Combination.all)
    func `S145: a reader of results is notified of their next difference`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let results = try Results(Self.popular, context: main)
        let watch = Watch { _ = results.count }
        main.makeTrack("unpopular", plays: 1)
        let track = main.makeTrack("popular", plays: 10)
        #expect(results.isEmpty)
        try await until("the unsaved object is shown") { watch.count == 1 }
        #expect(Array(results) == [track])
        try await container.saveMain()
        let id = track.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.object(with: id)["plays"] = .int(20) }
        try await until("the save of another context is shown") { watch.count > 1 && results.first?["plays"] == .int(20) }
        let before = watch.count
        main.delete(track)
        main.processPendingChanges()
        #expect(results.isEmpty && watch.count > before)
    }

    /// Catches: results that no job updates, because only the first unprocessed change announces the others.
    @Test(arguments: StoreKind.allCases)
    func `S145: results follow changes after one that an observer has made while they were created`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (track, other) = (main.makeTrack("popular", plays: 10), main.makeTrack("other", plays: 1))
        try await container.saveMain()
        var isFirst = true
        let token = main.observe { notice in
            if notice.kind == .objectsDidChange, isFirst {
                isFirst = false
                other["plays"] = 2
            }
        }
        track["plays"] = 11
        let results = try Results(Self.popular, context: main)
        let watch = Watch { _ = results.count }
        #expect(!isFirst && results.count == 1)
        main.delete(track)
        // Jobs of the main actor run in their order.
        for _ in 0..<3 { await Task { @MainActor in }.value }
        #expect(results.isEmpty && watch.count == 1)
        withExtendedLifetime(token) {}
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S145: Observations of results emits one value per batch of changes`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let results = try Results(EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        // With `@MainActor in`, Swift 6.3 crashes.
        let counts = Observations { results.count }
        let worker = container.newBackgroundContext()
        var seen: [Int] = []
        for await count in counts {
            seen.append(count)
            if seen.count == 5 { break }
            if seen.count == 4 {
                for number in 0..<3 { main.makeTrack("main \(number)") }
            } else {
                let step = seen.count
                try await worker.perform(andSave: .durable) { context in
                    for number in 0..<3 { context.makeTrack("\(step) \(number)") }
                }
            }
        }
        #expect(seen == [0, 3, 6, 9, 12])
        withExtendedLifetime((container, results)) {}
    }

    /// Catches: an update of rows that look as before, because the context has saved what the results already show.
    @Test(arguments: Combination.all)
    func `S143: a context's own save delivers nothing that its results already show`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let results = try Results(Self.popular, context: main)
        let track = main.makeTrack("a", plays: 10)
        main.processPendingChanges()
        try await until("the track is shown") { results.count == 1 }
        let watch = Watch { _ = results.count }
        for number in 1...8 {
            track["title"] = .string("\(number)")
            main.processPendingChanges()
            try await until("the change is shown") { watch.count > 0 }
            try await container.saveMain()
            // Runs after everything that the save has enqueued on the main context's executor.
            await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
            // A read delivers what the results do not show yet.
            _ = results.count
            #expect(watch.take() == 1, "save \(number)")
        }
    }

    /// Catches: an update of what a child shows already, because its parent has saved the unsaved changes that it was created with.
    @Test(arguments: Combination.all)
    func `S143: a parent's save delivers nothing that the results of its child already show`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.makeTrack("a", plays: 10)
        try container.collection("numbers", of: Int.self)["1"] = 1
        let sheet = main.newChild(name: "sheet")
        sheet.automaticallyMergesChanges = true
        let inner = sheet.newChild(name: "inner sheet")
        inner.automaticallyMergesChanges = true
        let results = try [sheet, inner].map { try Results(Self.popular, context: $0) }
        let keyed = try [sheet, inner].map { try KeyedResults($0.collection("numbers", of: Int.self).all) }
        #expect(results.map(\.count) == [1, 1] && keyed.map(\.count) == [1, 1])
        let watches = results.map { results in Watch { _ = results.count } } + keyed.map { keyed in Watch { _ = keyed.count } }
        try await container.saveMain()
        // Runs after everything that the save has enqueued on the main actor.
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        #expect(results.map(\.count) == [1, 1] && keyed.map(\.count) == [1, 1])
        #expect(watches.map { $0.take() } == [0, 0, 0, 0])
        withExtendedLifetime((container, sheet, inner)) {}
    }

    /// Catches: results of a child that show the parent's save in a later job.
    @Test(arguments: Combination.all)
    func `S068, S072: results of a child that merges show a save that its parent has awaited`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let numbers = try container.collection("numbers", of: Int.self)
        numbers["0"] = 0
        let first = main.makeTrack("0", plays: 10)
        try await container.saveMain()
        let sheet = main.newChild(name: "sheet")
        sheet.automaticallyMergesChanges = true
        let results = try Results(Self.popular, context: sheet)
        let keyed = try KeyedResults(sheet.collection("numbers", of: Int.self).all)
        let watches = [Watch { _ = results.count }, Watch { _ = keyed.count }]
        for number in 1...4 {
            main.makeTrack("\(number)", plays: 10 - number % 2)
            first["plays"] = .int(Int64(10 + number))
            numbers["\(number)"] = number
            try await container.saveMain()
            let ids = try sheet.fetchIDs(Self.popular)
            #expect(results.snapshot.ids == ids && ids.count == 1 + number / 2)
            #expect(keyed.keys == (0...number).map { "\($0)" })
            #expect(watches.map { $0.take() } == [1, 1], "save \(number)")
        }
        withExtendedLifetime((container, sheet)) {}
    }

    @Test(arguments: Combination.all)
    func `S068: results show a save of another context once it was awaited`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let results = try Results(Self.popular, context: main)
        let worker = container.newBackgroundContext()
        for number in 0..<20 {
            try await worker.perform(andSave: .deferred(within: .seconds(10))) { _ = $0.makeTrack("\(number)", plays: number) }
            let ids = try main.fetchIDs(Self.popular)
            #expect(results.snapshot.ids == ids)
            if combination.stack == .siblings || combination.stack == .nested { #expect(ids.count == min(5, max(0, number - 9))) }
        }
        // The last object becomes the first one, and then goes. Both are seen without a wait.
        for number in 100..<110 {
            guard let last = results.last?.objectID else { break }
            try await worker.perform(andSave: .deferred(within: .seconds(10))) {
                $0.object(with: last)["plays"] = .int(Int64(number))
            }
            #expect(results.first?.objectID == last && results.first?["plays"] == .int(Int64(number)))
            try await worker.perform(andSave: .deferred(within: .seconds(10))) { $0.delete($0.object(with: last)) }
            #expect(try results.snapshot.ids == main.fetchIDs(Self.popular) && !results.contains { $0.objectID == last })
        }
    }

    @Test(arguments: Combination.all)
    func `S145: results equal a sorted array after random saves, and their differences lead to it`(_ combination: Combination)
        async throws
    {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.mergePolicy = .objectTrump
        let results = try Results(Self.popular, context: main)
        var shown = results.snapshot.ids
        let updates = results.updates
        var plays: [ObjectID: Expected] = [:]
        for step in 0..<Rounds.of(40, long: 800) {
            let known = plays.keys.sorted { $0.key < $1.key }
            let changed = known.filter { _ in random.chance(20) }
            let deleted = known.filter { _ in random.chance(5) }
            let number = random.below(30)
            if random.chance(50) {
                for id in changed { main.object(with: id)["plays"] = .int(Int64(number)) }
                for id in deleted { main.delete(main.object(with: id)) }
                let made = main.makeTrack("\(step)", plays: number).objectID
                main.processPendingChanges()
                if random.chance(30) {
                    main.rollback()
                } else {
                    for id in changed { plays[id]?.plays = number }
                    plays[made] = Expected(title: "\(step)", plays: number)
                    for id in deleted { plays[id] = nil }
                    if random.chance(50) { #expect(results.snapshot.ids == Self.expected(plays), "\(random.seed)") }
                    try await container.saveMain()
                }
            } else {
                let child = main.newBackgroundChild()
                let made = try await child.perform(andSave: .durable) { context in
                    for id in changed { context.object(with: id)["plays"] = .int(Int64(number)) }
                    for id in deleted { context.delete(context.object(with: id)) }
                    return context.makeTrack("\(step)", plays: number).objectID
                }
                for id in changed { plays[id]?.plays = number }
                plays[made] = Expected(title: "\(step)", plays: number)
                for id in deleted { plays[id] = nil }
                try await container.saveMain()
            }
            try #require(results.snapshot.ids == Self.expected(plays), "step \(step), STRATA_SEED=\(random.seed)")
        }
        let last = results.snapshot.ids
        if shown != last {
            for await update in updates {
                shown = Self.apply(update, to: shown)
                try #require(shown == update.snapshot.ids, "STRATA_SEED=\(random.seed)")
                if shown == last { break }
            }
        }
        #expect(shown == last)
    }

    /// Catches: a sequence that begins with a difference which the first read afterwards shows already.
    @Test(arguments: Combination.all)
    func `S142, S145: updates that are asked for before the first read begin after what it shows`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let numbers = try container.collection("numbers", of: Int.self)
        let results = try Results(EntityFetchRequest("Track", sortBy: [.init("title")]), context: main)
        let keyed = try KeyedResults(numbers.all)
        main.makeTrack("a")
        numbers["1"] = 1
        main.processPendingChanges()
        let (updates, differences) = (results.updates, keyed.differences)
        var (shown, keys) = (results.snapshot.ids, keyed.keys)
        #expect(shown.count == 1 && keys == ["1"])
        main.makeTrack("b")
        numbers["2"] = 2
        main.processPendingChanges()
        #expect(results.count == 2 && keyed.count == 2)
        for await update in updates {
            shown = Self.apply(update, to: shown)
            break
        }
        for await difference in differences {
            for position in difference.insertions.sorted() { keys.insert(keyed.keys[position], at: position) }
            break
        }
        #expect(shown == results.snapshot.ids && keys == ["1", "2"])
    }

    private static func apply(_ update: ResultUpdate, to old: [ObjectID]) -> [ObjectID] {
        var ids = old
        let difference = update.difference
        for position in (difference.deletions + difference.moves.map(\.from)).sorted(by: >) { ids.remove(at: position) }
        for position in (difference.insertions + difference.moves.map(\.to)).sorted() {
            guard position <= ids.count else { return [] }
            ids.insert(update.snapshot[position], at: position)
        }
        return ids
    }

    private struct Expected {
        var title: String
        var plays: Int
    }

    private static func expected(_ tracks: [ObjectID: Expected]) -> [ObjectID] {
        let popular = tracks.filter { $0.value.plays >= 10 }
        return Array(
            popular.sorted { ($1.value.plays, $0.value.title) < ($0.value.plays, $1.value.title) }.map(\.key).prefix(5))
    }

    /// Catches: results that show unsaved changes although their request leaves them out.
    @Test(arguments: StoreKind.allCases)
    func `S130, S140: a live result refuses a request that leaves out unsaved changes`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        main.makeTrack("a")
        let section = AttributeSort("title")
        var request = EntityFetchRequest("Track", sortBy: [section])
        request.includesPendingChanges = false
        let error = FetchError.pendingChangesRequired(entity: "Track")
        #expect(throws: error) { try Results(request, context: main) }
        #expect(throws: error) { try Results(request, sectionedBy: section, context: main) }
        #expect(throws: error) { try FetchedResultsController(request, context: main) }
        #expect(throws: error) { try FetchedResultsController(request, sectionedBy: section, context: main) }
        #expect(try main.count(request) == 0)
        request.includesPendingChanges = true
        #expect(try Results(request, context: main).count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `S145: a loop over results may delete their objects`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        for number in 0..<4 { main.makeTrack("\(number)") }
        let results = try Results(EntityFetchRequest("Track"), context: main)
        for position in results.indices { main.delete(results[position]) }
        #expect(results.count == 4)
        main.processPendingChanges()
        #expect(results.isEmpty && results.first == nil)
        main.rollback()
        #expect(results.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `S145: results of a closed container keep their ids and say why they end`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        container.mainContext.makeTrack("a")
        try await container.saveMain()
        let results = try Results(EntityFetchRequest("Track"), context: container.mainContext)
        let watch = Watch { _ = results.error }
        #expect(results.error == nil)
        try await container.close()
        try await until("the end is announced") { watch.count == 1 }
        #expect((results.error as? StoreError)?.code == .closed)
        #expect(results.count == 1)
    }

    /// Catches: a fetch that ends the result before it, although it gives no other.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S145: a result goes on after a background fetch that failed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        main.makeTrack("a", plays: 10)
        try await container.saveMain()
        let controller = try FetchedResultsController(Self.popular, context: main)
        try controller.performFetch()
        // Without its file, the store cannot be read.
        try await container.suspend()
        let aside = bed.folder.appendingPathExtension("aside")
        try FileManager.default.moveItem(at: bed.folder, to: aside)
        await #expect(throws: StoreError.self) { try await controller.performFetchInBackground() }
        try FileManager.default.moveItem(at: aside, to: bed.folder)
        await container.resume()
        #expect(controller.snapshot.count == 1)
        try await container.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("b", plays: 20) }
        try await until("the result shows the save") { controller.snapshot.count == 2 }
        #expect(try controller.snapshot.ids == main.fetchIDs(Self.popular))
    }

    /// Catches: a fetch that returns without a result, because another one has begun since.
    @Test(arguments: StoreKind.allCases)
    func `S145: each of two background fetches at the same time gives a result`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        main.makeTrack("a", plays: 10)
        try await container.saveMain()
        let controller = try FetchedResultsController(Self.popular, context: main)
        // Begins as soon as the first fetch suspends.
        let second = Task { @MainActor in
            try await controller.performFetchInBackground()
            return controller.snapshot.count
        }
        try await controller.performFetchInBackground()
        #expect(controller.snapshot.count == 1)
        let count = try await second.value
        #expect(count == 1)
        main.makeTrack("b", plays: 20)
        main.processPendingChanges()
        try await until("the result shows the change") { controller.snapshot.count == 2 }
    }

    @Test(arguments: StoreKind.allCases)
    func `S145: results work on the executor of a background context`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.newBackgroundContext()
        let other = container.newBackgroundContext()
        await worker.perform { $0.automaticallyMergesChanges = true }
        let counts = try await worker.perform { _, context in
            let results = try Results(EntityFetchRequest("Track"), context: context)
            var counts = [results.count]
            context.makeTrack("a")
            context.processPendingChanges()
            counts.append(results.count)
            try await other.perform(andSave: .durable) { _ = $0.makeTrack("b") }
            counts.append(results.count)
            return counts
        }
        #expect(counts == [0, 1, 2])
    }

    /// Catches: a list that applies the differences in the wrong order, because a reader gets ahead of the update that it is notified of.
    @Test(arguments: StoreKind.allCases)
    func `S142, S145: updates come in order, also if an observer reads the results while it is notified`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let results = try Results(EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        var updates = results.updates.makeAsyncIterator()
        var made = 1
        let watch = Watch({ _ = results.count }) {
            guard made == 1 else { return }
            made = 2
            main.makeTrack("b")
            main.processPendingChanges()
            _ = results.count
        }
        main.makeTrack("a")
        main.processPendingChanges()
        _ = results.count
        #expect(await updates.next()?.snapshot.count == 1)
        #expect(await updates.next()?.snapshot.count == 2)
        withExtendedLifetime(watch) {}
    }

    /// Catches: a list that applies the difference to a snapshot that contains it already.
    @Test(arguments: StoreKind.allCases)
    func `S142: updates that are asked for while an update is shown begin after it`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let controller = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        try controller.performFetch()
        var updates: AsyncStream<ResultUpdate>?
        var observation: ObservationToken?
        var observed: [Int] = []
        controller.onChange = { [unowned controller] update in
            guard updates == nil else { return }
            updates = controller.updates
            observation = controller.observe { observed.append($0.snapshot.count) }
            #expect(controller.snapshot.ids == update.snapshot.ids)
        }
        main.makeTrack("a")
        main.processPendingChanges()
        try await until("the first update is shown") { updates != nil }
        main.makeTrack("b")
        main.processPendingChanges()
        var first = try #require(updates).makeAsyncIterator()
        #expect(await first.next()?.snapshot.count == 2)
        #expect(observed == [2])
        withExtendedLifetime(observation) {}
    }

    /// Catches: a list that misses an update, because it has read the rows before it.
    @Test(arguments: StoreKind.allCases)
    func `S142, S145: updates that an observer of results asks for include the one that it is notified of`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let results = try Results(EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), context: main)
        var shown: [ObjectID]?
        var updates: AsyncStream<ResultUpdate>?
        let watch = Watch({ _ = results.count }) {
            guard updates == nil else { return }
            updates = results.updates
            shown = results.snapshot.ids
        }
        main.makeTrack("a")
        main.processPendingChanges()
        try await until("the observer is notified") { updates != nil }
        var first = try #require(updates).makeAsyncIterator()
        let update = try #require(await first.next())
        #expect(shown == [] && update.difference.insertions == [0] && update.snapshot.ids == results.snapshot.ids)
        withExtendedLifetime(watch) {}
    }
}
