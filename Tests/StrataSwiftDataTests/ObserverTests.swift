import Observation
import Platform
import StoreModel
import Testing

@testable import StrataSwiftData

/// Waits until a condition on observed values holds. On an actor, returns at the first announced change after which it does.
///
/// Without an actor, only reads the condition again and again. A change is announced before it happens, and on another thread: an
/// observation that begins in between would wait for a change that has been announced already.
private func until(isolation: isolated (any Actor)? = #isolation, _ condition: () -> Bool) async {
    while !Task.isCancelled {
        let (changes, continuation) = AsyncStream<Void>.makeStream()
        let holds = withObservationTracking {
            condition()
        } onChange: {
            continuation.yield()
        }
        if holds { return }
        if isolation != nil { for await _ in changes { break } }
        // `onChange` is called before the value changes.
        await Task.yield()
    }
}

@Model private final class Film {
    var title: String
    var genre: String?
    init(_ title: String, genre: String? = nil) {
        self.title = title
        self.genre = genre
    }
}

@Suite struct ObserverTests {
    private typealias Observer = ResultsObserver<Film, Never>

    private func save(_ titles: [String], _ container: ModelContainer, author: String? = nil) throws {
        let context = ModelContext(container)
        context.author = author
        for title in titles { context.insert(Film(title)) }
        try context.save()
    }

    @Test @MainActor func `an observer of the main context shows unsaved changes and saves of other contexts`() async throws {
        let container = try inMemory(Film.self)
        let context = container.mainContext
        context.autosaveEnabled = false
        let observer = try Observer(sortBy: [SortDescriptor(\.title)], modelContext: context)
        #expect(observer.results.isEmpty && observer.sections == nil && observer.modelContext == context)
        try save(["b"], container)
        #expect(observer.results.map(\.title) == ["b"])
        context.insert(Film("a"))
        await until { observer.results.count == 2 }
        #expect(observer.results.map(\.title) == ["a", "b"])
        let old = observer.results
        try save(["c"], container)
        await until { observer.results.count == 3 }
        #expect(old.map(\.title) == ["a", "b"], "a collection that was read before does not change")
        context.rollback()
        #expect(observer.results.map(\.title) == ["b", "c"])
    }

    @Test @MainActor func `an observer shows unsaved changes although its description leaves them out`() throws {
        let container = try inMemory(Film.self)
        let context = container.mainContext
        context.autosaveEnabled = false
        context.insert(Film("a"))
        var description = FetchDescriptor<Film>()
        description.includePendingChanges = false
        let observer = try Observer(fetchDescriptor: description, modelContext: context)
        #expect(observer.results.map(\.title) == ["a"])
    }

    /// Catches: missing notices about models whose context has no executor.
    @Test(arguments: TestStore.allCases)
    func `S146: a model of a context on no actor notifies once of a change, a rollback and a merge`(_ store: TestStore)
        async throws
    {
        try await store.use(Film.self) { container in
            try save(["a"], container)
            let context = ModelContext(container)
            context.autosaveEnabled = false
            let film = try #require(try context.fetch(FetchDescriptor<Film>()).first)
            let notices = Mutex(0)
            func titleAndNotices() -> String {
                let title = withObservationTracking {
                    film.title
                } onChange: {
                    notices.withLock { $0 += 1 }
                }
                return "\(title) \(notices.withLock { $0 })"
            }
            #expect(titleAndNotices() == "a 0")
            film.title = "b"
            film.title = "c"
            #expect(titleAndNotices() == "c 1")
            context.rollback()
            #expect(titleAndNotices() == "a 2")
            let other = ModelContext(container)
            try #require(try other.fetch(FetchDescriptor<Film>()).first).title = "d"
            try other.save()
            #expect(try context.fetchCount(FetchDescriptor<Film>()) == 1)
            #expect(titleAndNotices() == "d 3")
        }
    }

    /// Runs `note` inside the first notification of a film's title.
    @MainActor private func onChange(of film: Film, _ note: @escaping @MainActor () throws -> Void) {
        withObservationTracking {
            _ = film.title
        } onChange: {
            MainActor.assumeIsolated {
                do { try note() } catch { Issue.record(error) }
            }
        }
    }

    /// Catches: a merge that moves the main context back to the state before its observer's save.
    @Test(arguments: TestStore.allCases)
    @MainActor func `S031, S068: the main context shows what an observer has saved while it merges`(_ store: TestStore)
        async throws
    {
        try await store.useOnMain(Film.self) { container in
            let main = container.mainContext
            main.autosaveEnabled = false
            let (first, second) = (Film("b"), Film("d"))
            for film in [first, second] { main.insert(film) }
            try main.save()
            let observer = try Observer(sortBy: [SortDescriptor(\.title)], modelContext: main)
            second.title = "a: mine"
            onChange(of: first) { try main.save() }
            let other = ModelContext(container)
            let films = try other.fetch(FetchDescriptor<Film>())
            for film in films where film.title == "b" { film.title = "c: other" }
            try other.save()
            #expect(observer.results.map(\.title) == ["a: mine", "c: other"])
            #expect(first.title == "c: other" && second.title == "a: mine" && !main.hasChanges)
        }
    }

