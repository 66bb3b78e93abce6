import StoreModel
import Testing

@testable import ObjectGraph
@testable import StrataSwiftData

/// Readers of the history in a container of which a deferred save could not be written.
@Suite struct LeftOutSavesTests {
    private struct Refused: Error {}

    /// Adds a save to those that the program's next flush reports, as a flush does that cannot write it.
    private func leaveOut(_ name: String, in container: ModelContainer) {
        container.storage.container.coordinator.writer.shared.withLock { shared in
            let flush = DeferredSaves.Flush(state: shared.state, pending: [])
            var written = DeferredSaves.Written(base: shared.state.base, committed: shared.state.committed)
            written.failures = [DeferredSaveFailure(metadata: SaveMetadata(contextName: name), error: Refused())]
            shared.deferred.endFlush(flush, written)
        }
    }

    /// Catches: a program that learns of no lost save, because a reader of the history has taken the only report.
    @Test(arguments: TestStore.allCases)
    func `S067: readers of the history leave the report of a lost save to the program's next flush`(_ store: TestStore)
        async throws
    {
        try await store.use(ToDo.self) { container in
            let context = ModelContext(container)
            leaveOut("lost", in: container)
            let saves = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            #expect(saves.isEmpty)
            try context.deleteHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            let observer = try HistoryObserver(modelContainer: container, isolation: nil)
            let error = await #expect(throws: SaveError.self) { try await container.flush() }
            guard case .deferredSavesFailed(let failures)? = error else {
                Issue.record("another error: \(String(describing: error))")
                return
            }
            #expect(failures.map(\.metadata.contextName) == ["lost"])
            try await container.flush()
            withExtendedLifetime(observer) {}
        }
    }
}
