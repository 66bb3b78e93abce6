import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Contexts that are created while a container is being closed.
@Suite(.timeLimit(.minutes(10))) struct ClosingFailureTests {
    /// Catches: a context that closes itself because its container is being closed, which then fails.
    @Test func `a context that is created while closing fails can be used afterwards`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let context = container.newBatchOperationContext()
        await context.perform { _ = $0.makeTrack("a") }
        try await context.save(.deferred(within: .seconds(3600)))
        let diskFull = StoreError(.full, "the disk is full. Make room")
        let (isWriting, mayFail) = (Flag(), Flag())
        store.hold(.commit, isWriting, until: mayFail, error: diskFull)
        let closing = Task { try await container.close() }
        try await until("the saves are being written") { isWriting.wait(atMost: .zero) }
        let late = container.newBatchOperationContext(name: "late")
        await late.perform { _ = $0.makeTrack("b") }
        let confined = container.makeConfinedContext()
        mayFail.set()
        await #expect(throws: diskFull) { try await closing.value }
        store.fail(nil)
        try await late.save()
        #expect(try await late.perform { try $0.trackTitles() } == ["a", "b"])
        #expect(try confined.trackTitles() == ["a", "b"])
        try await container.close()
        await #expect(throws: StoreError.self) { try await late.perform { try $0.trackTitles() } }
    }

    /// Catches: a child that stays open, because it was created after closing listed the contexts.
    @Test(arguments: StoreKind.allCases)
    func `a child that is created while its parent waits to be closed is closed too`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (parent, other) = (container.newBatchOperationContext(), container.newBatchOperationContext())
        try await parent.perform(andSave: .durable) { _ = $0.makeTrack("a") }
        let (isBusy, isListed) = (Flag(), Flag())
        let working = Task {
            try await parent.perform { background, parent in
                isBusy.set()
                // Blocks the executor, so that the parent cannot be closed.
                let makeChild = {
                    #expect(isListed.wait(atMost: .seconds(600)))
                    return parent.newChild()
                }
                let child = makeChild()
                #expect(try child.trackTitles() == ["a"])
                try await until("the child is closed") {
                    // A closure that captures the isolated parameter runs on its executor.
                    _ = background
                    return child.phase.closure != nil
                }
                #expect(throws: StoreError.self) { try child.trackTitles() }
            }
        }
        try await until("the parent is busy") { isBusy.wait(atMost: .zero) }
        let closing = Task { try await container.close() }
        try await until("another context is closed") { await other.perform { $0.phase.closure != nil } }
        isListed.set()
        try await closing.value
        try await working.value
    }

    /// Catches: a position in the history after saves that are in no file.
    @Test func `S160: the history of a closed container ends before the saves that closing gave up`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let context = container.newBatchOperationContext()
        await context.perform { _ = $0.makeTrack("lost") }
        try await context.save(.deferred(within: .seconds(600)))
        let token = container.coordinator.currentHistoryToken
        store.fail { call, _ in call == .commit ? StoreError(.schemaTooNew, "the file is newer. Update the program") : nil }
        await #expect(throws: (any Error).self) { try await container.close() }
        #expect(container.coordinator.currentHistoryToken == token)
    }
}
