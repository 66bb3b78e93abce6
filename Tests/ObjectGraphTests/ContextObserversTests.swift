import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct ContextObserversTests {
    private static let notice = ContextNotice(kind: .didSave, contextName: "context", changes: ChangeSet(), refreshed: [])

    private static func post(in observers: inout ContextObservers) {
        observers.post(notice)
        while let call = observers.nextCall() { call() }
    }

    @Test func noticesReachObserversInTheOrderInWhichTheyWereAdded() {
        var observers = ContextObservers()
        var calls: [Int] = []
        let tokens = (0..<20).map { number in observers.add { _ in calls.append(number) } }
        Self.post(in: &observers)
        #expect(calls == Array(0..<20))
        calls = []
        for number in stride(from: 0, to: 20, by: 2) { _ = observers.remove(tokens[number]) }
        Self.post(in: &observers)
        #expect(calls == Array(stride(from: 1, to: 20, by: 2)))
        #expect(Set(tokens).count == 20)
    }

    /// Catches: a notice that overtakes the one in which it was made, and the call of an observer that was removed meanwhile.
    @Test func observersReceiveNoticesInOrderAlsoIfOneMakesAnother() {
        final class Box { var observers = ContextObservers() }
        let box = Box()
        // The first observer has captured the box.
        defer { box.observers = ContextObservers() }
        func post(_ name: String) {
            box.observers.post(ContextNotice(kind: .didSave, contextName: name, changes: ChangeSet(), refreshed: []))
            while let call = box.observers.nextCall() { call() }
        }
        var calls: [String] = []
        var third: UInt64 = 0
        _ = box.observers.add { notice in
            calls.append("1 \(notice.contextName)")
            guard notice.contextName == "a" else { return }
            _ = box.observers.remove(third)
            post("b")
        }
        _ = box.observers.add { calls.append("2 \($0.contextName)") }
        third = box.observers.add { calls.append("3 \($0.contextName)") }
        post("a")
        #expect(calls == ["1 a", "2 a", "1 b", "2 b"])
    }

    @Test func changesAreRecordedWhileSomebodyIsNotified() {
        var observers = ContextObservers()
        let before = observers.needChanges
        let token = observers.add { _ in }
        let during = (observers.needChanges, observers.hasNotices)
        _ = observers.remove(token)
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
        Self.post(in: &observers)
        let closed = observers.close()
        Self.post(in: &observers)
        var received = 0
        for await _ in stream { received += 1 }
        #expect(closed.views.isEmpty && closed.sources.isEmpty)
        #expect((calls, received) == (2, 1))
        #expect(observers.hasNotices)
    }
}
