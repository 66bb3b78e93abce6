import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct DeferredSavesTests {
    private static let schema = StoreSchema(entities: [], links: [])

    private struct Failure: Error {}

    private static func save(_ number: UInt64) -> PendingSave {
        let layer = Layer(schema: schema)
        layer.seal()
        let terms = SaveTerms(rules: RelationshipRules(Music.model))
        return PendingSave(sequence: SaveSequence(number), changes: layer.changeSet(), terms: terms, layer: layer)
    }

    private static func state() throws -> StoreState {
        StoreState(base: try FaultyStore(schema: schema).snapshot(), sequence: .zero)
    }

    private static func written(_ state: StoreState) -> DeferredSaves.Written {
        DeferredSaves.Written(base: state.base, committed: state.committed)
    }

    private static func numbers(_ saves: DeferredSaves) -> [UInt64] { saves.pending.map(\.sequence.rawValue) }

    @Test func aFlushTakesAllSavesAndOnlyOneRunsAtATime() throws {
        let state = try Self.state()
        var saves = DeferredSaves()
        #expect(!saves.isOwed)
        let none = saves.beginFlush(of: state)
        saves.pending = [Self.save(1), Self.save(2)]
        let begunFirst = saves.beginFlush(of: state)
        let first = try #require(begunFirst)
        let second = saves.beginFlush(of: state)
        #expect(none == nil && second == nil)
        #expect(first.pending.count == 2)
        #expect(Self.numbers(saves) == [1, 2], "saves stay pending until they are written")
        #expect(saves.isOwed)
    }

    /// Catches: saves that are forgotten because they were accepted while others were being written.
    @Test func savesThatAFlushDidNotReachStayPendingBeforeNewerOnes() throws {
        let state = try Self.state()
        var saves = DeferredSaves()
        saves.pending = (1...3).map(Self.save)
        let begunFlush = saves.beginFlush(of: state)
        let flush = try #require(begunFlush)
        saves.pending.append(Self.save(4))
        var written = Self.written(state)
        written.rest = [flush.pending[2]]
        written.stop = Failure()
        saves.endFlush(flush, written)
        #expect(Self.numbers(saves) == [3, 4])
        #expect(saves.flushError is Failure)
        let begunAgain = saves.beginFlush(of: state)
        let again = try #require(begunAgain)
        saves.endFlush(again, Self.written(state))
        #expect(saves.pending.isEmpty)
        #expect(saves.flushError == nil)
        #expect(!saves.isOwed)
    }

    @Test func aFailedFlushLosesNoSave() throws {
        var saves = DeferredSaves()
        saves.pending = [Self.save(1)]
        _ = saves.beginFlush(of: try Self.state())
        saves.endFlush(failure: Failure())
        #expect(Self.numbers(saves) == [1])
        #expect(!saves.isFlushing)
        #expect(saves.flushError is Failure)
    }

    /// Catches: a later save that is written against values of one that never reached the file.
    @Test func savesAfterOneThatWasLeftOutAreCheckedAgainAgainstTheStateThatHadIt() throws {
        let state = try Self.state()
        var saves = DeferredSaves()
        saves.pending = [Self.save(1)]
        let begunFlush = saves.beginFlush(of: state)
        let flush = try #require(begunFlush)
        let lost = flush.pending[0]
        saves.pending.append(Self.save(2))
        var written = Self.written(state)
        written.failures = [DeferredSaveFailure(metadata: SaveMetadata(), error: Failure())]
        written.processed = [lost.layer]
        saves.endFlush(flush, written)
        #expect(saves.pending.count == 1)
        let accepted = try #require(saves.pending[0].accepted)
        #expect(accepted.deferred.count == 1 && accepted.deferred[0] === lost.layer)
        let (reported, again) = (saves.takeFailures().count, saves.takeFailures().count)
        #expect((reported, again) == (1, 0), "a failure is reported once")
    }

    @Test func theEarliestDeadlineCountsAndAFlushMeetsIt() throws {
        let (early, late) = (DispatchTime(uptimeNanoseconds: 10), DispatchTime(uptimeNanoseconds: 20))
        var saves = DeferredSaves()
        saves.pending = [Self.save(1)]
        let set = [saves.require(by: late), saves.require(by: early), saves.require(by: late)]
        #expect(set == [true, true, false])
        #expect(!saves.isDue(at: DispatchTime(uptimeNanoseconds: 9)))
        #expect(saves.isDue(at: early))
        let begunFlush = saves.beginFlush(of: try Self.state())
        let flush = try #require(begunFlush)
        #expect(saves.deadline == nil)
        _ = saves.require(by: early)
        #expect(!saves.isDue(at: late), "a flush is running")
        saves.endFlush(failure: Failure())
        #expect(saves.isDue(at: late))
        #expect(flush.pending.count == 1)
    }
}
