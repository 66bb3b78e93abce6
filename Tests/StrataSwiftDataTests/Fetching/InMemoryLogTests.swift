import Logging
import Platform
import StrataSwiftData
import TestSupport
import Testing

// Two models of one name.

private enum Flat {
    @Model final class Sheet {
        var width = 1
        init() {}
    }
}

private enum Round {
    @Model final class Sheet {
        var width = 1
        init() {}
    }
}

extension Flat.Sheet {
    fileprivate var area: Int { width * width }
}

extension Round.Sheet {
    fileprivate var area: Int { 3 * width * width }
}

extension ToDo {
    fileprivate var whisper: String { title.lowercased() }
}

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
            _ = try context.fetch(FetchDescriptor<ToDo>(predicate: #Predicate { $0.whisper == "a" }))
            try #require(count("a predicate of ToDo is evaluated in memory") == 2, "another property of this type is logged, too")
            _ = try context.fetch(FetchDescriptor<ToDo>(predicate: #Predicate { $0.whisper != "a" }))
            try #require(count("a predicate of ToDo is evaluated in memory") == 3, "another operator is logged, too")
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

    @Test func `a predicate is logged for each of two models of one name`() async {
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            LoggingSystem.bootstrap { _ in LineHandler { line in lines.all.withLock { $0.append(line) } } }
            func count() -> Int { lines.all.withLock { $0.count { $0.contains("a predicate of Sheet is evaluated in memory") } } }
            let flat = ModelContext(try inMemory(Flat.Sheet.self))
            _ = try flat.fetch(FetchDescriptor<Flat.Sheet>(predicate: #Predicate { $0.area == 1 }))
            try #require(count() == 1)
            let round = ModelContext(try inMemory(Round.Sheet.self))
            _ = try round.fetch(FetchDescriptor<Round.Sheet>(predicate: #Predicate { $0.area == 1 }))
            try #require(count() == 2)
        }
    }
}
