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
    }
}
