import Foundation
import Strata
import Testing

// Sources/Strata/Macros.swift
@Model final class Partita {
    var title: String
    @Relationship(.ordered, deleteRule: .cascade, inverse: \Movement.partita) var movements: [Movement]
}

@Model final class Movement {
    var title: String
    var partita: Partita?
}
// end

/// Shapes of ordered relationships in macro models.
enum OrderedShapes {
    @Model final class Queue {
        var name: String
        @Relationship(.ordered, inverse: \Job.queue) var jobs: [Job]?
        @Relationship(.ordered, inverse: \Job.backup) var backups = [Job]()
    }

    @Model final class Job {
        @Relationship var queue: Queue?
        var name: String
        @Relationship var backup: Queue?
        var effort = 1
    }

    @Model final class Mixtape {
        var name: String
        @Relationship(.ordered, inverse: \Tune.mixtapes) var tunes: [Tune]
    }

    @Model final class Tune {
        var name: String
        @Relationship(.ordered) var mixtapes: [Mixtape]
    }

    @Model final class Setlist {
        var name: String
        @Relationship(.ordered, deleteRule: .deny, inverse: \Song.setlists) var songs: [Song]
    }

    @Model final class Song {
        var name: String
        @Relationship(deleteRule: .deny) var setlists: [Setlist]
    }
}

