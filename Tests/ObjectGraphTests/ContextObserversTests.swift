import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct ContextObserversTests {
    private static let notice = ContextNotice(kind: .didSave, contextName: "context", changes: ChangeSet(), refreshed: [])

    @Test func noticesReachObserversInTheOrderInWhichTheyWereAdded() {
        var observers = ContextObservers()
        var calls: [Int] = []
        let tokens = (0..<20).map { number in observers.add { _ in calls.append(number) } }
        observers.post(Self.notice)
        #expect(calls == Array(0..<20))
        calls = []
        for number in stride(from: 0, to: 20, by: 2) { observers.remove(tokens[number]) }
        observers.post(Self.notice)
        #expect(calls == Array(stride(from: 1, to: 20, by: 2)))
        #expect(Set(tokens).count == 20)
    }

    @Test func changesAreRecordedWhileSomebodyIsNotified() {
        var observers = ContextObservers()
        let before = observers.needChanges
        let token = observers.add { _ in }
        let during = (observers.needChanges, observers.hasNotices)
        observers.remove(token)
        #expect(!before)
        #expect(during == (true, true))
        #expect(!observers.needChanges)
    }

    /// Catches: a sequence of notices that waits forever after its container was closed.
    @Test func closingEndsSequencesAndKeepsOtherObserversOfNotices() async {
        var observers = ContextObservers()
        var calls = 0
        _ = observers.add { _ in calls += 1 }
        let (stream, continuation) = AsyncStream<ContextNotice>.makeStream()
        let token = observers.add { continuation.yield($0) }
        observers.setStream(continuation, for: token)
        observers.post(Self.notice)
        let closed = observers.close()
        observers.post(Self.notice)
        var received = 0
        for await _ in stream { received += 1 }
        #expect(closed.views.isEmpty && closed.sources.isEmpty)
        #expect((calls, received) == (2, 1))
        #expect(observers.hasNotices)
    }
}
