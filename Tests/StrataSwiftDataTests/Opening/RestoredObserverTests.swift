import Foundation
import ObjectGraph
import TestSupport
import Testing

@testable import StrataSwiftData

/// Observers of the history of a restored store.
@Suite(.timeLimit(.minutes(10))) struct RestoredObserverTests {
    private func save(_ number: String, _ container: ModelContainer) throws {
        let context = ModelContext(container)
        context.insert(Account(number))
        try context.save()
    }

    /// Waits until the file is closed, and restores and opens it.
    private func restore(_ file: TestFile, from backup: URL) async throws -> ModelContainer {
        let description = try file.configuration.storeDescription()
        try await until("the store's file is closed") {
            guard let copy = try? description.migration?.makeCopy() else { return false }
            copy.discard()
            return true
        }
        try await PersistentContainer.restore(description, from: backup)
        return try file.open(Account.self)
    }

    /// Catches: a reader that gets another save as the one of its token, because the position before it is of both copies.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S168: the saves from a token of the other branch on throw`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let backup = file.url.deletingLastPathComponent().appending(path: "backup")
            let original = try file.open(Account.self)
            try save("1", original)
            try await original.storage.container.coordinator.backup(to: backup)
            try save("2", original)
            let all = HistoryDescriptor<DefaultHistoryTransaction>()
            let tokens = try ModelContext(original).fetchHistory(all).map(\.token)
            try #require(tokens.count == 2)
            let (shared, token) = (tokens[0], tokens[1])
            try await original.close()
            let restored = try await restore(file, from: backup)
            try save("other", restored)
            let context = ModelContext(restored)
            #expect(throws: SwiftDataError.historyTokenExpired) {
                try context.fetchHistory(HistoryDescriptor(predicate: #Predicate { $0.token >= token }))
            }
            let (last, through, isFirst): (DefaultHistoryToken?, PartialRangeThrough<DefaultHistoryToken>, Bool) =
                (token, ...token, false)
            let ofOther: [Predicate<DefaultHistoryTransaction>] = [
                #Predicate { save in if let last { save.token > last } else { true } }, #Predicate { through.contains($0.token) },
                #Predicate { isFirst ? true : $0.token <= token }, #Predicate { tokens.contains($0.token) },
            ]
            for predicate in ofOther {
                let descriptor = HistoryDescriptor(predicate: predicate)
                #expect(throws: SwiftDataError.historyTokenExpired, "\(predicate)") { try context.fetchHistory(descriptor) }
                #expect(throws: SwiftDataError.historyTokenExpired, "\(predicate)") { try context.deleteHistory(descriptor) }
            }
            // The save before the backup is of both copies.
            let later = try context.fetchHistory(HistoryDescriptor(predicate: #Predicate { $0.token > shared }))
            #expect(later.count == 1)
            try await restored.close()
        }
    }

    /// Catches: an observer that waits for the next save, because a token from after the backup is of an incarnation of both copies.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S168: a history observer with a token from after the backup counts once in the restored store`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let backup = file.url.deletingLastPathComponent().appending(path: "backup")
            let original = try file.open(Account.self)
            try save("1", original)
            try await original.storage.container.coordinator.backup(to: backup)
            for number in ["2", "3"] { try save(number, original) }
            let earlier = try HistoryObserver(modelContainer: original, isolation: nil)
            earlier.queue.sync {}
            let tokens = earlier.historyTokens
            try await original.close()

            let restored = try await restore(file, from: backup)
            let observer = try HistoryObserver(historyTokens: tokens, modelContainer: restored, isolation: nil)
            try await until("the observer counts the restored history") { observer.eventCounter > 0 }
            observer.queue.sync {}
            #expect(observer.eventCounter == 1)
            try save("4", restored)
            try await until("the observer counts a save of the restored store") { observer.eventCounter > 1 }
            observer.queue.sync {}
            #expect(observer.eventCounter == 2)
            try await restored.close()
        }
    }
}
