import Foundation
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Live results on real contexts, over every store and stack.
@Suite(.timeLimit(.minutes(10))) @MainActor struct LiveResultsControllerTests {
    static let popular = EntityFetchRequest(
        "Track", matching: .compare("plays", .greaterOrEqual, to: .int(10)),
        sortBy: [AttributeSort("plays", .descending), AttributeSort("title")])

    /// A controller, the list of an observer that applies its differences, and the number of updates.
    @MainActor final class Screen {
        let controller: FetchedResultsController<ManagedObject>
        private(set) var shown: [ObjectID]
        private(set) var updates: [ResultUpdate] = []

        init(_ request: EntityFetchRequest, _ context: ManagedObjectContext) throws {
            controller = try FetchedResultsController(request, context: context)
            controller.minimumInterval = .zero
            try controller.performFetch()
            shown = controller.snapshot.ids
            controller.onChange = { [unowned self] in
                shown = $0.difference.applied(to: shown, takingFrom: $0.snapshot.ids)
                updates.append($0)
                #expect(shown == $0.snapshot.ids, "\($0.difference)")
            }
        }

        /// Waits until the result is equal to a fetch of the context.
        func settle(_ request: EntityFetchRequest) async throws {
            controller.context.processPendingChanges()
            try await until("no update is lost") { try controller.snapshot.ids == controller.context.fetchIDs(request) }
            #expect(shown == controller.snapshot.ids)
        }

        func untilUpdate(_ count: Int) async throws {
            try await until("update \(count)") { updates.count >= count }
        }
    }

    @Test func S140_aLiveResultNeedsASort() async throws {
        let container = try await TestBed(.memory).container()
        #expect(throws: FetchError.sortRequired(entity: "Track")) {
            try FetchedResultsController(EntityFetchRequest("Track"), context: container.mainContext)
        }
    }

    /// Catches: an update that is lost between executors, or that is applied to another snapshot than it was computed for.
    @Test(arguments: Combination.all)
    func S142_anObserverThatAppliesDifferencesShowsWhatTheContextFetches(_ combination: Combination) async throws {
        var numbers = SeededGenerator(test: #function)
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        // A worker's save may reach the store before main has merged it.
        main.mergePolicy = .objectTrump
        let screen = try Screen(Self.popular, main)
        for round in 0..<12 {
            let seed = numbers.next()
            if numbers.chance(1, in: 2) {
                try Self.change(main, seed: seed)
                main.processPendingChanges()
                if numbers.chance(1, in: 2) { try await main.save(through: .store) }
            } else {
                let worker = container.newBackgroundContext(name: "worker \(round)")
                try await worker.perform { try Self.change($0, seed: seed) }
                try await worker.save()
            }
            if numbers.chance(1, in: 3) { try await screen.settle(Self.popular) }
        }
        try await screen.settle(Self.popular)
        #expect(!screen.updates.isEmpty)
    }

    /// Catches: an object that stays in a list because of a value that its save has dropped.
    @Test(
        arguments: Combination.all.filter { [.nested, .siblings, .split].contains($0.stack) },
        [MergePolicy.storeTrump, .rollback])
    func S108_anObjectLeavesAListThatItEnteredByADroppedValue(_ combination: Combination, _ policy: MergePolicy) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.mergePolicy = policy
        let (first, second) = (main.makeTrack("first"), main.makeTrack("second"))
        (first["isrc"], second["isrc"]) = (.string("A"), .string("B"))
        try await main.save(through: .store)
        let request = EntityFetchRequest("Track", matching: .equal("isrc", .string("B")), sortBy: [AttributeSort("title")])
        let screen = try Screen(request, main)
        first["isrc"] = .string("B")
        try await screen.settle(request)
        #expect(screen.shown == [first.objectID, second.objectID])
        let counter = Counter()
        let token = main.addObserver { counter.note($0) }
        try await main.save(through: .store)
        #expect(first["isrc"] == .string("A") && !main.hasChanges)
        try await screen.settle(request)
        #expect(screen.shown == [second.objectID])
        #expect(counter.all.contains { $0.kind == .objectsDidChange && $0.refreshed == [first.objectID] })
        main.removeObserver(token)
    }

    /// Records what a live result of a child would receive.
    private final class Listener: ViewObserver {
        private let heard = Mutex<[ChangeSet]>([])

        func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet) {
            heard.withLock { $0 += [changes, saved].compactMap(\.self) }
        }

        func heard(of id: ObjectID) -> Bool {
            heard.withLock { ChangeSet.union($0).change(of: id.entity)?.updatedKeys.contains(id.key) ?? false }
        }
    }

    @Test(arguments: StoreKind.allCases, [MergePolicy.storeTrump, .rollback])
    func S108_childrenHearOfAValueThatTheirRootsSaveDrops(_ kind: StoreKind, _ policy: MergePolicy) async throws {
        let bed = try TestBed(kind)
        let root = try await bed.container().coordinator.newBackgroundContext()
        let (first, other) = await root.perform { context in
            context.mergePolicy = policy
            let (first, second) = (context.makeTrack("first"), context.makeTrack("second"))
            (first["isrc"], second["isrc"]) = (.string("A"), .string("B"))
            return (first.objectID, second.objectID)
        }
        try await root.save()
        let listeners = [Listener(), Listener()]
        try await root.perform { try $0.existingObject(with: first)["isrc"] = .string("B") }
        let follower = await root.perform { $0.newBackgroundChild() }
        await follower.perform { context in
            context.automaticallyMergesChanges = true
            _ = context.addViewObserver(listeners[0])
            #expect(context.object(with: first)["isrc"] == .string("B"))
        }
        // Following is set up on the root's executor.
        await root.perform { _ in }
        try await root.save()
        try await until("the follower hears of it") {
            await follower.perform { $0.object(with: first)["isrc"] == .string("A") }
        }
        #expect(listeners[0].heard(of: first))
        let pushing = await root.perform { $0.newBackgroundChild() }
        try await pushing.perform { context throws in
            try context.existingObject(with: first)["isrc"] = .string("B")
            try context.existingObject(with: other)["plays"] = .int(5)
            context.processPendingChanges()
            _ = context.addViewObserver(listeners[1])
        }
        try await pushing.save(through: .store)
        await pushing.perform { #expect($0.object(with: first)["isrc"] == .string("A")) }
        #expect(listeners[1].heard(of: first))
    }

    /// With the routing `ancestors` a view does not keep its state. The engine must remember what it delivered.
    @Test(arguments: ContextStack.allCases)
    func S142_theClassicalRoutingIsFollowedToo(_ stack: ContextStack) async throws {
        var numbers = SeededGenerator(test: #function)
        let bed = try TestBed(.memory)
        let container = try await bed.container(stack, routing: .ancestors)
        let main = container.mainContext
        main.mergePolicy = .objectTrump
        let screen = try Screen(Self.popular, main)
        for round in 0..<6 {
            let seed = numbers.next()
            let worker = container.newBackgroundContext(name: "worker \(round)")
            try await worker.perform { try Self.change($0, seed: seed) }
            try await worker.save()
            try Self.change(main, seed: seed &+ 1)
            try await screen.settle(Self.popular)
        }
        #expect(!screen.updates.isEmpty)
    }

    private nonisolated static func change(_ context: ManagedObjectContext, seed: UInt64) throws {
        var numbers = SeededGenerator(seed: seed)
        for number in 0..<Int.random(in: 1...30, using: &numbers) {
            let tracks = try context.fetch(EntityFetchRequest("Track"))
            if tracks.count < 10 || numbers.chance(1, in: 2) {
                context.makeTrack("track \(seed % 1_000) \(number)", plays: Int.random(in: 0...30, using: &numbers))
            } else if let track = tracks.randomElement(using: &numbers) {
                if numbers.chance(1, in: 5) {
                    context.delete(track)
                } else {
                    track["plays"] = .int(Int64.random(in: 0...30, using: &numbers))
                }
            }
        }
    }

    @Test(arguments: Combination.all)
    func S092_anObjectThatNowMatchesEntersThoughItWasNeverRegistered(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("quiet", plays: 1).objectID }
        try await worker.save(through: .store)
        let screen = try Screen(Self.popular, container.mainContext)
        try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(11) }
        try await worker.save()
        try await screen.untilUpdate(1)
        #expect(screen.updates[0].difference == ResultDifference(insertions: [0]))
        #expect(screen.controller.object(at: 0)["title"] == .string("quiet"))
    }

    @Test(arguments: Combination.parented)
    func S080_aChildsRelationshipOnlyChangeUpdatesTheParentsResult(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let request = EntityFetchRequest(
            "Album", matching: .equal("artist.name", .string("a")), sortBy: [AttributeSort("title")])
        let artist = main.makeArtist("a")
        let album = main.insert("Album")
        album["title"] = .string("first")
        try await main.save(through: .store)
        let screen = try Screen(request, main)
        let ids = (artist.objectID, album.objectID)
        let child = container.newBackgroundContext()
        try await child.perform { context in
            try context.existingObject(with: ids.1).setRelatedObject("artist", to: context.existingObject(with: ids.0))
        }
        try await child.save()
        try await screen.untilUpdate(1)
        #expect(screen.shown == [ids.1])
    }

    /// Catches: an empty update, or an update for every notice of the context.
    @Test(arguments: Combination.all)
    func S143_nothingIsDeliveredWhenNothingRelevantChanged(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let screen = try Screen(Self.popular, main)
        main.makeTrack("quiet", plays: 1)
        main.makeArtist("somebody")
        main.processPendingChanges()
        await screen.controller.untilIdle()
        #expect(screen.updates.isEmpty)
        main.makeTrack("loud", plays: 20)
        main.processPendingChanges()
        try await screen.untilUpdate(1)
        #expect(screen.updates.map(\.difference) == [ResultDifference(insertions: [0])])
    }

    /// Catches: updates that pile up on a busy executor.
    @Test func S144_changesDuringABusyExecutorAreOneUpdate() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        let screen = try Screen(Self.popular, main)
        for number in 0..<50 {
            main.makeTrack("track \(number)", plays: 10 + number)
            main.processPendingChanges()
        }
        // Nothing can be delivered before this suspends. At most one update was computed before the last change.
        try await screen.settle(Self.popular)
        #expect(screen.updates.count <= 2)
        #expect(screen.shown.count == 50)
    }

    @Test func whatChangesDuringABackgroundFetchIsDeliveredAfterIt() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        for number in 0..<2_000 { main.makeTrack("track \(number)", plays: number) }
        let controller = try FetchedResultsController(Self.popular, context: main)
        controller.minimumInterval = .zero
        var shown: [ObjectID]?
        controller.onChange = { update in
            shown = shown.map { update.difference.applied(to: $0, takingFrom: update.snapshot.ids) }
        }
        // Runs as soon as the fetch suspends.
        let later = Task { @MainActor in
            container.mainContext.makeTrack("late", plays: 100_000)
            container.mainContext.processPendingChanges()
        }
        try await controller.performFetchInBackground()
        shown = controller.snapshot.ids
        await later.value
        try await until("the late track is shown") { try controller.snapshot.ids == main.fetchIDs(Self.popular) }
        #expect(shown == controller.snapshot.ids)
    }

    @Test func aWindowShowsOffsetAndLimitOfTheWholeResult() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        var request = Self.popular
        request.offset = 1
        request.limit = 2
        let screen = try Screen(request, main)
        for plays in [10, 20, 30, 40] { main.makeTrack("t\(plays)", plays: plays) }
        try await screen.settle(request)
        #expect(screen.controller.fetchedObjects.map { $0["plays"] } == [.int(30), .int(20)])
        main.makeTrack("top", plays: 50)
        try await screen.settle(request)
        #expect(screen.controller.fetchedObjects.map { $0["plays"] } == [.int(40), .int(30)])
    }

    @Test func typedResultsComeAsASequenceThatEndsWithTheController() async throws {
        let container = try await TestBed(.memory).container(model: Model([Song.self, Singer.self]))
        let main = container.mainContext
        let request = FetchRequest<Song>(where: #Predicate { $0.plays > 10 }, sortBy: [.init(\.title)])
        var controller: FetchedResultsController<Song>? = try FetchedResultsController(request, context: main)
        try controller?.performFetch()
        let updates = try #require(controller?.updates)
        let song = main.insert("Song")
        song["title"] = .string("loud")
        song["plays"] = .int(11)
        main.processPendingChanges()
        var counts: [Int] = []
        for await update in updates {
            counts.append(update.snapshot.count)
            #expect(controller?.object(at: 0).title == "loud")
            controller = nil
        }
        #expect(counts == [1])
        #expect(main.observers.views.isEmpty)
    }

    /// Catches: an error that is shown although the result has been read again since.
    @Test func aFailureFromBeforeTheLastFetchIsNotReported() async throws {
        let container = try await TestBed(.memory).container()
        let controller = try FetchedResultsController(Self.popular, context: container.mainContext)
        var failures = 0
        controller.onFailure = { _ in failures += 1 }
        try controller.performFetch()
        try controller.performFetch()
        controller.take(.failure(StoreError(.full, "before")), 1)
        #expect(failures == 0)
        controller.take(.failure(StoreError(.full, "after")), 2)
        #expect(failures == 1)
    }

    /// Catches: updates that stay in memory although the program has released their sequence.
    @Test func aReleasedSequenceOfUpdatesIsForgottenWithoutAnUpdate() async throws {
        let container = try await TestBed(.memory).container()
        let controller = try FetchedResultsController(Self.popular, context: container.mainContext)
        try controller.performFetch()
        let keyed = try KeyedResults(container.mainContext.collection("numbers", of: Int.self).all)
        var kept: (AsyncStream<ResultUpdate>, AsyncStream<ResultDifference>)? = (controller.updates, keyed.differences)
        #expect(controller.receivers.continuations.count == 1 && keyed.continuations.count == 1)
        withExtendedLifetime(kept) {}
        kept = nil
        try await until("both are forgotten") { controller.receivers.continuations.isEmpty && keyed.continuations.isEmpty }
    }

    /// The number of objects of each update.
    private final class UpdateCounts: Sendable {
        private let counts = Mutex<[Int]>([])
        var all: [Int] { counts.withLock { $0 } }
        func append(_ count: Int) { counts.withLock { $0.append(count) } }
    }

    private static func worker(of context: ManagedObjectContext) -> (worker: ResultWorker, counts: UpdateCounts) {
        let counts = UpdateCounts()
        let worker = ResultWorker(
            contextExecutor: context.requiredContextExecutor, store: context.storeIdentity, interval: .zero
        ) { delivery, _ in
            if case .update(let update) = delivery { counts.append(update.snapshot.count) }
        }
        return (worker, counts)
    }

    /// Catches: a change that is shown only with the next one, because it came between two background fetches that gave no result.
    @Test func aChangeBetweenTwoBackgroundFetchesIsDeliveredIfBothFail() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        let (worker, counts) = Self.worker(of: main)
        let view = main.addViewObserver(worker)
        _ = worker.follow(try LiveQuery(Self.popular.storeQuery(in: main.requestScope), in: view))
        let first = worker.beginFetch()
        main.makeTrack("loud", plays: 20)
        main.processPendingChanges()
        let second = worker.beginFetch()
        let isIdle = (worker.cancelFetch(first), worker.cancelFetch(second))
        #expect(isIdle == (false, false))
        await worker.untilIdle()
        #expect(counts.all == [1])
        main.removeViewObserver(worker)
    }

    /// Catches: a result that is dropped because a later background fetch has begun, which then gives none.
    @Test(arguments: [false, true])
    func `S145: the result of a background fetch is followed if a later one fails`(before: Bool) async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        let (worker, counts) = Self.worker(of: main)
        let view = main.addViewObserver(worker)
        let query = try Self.popular.storeQuery(in: main.requestScope)
        let first = worker.beginFetch()
        let live = try await worker.compute(query, hasSections: false, in: view)
        main.makeTrack("loud", plays: 20)
        main.processPendingChanges()
        let second = worker.beginFetch()
        if before { #expect(!worker.cancelFetch(second)) }
        #expect(try worker.endFetch(live, first))
        if !before { #expect(!worker.cancelFetch(second)) }
        await worker.untilIdle()
        #expect(counts.all == [1])
        main.removeViewObserver(worker)
    }

    /// Catches: changes that are kept for a fetch that has failed, or not kept for one that has not ended.
    @Test func `S145: nothing is followed after the last of two background fetches that fail`() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        let (worker, _) = Self.worker(of: main)
        let (first, second) = (worker.beginFetch(), worker.beginFetch())
        let areIdle = (worker.cancelFetch(second), worker.isIdle, worker.cancelFetch(first), worker.isIdle)
        #expect(areIdle == (false, false, true, true))
    }

    /// Catches: an older result that replaces a newer one, because its fetch ends after the newer fetch.
    @Test func `S145: the result of the last background fetch stays if an earlier one ends after it`() async throws {
        let container = try await TestBed(.memory).container()
        let main = container.mainContext
        let (worker, _) = Self.worker(of: main)
        let query = try Self.popular.storeQuery(in: main.requestScope)
        let live = try LiveQuery(query, in: main.addViewObserver(worker))
        let (first, second, third) = (worker.beginFetch(), worker.beginFetch(), worker.beginFetch())
        #expect(try worker.endFetch(live, second))
        #expect(try !worker.endFetch(live, first))
        #expect(!worker.cancelFetch(third))
        #expect(!worker.isIdle)
        main.removeViewObserver(worker)
    }
}
