import StoreInterface
import StoreModel
import Testing

@testable import ObjectGraph

@Suite struct ChangeFeedTests {
    private func feed(_ sequences: ClosedRange<UInt64>, limit: Int = 100) -> ChangeFeed {
        var feed = ChangeFeed(limit: limit)
        for number in sequences { feed.append(.save(ChangeSet(generation: number)), SaveSequence(number)) }
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

    @Test func `A full feed forgets the oldest steps only`() {
        let feed = feed(1...1000, limit: 10)
        #expect(feed.steps(after: SaveSequence(1), through: SaveSequence(1000)) == nil)
        #expect(generations(feed.steps(after: SaveSequence(990), through: SaveSequence(1000))) == Array(991...1000))
    }
}

@Suite struct CommittedNumbersTests {
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
