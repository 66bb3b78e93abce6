import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct ChangeFeedTests {
    private func feed(_ sequences: ClosedRange<UInt64>, limit: Int = 100) -> ChangeFeed {
        var feed = ChangeFeed(limit: limit)
        for number in sequences { feed.append(.save(ChangeSet(generation: Generation(rawValue: number))), SaveSequence(number)) }
        return feed
    }

    private func generations(_ steps: [ChangeFeed.Step]?) -> [Generation]? {
        steps?.map { if case .save(let changes) = $0 { changes.generation } else { 0 } }
    }

    /// Catches: a boundary that is off by one, so that a context misses a save or treats its own save as another context's.
    @Test func `The steps between two states are those after the first up to the second`() {
        let feed = feed(1...10)
        #expect(generations(feed.steps(after: SaveSequence(3), through: SaveSequence(6))) == [4, 5, 6])
        #expect(generations(feed.steps(after: SaveSequence(0), through: SaveSequence(1))) == [1])
        #expect(generations(feed.steps(after: SaveSequence(10), through: SaveSequence(10))) == [])
    }

    /// Catches: an incomplete answer that is returned as a complete one.
    @Test func `Steps that are not all known are not answered`() {
        let feed = feed(5...10)
        #expect(feed.steps(after: SaveSequence(3), through: SaveSequence(6)) == nil)
        #expect(feed.steps(after: SaveSequence(8), through: SaveSequence(11)) == nil)
        #expect(feed.steps(after: SaveSequence(9), through: SaveSequence(8)) == nil)
    }

    /// Catches: a context that takes the forgotten saves of another one for its own, or its own for those of another.
    @Test func `Forgotten steps of the asking context are left out, and those of another are not answered`() {
        var feed = ChangeFeed(limit: 2)
        for (index, number) in [UInt64(7), 8, 7, 7, 7, 8].enumerated() {
            let sequence = UInt64(index + 1)
            feed.append(
                .save(ChangeSet(generation: Generation(rawValue: sequence))), SaveSequence(sequence), source: .context(number))
        }
        // The steps 1 to 3 are forgotten.
        func found(_ old: UInt64, _ new: UInt64, notBy number: UInt64) -> [Generation]? {
            generations(feed.steps(after: SaveSequence(old), through: SaveSequence(new), notBy: number))
        }
        #expect(found(2, 6, notBy: 7) == [6] && found(2, 3, notBy: 7) == [] && found(3, 6, notBy: 8) == [4, 5])
        #expect(found(1, 6, notBy: 7) == nil && found(2, 6, notBy: 8) == nil && found(0, 2, notBy: 7) == nil)
        feed.forgetSteps()
        #expect(found(2, 5, notBy: 7) == nil && found(5, 6, notBy: 8) == [] && found(5, 6, notBy: 7) == nil)
        #expect(found(6, 6, notBy: 7) == [] && found(6, 7, notBy: 7) == nil)
    }

    /// Catches: a change that only the feed has known, and that the history of the saves around it seems to complete.
    @Test func `A change without a description is known also after its step was forgotten`() {
        var feed = ChangeFeed(limit: 2)
        func isUnknownAfter(_ sequence: UInt64) -> Bool { feed.mayHaveUnknown(after: SaveSequence(sequence)) }
        feed.append(.save(ChangeSet(generation: 1)), SaveSequence(1))
        #expect(!isUnknownAfter(0))
        feed.append(.unknown, SaveSequence(2))
        #expect(isUnknownAfter(1) && !isUnknownAfter(2))
        for number in UInt64(3)...8 {
            feed.append(.save(ChangeSet(generation: Generation(rawValue: number))), SaveSequence(number))
        }
        #expect(feed.steps(after: SaveSequence(1), through: SaveSequence(8)) == nil, "the step is forgotten")
        #expect(isUnknownAfter(1) && !isUnknownAfter(2))
        // Nothing is known of the steps 9 to 11.
        feed.append(.save(ChangeSet(generation: 12)), SaveSequence(12))
        #expect(isUnknownAfter(8) && isUnknownAfter(10) && !isUnknownAfter(11))
    }

    /// Catches: a save of memory that another coordinator takes for one of the file, or a gap between two saves that it does not notice.
    @Test func `Saves in the file are found by generation, if all of them are this writer's`() {
        var feed = feed(1...6)
        var numbers = CommittedNumbers()
        numbers.note(CommitNumbers([SaveSequence(1), SaveSequence(2), SaveSequence(3)], after: 10))
        numbers.note(CommitNumbers([SaveSequence(4)], after: 20))
        func found(_ old: Generation, _ new: Generation) -> [Generation]? {
            feed.saves(after: old, through: new, numbers)?.map(\.generation)
        }
        #expect(found(10, 13) == [11, 12, 13])
        #expect(found(11, 12) == [12])
        #expect(found(20, 21) == [21])
        // Another process has made the saves 14 to 20, and 10. The saves 5 and 6 of this writer are not in the file.
        #expect(found(13, 21) == nil && found(9, 11) == nil && found(20, 22) == nil && found(13, 14) == nil)
        #expect(found(12, 12) == nil && found(13, 12) == nil)
        feed.append(.external(after: 21, through: 22), SaveSequence(7))
        #expect(found(20, 21) == [21])
        // A flush has changed saves, and it is not known which.
        feed.append(.unknown, SaveSequence(8))
        #expect(found(20, 21) == nil)
    }

    /// Catches: a save that another coordinator takes from memory while a flush writes other changes of it.
    @Test func `A save that was written with other changes is not found by generation`() {
        var feed = feed(3...5)
        var numbers = CommittedNumbers()
        numbers.note(CommitNumbers([SaveSequence(3), SaveSequence(4), SaveSequence(5)], after: 10))
        for unknown in [2, 6] { feed.noteRewritten(SaveSequence(UInt64(unknown))) }
        #expect(feed.saves(after: 10, through: 13, numbers)?.count == 3)
        feed.noteRewritten(SaveSequence(4))
        #expect(feed.saves(after: 10, through: 13, numbers) == nil)
        #expect(feed.saves(after: 12, through: 13, numbers)?.count == 1)
        // Contexts of this writer see the save as it was accepted.
        #expect(generations(feed.steps(after: SaveSequence(3), through: SaveSequence(5))) == [4, 5])
    }

    @Test func `A full feed forgets the oldest steps only`() {
        let feed = feed(1...1000, limit: 10)
        #expect(feed.steps(after: SaveSequence(1), through: SaveSequence(1000)) == nil)
        #expect(generations(feed.steps(after: SaveSequence(990), through: SaveSequence(1000))) == Array(991...1000))
    }
}

