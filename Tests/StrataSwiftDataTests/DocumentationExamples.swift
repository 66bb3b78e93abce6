import Observation
import StrataSwiftData
import Testing

// Copies of the examples in the documentation, which compile.

// Sources/StrataSwiftData/Models/Macros.swift
@Model final class Trip {
    @Attribute(.unique) var name: String
    var start = Date.now
    @Relationship(deleteRule: .cascade, inverse: \Stop.trip) var stops: [Stop] = []

    init(name: String) { self.name = name }
}

@Model final class Stop {
    var place: String
    var trip: Trip?

    init(place: String) { self.place = place }
}
// end

// Sources/StrataSwiftData/Contexts/ModelActor.swift
@ModelActor actor Importer {
    func add(_ names: [String]) throws {
        for name in names { modelContext.insert(Trip(name: name)) }
        try modelContext.save()
    }
}
// end

// Sources/StrataSwiftData/Schema/VersionedSchema.swift
enum TripsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Trip.self] }

    @Model final class Trip {
        var name: String
        init(name: String) { self.name = name }
    }
}
// end

enum TripsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Trip.self] }

    @Model final class Trip {
        var name: String
        init(name: String) { self.name = name }
    }
}

// Sources/StrataSwiftData/Schema/VersionedSchema.swift
enum TripsPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [TripsV1.self, TripsV2.self] }
    static var stages: [MigrationStage] { [.lightweight(fromVersion: TripsV1.self, toVersion: TripsV2.self)] }
}
// end

@Suite struct DocumentationExamples {
    @Test @MainActor func `the examples run`() async throws {
        let container = try inMemory(Trip.self)
        try main(container)
        try other(container, now: .distantPast)
        try await Importer(modelContainer: container).add(["Turku"])
        #expect(try ModelContext(container).fetchCount(FetchDescriptor<Trip>()) == 3)
        #expect(Schema(versionedSchema: TripsV1.self).entities.map(\.name) == ["Trip"])
    }

    @MainActor private func main(_ container: ModelContainer) throws {
        container.mainContext.insert(Trip(name: "Bergen"))
        try container.mainContext.save()
    }

    #if !canImport(SwiftData)
        @Test func `the example of names with the module runs`() throws {
            // Sources/StrataSwiftData/Models/SwiftData.swift
            let schema = SwiftData.Schema([Trip.self])
            let configuration = SwiftData.ModelConfiguration(schema: schema, isStoredInMemoryOnly: true)
            let trips = try SwiftData.ModelContainer(for: schema, configurations: configuration)
            // end
            #expect(trips.schema == schema)
        }
    #endif

    @Test func `the example of the module runs`() async throws {
        try await TestFile.use { file in try await Self.opening(file.url) }
    }

