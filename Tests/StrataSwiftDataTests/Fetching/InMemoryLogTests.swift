import Logging
import StrataSwiftData
import Synchronization
import TestSupport
import Testing

/// The log of what the store cannot answer.
@Suite struct InMemoryLogTests {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    /// Catches: a program that evaluates in memory without a word, or that logs it at each fetch.
    @Test func `each predicate and sort that is evaluated in memory is logged once`() async {
        // A process has one handler for all loggers. The test sets it in another process than the other tests.
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { line in lines.all.withLock { $0.append(line) } } }
            let context = ModelContext(try inMemory(ToDoList.self))
            context.insert(ToDo("a"))
            func count(_ text: String) -> Int { lines.all.withLock { $0.count { $0.contains(text) } } }
            for name in ["A", "B"] {
                _ = try context.fetch(FetchDescriptor<ToDo>(predicate: #Predicate { $0.shout == name }))
            }
            try #require(count("a predicate of ToDo is evaluated in memory") == 1)
            _ = try context.fetch(FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.title)]))
            try #require(count("a sort of ToDo") == 0)
            for order in [SortOrder.forward, .reverse] {
                _ = try context.fetch(FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.list?.name, order: order)]))
            }
            try #require(count("a sort of ToDo is made in memory") == 1)
            _ = try context.fetch(FetchDescriptor<ToDo>(sortBy: [SortDescriptor(\.shout)]))
            try #require(count("a sort of ToDo is made in memory") == 2, "another sort is logged, too")
        }
    }
}