    @Test func `an observer in an actor tells of unsaved changes and of saves of other contexts`() async throws {
        let container = try inMemory(Film.self)
        let watcher = try Watcher(container)
        async let titles = watcher.titles(atLeast: 3)
        await watcher.insert("a")
        try save(["b", "c"], container)
        #expect(try await titles == ["a", "b", "c"])
    }

    /// An actor with an observer of a context that only it uses.
    private actor Watcher {
        private let context: ModelContext
        private var observer: Observer?
        private var history: HistoryObserver?

        init(_ container: ModelContainer) throws { context = ModelContext(container) }

        func insert(_ title: String) {
            context.insert(Film(title))
            // Without unsaved changes, the context shows newer saves.
            try? context.save()
        }

        func observeHistory() throws { history = try HistoryObserver(modelContainer: context.container) }

        func titles(atLeast count: Int) async throws -> [String] {
            let observer = try Observer(sortBy: [SortDescriptor(\.title)], modelContext: context)
            self.observer = observer
            await until { observer.results.count >= count }
            return observer.results.map(\.title)
        }
    }

    @Test(.timeLimit(.minutes(10))) func `an actor that owns observers is released`() async throws {
        let container = try inMemory(Film.self)
        let released = try await {
            let watcher = try Watcher(container)
            await watcher.insert("a")
            _ = try await watcher.titles(atLeast: 1)
            try await watcher.observeHistory()
            try save(["b"], container)
            return { [weak watcher] in watcher == nil }
        }()
        while !released() { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test(arguments: TestStore.allCases)
    func `an observer outside of every actor shows the saves so far when it is read`(_ store: TestStore) async throws {
        try await store.use(Film.self) { container in
            let observer = try ResultsObserver<Film, Never>(
                filterBy: #Predicate { $0.title != "x" }, modelContainer: container, isolation: nil)
            for title in ["a", "x", "b"] { try save([title], container) }
            #expect(observer.results.map(\.title) == ["a", "b"])
            try ModelContext(container).delete(model: Film.self)
            #expect(observer.results.isEmpty)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `an observer groups its objects in sections`(_ store: TestStore) async throws {
        try await store.use(Film.self) { container in
            let context = ModelContext(container)
            for (title, genre) in [("d", "war"), ("c", "art"), ("b", nil), ("a", "war")] {
                context.insert(Film(title, genre: genre))
            }
            let observer = try ResultsObserver<Film, String>(
                sortBy: [SortDescriptor(\.title)], sectionBy: \.genre, modelContext: context, isolation: nil)
            let sections = try #require(observer.sections)
            #expect(sections.sectionTitles == ["", "art", "war"] && sections.count == 3)
            #expect(sections[sectionTitle: "war"]?.map(\.title) == ["a", "d"] && sections[sectionTitle: "none"] == nil)
            #expect(sections.map(\.id) == sections.sectionTitles)
        }
    }

    @Test func `a predicate or a sort that the store cannot evaluate throws`() throws {
        let context = ModelContext(try inMemory(Film.self))
        #expect(throws: SwiftDataError.unsupportedSortDescriptor) {
            try ResultsObserver<Film, Never>(sortBy: [SortDescriptor(\.title.count)], modelContext: context, isolation: nil)
        }
        #expect {
            try ResultsObserver<Film, String>(sectionBy: \.title.description, modelContext: context, isolation: nil)
        } throws: { error in
            SwiftDataError.unsupportedSortDescriptor ~= error && "\(error)".contains("title is no stored property")
        }
        let exams = ModelContext(try inMemory(Exam.self))
        #expect {
            try ResultsObserver<Exam, Never>(sortBy: [SortDescriptor(\.grade)], modelContext: exams, isolation: nil)
        } throws: { error in
            SwiftDataError.unsupportedSortDescriptor ~= error && "\(error)".contains("stored values have another order")
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: ModelConfiguration.Store.allCases)
    func `a history observer counts saves of its models and authors only`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Film.self, Account.self)
            let all = try HistoryObserver(modelContainer: container, isolation: nil)
            let films = try HistoryObserver(
                observedModels: [Film.self], authors: ["importer"], modelContainer: container, isolation: nil)
            #expect(all.eventCounter == 0 && films.observedModels.count == 1)
            let start = try #require(films.historyTokens.values.first as? DefaultHistoryToken)
            let (moves, continuation) = AsyncStream<Void>.makeStream()
            withObservationTracking {
                _ = films.historyTokens
            } onChange: {
                continuation.finish()
            }
            do {
                let context = ModelContext(container)
                context.insert(Account("1"))
                try context.save()
            }
            try save(["a"], container, author: "somebody else")
            await until { all.eventCounter > 0 }
            // The tokens of irrelevant saves move on without an event.
            for await _ in moves {}
            while films.historyTokens.values.first as? DefaultHistoryToken == start { await Task.yield() }
            #expect(films.eventCounter == 0)
            try save(["b"], container, author: "importer")
            await until { films.eventCounter > 0 }
            #expect(films.eventCounter == 1)
            let late = try HistoryObserver(
                historyTokens: [try #require(films.historyTokens.keys.first): start], observedModels: [Account.self],
                modelContainer: container, isolation: nil)
            await until { late.eventCounter > 0 }
            try await container.close()
        }
    }