    @MainActor private static func opening(_ file: URL) async throws {
        // Sources/StrataSwiftData/StrataSwiftData.docc/StrataSwiftData.md
        let container = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(url: file))
        let context = container.mainContext
        context.insert(Trip(name: "Bergen"))
        try context.save()
        for trip in try context.fetch(FetchDescriptor<Trip>(sortBy: [SortDescriptor(\.name)])) { print(trip.name) }
        try await container.flush()
        // end
        try await container.close()
    }

    private func other(_ container: ModelContainer, now: Date) throws {
        // Sources/StrataSwiftData/Contexts/ModelContext.swift
        let context = ModelContext(container)
        context.insert(Trip(name: "Oslo"))
        try context.save()
        // end
        // Sources/StrataSwiftData/Fetching/FetchDescriptor.swift
        var upcoming = FetchDescriptor<Trip>(
            predicate: #Predicate { $0.start > now }, sortBy: [SortDescriptor(\.start)])
        upcoming.fetchLimit = 10
        let trips = try context.fetch(upcoming)
        // end
        #expect(trips.map(\.name) == ["Bergen", "Oslo"])
        try observing(context, container, now: now)
    }

    private func observing(_ context: ModelContext, _ container: ModelContainer, now: Date) throws {
        func show(_ trips: FetchResultsCollection<Trip>) { #expect(trips.count == 2) }
        @Sendable func scheduleRedraw() {}
        @Sendable func fetchNewSaves() {}
        do {
            // Sources/StrataSwiftData/Observing/ResultsObserver.swift
            let observer = try ResultsObserver<Trip, Never>(
                filterBy: #Predicate { $0.start > now }, sortBy: [SortDescriptor(\.start)], modelContext: context)
            withObservationTracking {
                show(observer.results)
            } onChange: {
                scheduleRedraw()
            }
            // end
        }
        do {
            // Sources/StrataSwiftData/Observing/HistoryObserver.swift
            let observer = try HistoryObserver(observedModels: [Trip.self], modelContainer: container)
            withObservationTracking {
                print("saves were seen \(observer.eventCounter) times")
            } onChange: {
                fetchNewSaves()
            }
            // end
        }
        let observer = try ResultsObserver<Trip, String>(sectionBy: \.name, modelContext: context)
        // Sources/StrataSwiftData/Observing/SectionedResults.swift
        for section in observer.sections ?? SectionedResults() {
            print(section.title, section.count)
        }
        // end
    }

    /// Compiled only, because it opens the default file.
    @MainActor private func opening() throws {
        // Sources/StrataSwiftData/Containers/ModelContainer.swift
        let container = try ModelContainer(for: Trip.self)
        container.mainContext.insert(Trip(name: "Bergen"))
        try container.mainContext.save()
        // end
        // Sources/StrataSwiftData/Containers/ModelContainer.swift
        container.logFetches(slowerThan: .milliseconds(50))
        // end
    }

    @Test func `the examples of identifiers and the history run`() throws {
        let container = try inMemory(Trip.self)
        let context = ModelContext(container)
        let trip = Trip(name: "Bergen")
        context.insert(trip)
        try context.save()
        // Sources/StrataSwiftData/Models/PersistentIdentifier.swift
        let id = trip.persistentModelID  // for another context
        if let same = context.model(for: id) as? Trip { print(same.name) }
        // end
        // Sources/StrataSwiftData/Fetching/FetchResultsCollection.swift
        let trips = try context.fetch(FetchDescriptor<Trip>(), batchSize: 100)
        for trip in trips { print(trip.name) }
        // end
        context.delete(trip)
        try context.save()
        try history(context, after: nil)
        #expect(trips.endIndex == 1)
    }

    private func history(_ context: ModelContext, after last: DefaultHistoryToken?) throws {
        // Sources/StrataSwiftData/History/History.swift
        var newer = HistoryDescriptor<DefaultHistoryTransaction>()
        if let last { newer.predicate = #Predicate { $0.token > last } }
        let saves = try context.fetchHistory(newer)
        // end
        for save in saves {
            // Sources/StrataSwiftData/History/History.swift
            for change in save.changes {
                if case .insert = change { print(change.changedPersistentIdentifier) }
            }
            // end
            // Sources/StrataSwiftData/History/DefaultHistory.swift
            for case .delete(let deletion as DefaultHistoryDelete<Trip>) in save.changes {
                print(deletion.tombstone[\.name] ?? "a trip without a kept name")
            }
            // end
        }
        #expect(saves.count == 2)
        try printing(context, newer)
    }

    private func printing(_ context: ModelContext, _ newer: HistoryDescriptor<DefaultHistoryTransaction>) throws {
        // Sources/StrataSwiftData/History/DefaultHistory.swift
        for save in try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()) {
            print(save.timestamp, save.author ?? "unknown", save.changes.count)
        }
        // end
        var saves: [DefaultHistoryTransaction] = []
        // Sources/StrataSwiftData/SwiftDataError.swift
        do {
            saves = try context.fetchHistory(newer)
        } catch SwiftDataError.historyTokenExpired {
            saves = []  // then fetch the objects again
        }
        // end
        #expect(saves.count == 2)
    }

    /// Compiled only.
    private func storing(_ context: ModelContext, _ file: URL) throws {
        // Sources/StrataSwiftData/History/DefaultHistory.swift
        let last = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token
        try JSONEncoder().encode(last).write(to: file)
        // end
        let observer = try ResultsObserver<Trip, String>(sectionBy: \.name, modelContext: context)
        // Sources/StrataSwiftData/Observing/SectionedResults.swift
        if let first = observer.sections?.first { print(first.title, first.map(\.name)) }
        // end
    }

    /// Compiled only.
    private func configuring(_ file: URL) throws {
        do {
            // Sources/StrataSwiftData/Containers/ModelConfiguration.swift
            let configuration = ModelConfiguration(url: file, allowsSave: false)
            let container = try ModelContainer(for: Trip.self, configurations: configuration)
            // end
            print(container)
        }
        do {
            // Sources/StrataSwiftData/Containers/ModelConfiguration.swift
            let configuration = ModelConfiguration(url: file, store: .sqlite)
            let container = try ModelContainer(for: Trip.self, configurations: configuration)
            // end
            print(container)
        }
        // Sources/StrataSwiftData/Schema/Schema.swift
        let schema = Schema([Trip.self])  // and Stop, to which trips have a relationship
        let container = try ModelContainer(for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        // end
        print(container)
        // Sources/StrataSwiftData/Schema/VersionedSchema.swift
        let names = MigrationStage.custom(
            fromVersion: TripsV1.self, toVersion: TripsV2.self, willMigrate: nil,
            didMigrate: { context in
                for trip in try context.fetch(FetchDescriptor<TripsV2.Trip>()) { trip.name = trip.name.uppercased() }
            })
        // end
        print(names)
    }
}