@Suite struct CommittedNumbersTests {
    @Test func `Withdrawn saves are known by their sequences, the newest of very many`() {
        var numbers = CommittedNumbers()
        #expect(!numbers.isWithdrawn(.accepted(SaveSequence(3))) && !numbers.isWithdrawn(nil))
        numbers.noteWithdrawn([SaveSequence(3), SaveSequence(4)])
        numbers.noteWithdrawn([SaveSequence(7)])
        let found = (2...8).filter { numbers.isWithdrawn(.accepted(SaveSequence($0))) }
        #expect(found == [3, 4, 7] && !numbers.isWithdrawn(.committed(3)))
        numbers.noteWithdrawn((10...10_000).map { SaveSequence($0) })
        #expect(!numbers.isWithdrawn(.accepted(SaveSequence(3))) && numbers.isWithdrawn(.accepted(SaveSequence(10_000))))
    }

    /// Catches: a row that conflicts with itself after its commit, because a context knows it only as accepted (S067).
    @Test func `A version before its commit and after it are the same`() {
        var numbers = CommittedNumbers()
        numbers.note(CommitNumbers([SaveSequence(1), SaveSequence(2)], after: 10))
        numbers.note(CommitNumbers([SaveSequence(3), SaveSequence(5)], after: 20))
        #expect(numbers.generation(of: SaveSequence(1)) == 11)
        #expect(numbers.generation(of: SaveSequence(2)) == 12)
        #expect(numbers.generation(of: SaveSequence(3)) == 21)
        #expect(numbers.generation(of: SaveSequence(4)) == nil)
        #expect(numbers.generation(of: SaveSequence(5)) == 22)
        #expect(numbers.generation(of: SaveSequence(6)) == nil)
        #expect(numbers.areSame(.accepted(SaveSequence(5)), .committed(22)))
        #expect(!numbers.areSame(.accepted(SaveSequence(5)), .committed(21)))
        #expect(!numbers.areSame(.accepted(SaveSequence(7)), .committed(7)))
        #expect(!numbers.areSame(nil, .committed(1)) && numbers.areSame(nil, nil))
    }

    @Test func `The generations of a commit follow the order of its saves, gaps or not`() {
        let plain = CommitNumbers([SaveSequence(4), SaveSequence(5)], after: 7)
        #expect(plain.generation(of: .accepted(SaveSequence(5))) == 9)
        let gaps = CommitNumbers([SaveSequence(4), SaveSequence(9), SaveSequence(11)], after: 7)
        #expect(gaps.generation(of: .accepted(SaveSequence(9))) == 9)
        #expect(gaps.generation(of: .accepted(SaveSequence(11))) == 10)
        #expect(gaps.generation(of: .committed(3)) == 3)
    }
}

/// A container with two coordinators, whose writers know of each other's saves.
@Suite struct SiblingSavesTests {
    /// Catches: a main thread that decodes each save of the other coordinator from the file, and changes in memory that differ from those
    /// in the file.
    @Test func `The saves of the other coordinator come from its memory, and equal those of the history`() async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(.split)
        let (reader, other) = (container.coordinator.writer, container.backgroundCoordinator.writer)
        #expect(reader !== other)
        let start = reader.state.committed
        let importer = await container.newBackgroundContext()
        for title in ["a", "b", "c"] {
            try await importer.perform { context in
                for track in try context.fetch(EntityFetchRequest("Track")) { context.delete(track) }
                context.makeTrack(title)
            }
            try await importer.save()
        }
        let end = other.state.committed
        let stored = try #require(try reader.store.history(after: start, limit: 10))
        #expect(stored.count == 3 && reader.stored(after: start, through: end) == stored)
        _ = try await container.coordinator.deleteHistory(before: .distantFuture)
        #expect(try reader.store.history(after: start, limit: 10)?.isEmpty ?? true)
        #expect(reader.stored(after: start, through: end) == stored)
        #expect(reader.stored(after: start.next, through: end) == Array(stored[1...]))
        try await container.close()
    }
}