/// Ordered relationships of macro models (S046).
@Suite @MainActor struct OrderedModelTests {
    @Test(arguments: TestStore.allCases)
    func `S046: the order of an array is that of new objects, and follows changes of the array`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Partita.self, Movement.self, store: description)
            let main = container.mainContext
            let movements = ["Prélude", "Allemande", "Courante", "Gigue"].map { Movement(title: $0) }
            let partita = Partita(title: "BWV 1007", movements: movements.reversed())
            partita.movements.swapAt(0, 3)
            #expect(partita.movements.map(\.title) == ["Prélude", "Courante", "Allemande", "Gigue"])
            main.insert(partita)
            #expect(partita.movements.map(\.title) == ["Prélude", "Courante", "Allemande", "Gigue"])
            try await main.save()
            partita.movements.swapAt(1, 2)
            let sarabande = Movement(title: "Sarabande")
            partita.movements.insert(sarabande, at: 3)
            Movement(title: "Encore").partita = partita
            #expect(main.hasChanges)
            try await main.save()
            let expected = ["Prélude", "Allemande", "Courante", "Sarabande", "Gigue", "Encore"]
            let id = partita.id
            let stored = try await container.newBatchOperationContext().perform { context throws in
                let partita: Partita = try context.existingObject(with: id)
                let request = FetchRequest<Movement>(sortBy: [.init(positionIn: \.partita, .descending)])
                #expect(try context.fetch(request).map(\.title) == partita.movements.map(\.title).reversed())
                return partita.movements.map(\.title)
            }
            #expect(stored == expected)
            #expect("\(sarabande)".contains("position") == false)
            main.delete(partita)
            try await main.save()
            #expect(try main.count(FetchRequest<Movement>()) == 0)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S046: an object has a position in each of its lists`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: OrderedShapes.Queue.self, OrderedShapes.Job.self, store: description)
            let main = container.mainContext
            let queue = OrderedShapes.Queue(name: "q", jobs: nil)
            main.insert(queue)
            let jobs = (0..<5).map { OrderedShapes.Job(name: "\($0)") }
            for job in jobs { main.insert(job) }
            queue.jobs = jobs
            queue.backups = jobs.reversed()
            queue.jobs?.append(jobs[0])
            queue.jobs?.removeFirst()
            queue.backups.move(from: 0, to: 4)
            try await main.save()
            main.refreshAllObjects()
            #expect(queue.jobs?.map(\.name) == ["1", "2", "3", "4"])
            #expect(queue.backups.map(\.name) == ["3", "2", "1", "0", "4"])
            #expect(jobs[4].effort == 1 && jobs[4].name == "4")
        }
    }

    /// Catches: an order that is lost at a save, or that one end takes from the other.
    @Test(arguments: TestStore.allCases)
    func `S046: both ends of a many-to-many relationship have their own order`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: OrderedShapes.Mixtape.self, OrderedShapes.Tune.self, store: description)
            let main = container.mainContext
            let tunes = ["a", "b", "c"].map { OrderedShapes.Tune(name: $0, mixtapes: []) }
            let first = OrderedShapes.Mixtape(name: "first", tunes: tunes.reversed())
            let second = OrderedShapes.Mixtape(name: "second", tunes: [tunes[1], tunes[0]])
            main.insert(first)
            main.insert(second)
            tunes[0].mixtapes = [second, first]
            try await main.save()
            first.tunes.move(from: 0, to: 2)
            second.tunes.insert(tunes[2], at: 1)
            try await main.save()
            let stored = try await container.newBatchOperationContext().perform { context throws in
                let mixtapes = try context.fetch(FetchRequest<OrderedShapes.Mixtape>(sortBy: [.init(\.name)]))
                let tunes = try context.fetch(FetchRequest<OrderedShapes.Tune>(sortBy: [.init(\.name)]))
                return mixtapes.map { $0.tunes.map(\.name) } + tunes.map { $0.mixtapes.map(\.name) }
            }
            #expect(stored[0] == ["b", "a", "c"] && stored[1] == ["b", "c", "a"])
            #expect(stored[2] == ["second", "first"] && Set(stored[3]) == ["first", "second"])
            #expect(stored[4] == ["first", "second"])
            #expect(first.tunes.map(\.name) == stored[0] && tunes[0].mixtapes.map(\.name) == stored[2])
        }
    }

    /// Catches: the position in the list of before the deletion, in the list into which others have moved the member.
    @Test(arguments: TestStore.allCases)
    func `S046, S048: a member that is inserted again is at its place in the list into which others have moved it`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Partita.self, Movement.self, store: description)
            let main = container.mainContext
            let first = Partita(title: "first", movements: ["a", "b", "c"].map { Movement(title: $0) })
            let second = Partita(title: "second", movements: ["x", "y"].map { Movement(title: $0) })
            main.insert(first)
            main.insert(second)
            try await main.save()
            let moved = first.movements[2]
            first.movements.move(from: 2, to: 0)
            main.delete(moved)
            let (id, target) = (moved.id, second.id)
            let other = container.newBatchOperationContext()
            try await other.perform { context throws in
                let movement: Movement = try context.existingObject(with: id)
                let partita: Partita = try context.existingObject(with: target)
                movement.partita = partita
            }
            try await other.save()
            main.refreshAllObjects()
            main.insert(moved)
            #expect(first.movements.map(\.title) == ["a", "b"] && second.movements.map(\.title) == ["x", "y", "c"])
            try await main.save()
            main.refreshAllObjects()
            #expect(second.movements.map(\.title) == ["x", "y", "c"])
        }
    }

    /// Catches: a list in the order of its keys, because the deletion of one end deletes the positions of pairs that a rule keeps.
    @Test(arguments: TestStore.allCases)
    func `S046, S048: a list whose pairs a rule keeps has its order after the deletion of an end is taken back`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: OrderedShapes.Setlist.self, OrderedShapes.Song.self, store: description)
            let main = container.mainContext
            let songs = ["a", "b", "c"].map { OrderedShapes.Song(name: $0, setlists: []) }
            for song in songs { main.insert(song) }
            let setlist = OrderedShapes.Setlist(name: "s", songs: [songs[1], songs[2], songs[0]])
            main.insert(setlist)
            try await main.save()
            main.delete(setlist)
            await #expect(throws: SaveError.self) { try await main.save() }
            main.insert(setlist)
            #expect(setlist.songs.map(\.name) == ["b", "c", "a"])
            main.delete(songs[1])
            main.insert(songs[1])
            #expect(setlist.songs.map(\.name) == ["b", "c", "a"])
            try await main.save()
            let id = setlist.id
            let stored = try await container.newBatchOperationContext().perform { context throws in
                let setlist: OrderedShapes.Setlist = try context.existingObject(with: id)
                return setlist.songs.map(\.name)
            }
            #expect(stored == ["b", "c", "a"])
        }
    }
}

extension Array {
    fileprivate mutating func move(from: Int, to: Int) { insert(remove(at: from), at: to) }
}