    /// Returns when an observer has done the readings that were scheduled before.
    private func finishReadings(of observer: HistoryObserver) { observer.queue.sync {} }

    /// Catches: a save that is counted by the reading during which it comes, and again by the next one, which begins before it.
    @Test(.timeLimit(.minutes(10))) func `a history observer counts no save twice that comes while it reads`() async throws {
        let container = try inMemory(Film.self)
        let observer = try HistoryObserver(authors: ["importer"], modelContainer: container, isolation: nil)
        finishReadings(of: observer)
        for round in 1...3 {
            // The reading that the save below begins has chosen its end when this save comes.
            observer.duringNextReading {
                do {
                    try save(["\(round)"], container, author: "importer")
                    // Only a save that is written is in the history. This writes it.
                    _ = try ModelContext(container).fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
                } catch {
                    Issue.record(error)
                }
            }
            try save(["x"], container, author: "somebody else")
            await until { observer.eventCounter >= round }
            // The reading that the importer's save has begun comes after the one during which it came.
            finishReadings(of: observer)
            #expect(observer.eventCounter == round)
        }
    }

    /// Catches: saves that are not counted, because a restored store has fewer saves than the store that made the token.
    @Test(.timeLimit(.minutes(10)), arguments: ModelConfiguration.Store.allCases)
    func `S168: a history observer with a token of another copy counts once, and then the saves of this copy`(
        _ store: ModelConfiguration.Store
    ) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Film.self)
            try save(["a"], container)
            let first = try HistoryObserver(modelContainer: container, isolation: nil)
            let (store, own) = try #require(first.historyTokens.first)
            let coded = try JSONEncoder().encode(try #require(own as? DefaultHistoryToken))
            // As after a restore: the other copy has made 7 more saves.
            var text = String(decoding: coded, as: UTF8.self)
            text.replace(#/"incarnation":"[^"]*"/#, with: "\"incarnation\":\"\(UUID().uuidString)\"")
            text.replace(#/"generation":[0-9]+/#, with: "\"generation\":8")
            let foreign = try JSONDecoder().decode(DefaultHistoryToken.self, from: Data(text.utf8))
            #expect(foreign != (own as? DefaultHistoryToken))
            let observer = try HistoryObserver(historyTokens: [store: foreign], modelContainer: container, isolation: nil)
            await until { observer.eventCounter > 0 }
            await until { observer.historyTokens[store] as? DefaultHistoryToken == own as? DefaultHistoryToken }
            try save(["b"], container)
            await until { observer.eventCounter > 1 }
            try await container.close()
        }
    }

    /// Catches: an observer that forgets a save, because reading the history has failed once.
    @Test func `a history observer counts a save whose first reading fails`() async throws {
        let container = try inMemory(Film.self)
        let observer = try HistoryObserver(modelContainer: container, isolation: nil)
        observer.queue.sync {}
        observer.duringNextReading { throw StoreError(.readersFull, "too many readers. Close one") }
        try save(["a"], container)
        await until { observer.eventCounter == 1 }
        try await container.close()
    }

    @Test @MainActor func `a history observer counts on the actor that made it`() async throws {
        let container = try inMemory(Film.self)
        let observer = try HistoryObserver(modelContainer: container)
        let (counted, continuation) = AsyncStream<Void>.makeStream()
        withObservationTracking {
            _ = observer.eventCounter
        } onChange: {
            MainActor.assertIsolated()
            continuation.yield()
        }
        try save(["a"], container)
        #expect(observer.eventCounter == 0, "the actor was not free yet")
        for await _ in counted { break }
        await until { observer.eventCounter == 1 }
    }
}
