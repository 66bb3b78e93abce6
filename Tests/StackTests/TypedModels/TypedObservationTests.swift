import ObjectGraph
import TestSupport
import Testing

/// Observation through accessors that the compiler chooses by the property's type.
@Suite @MainActor struct TypedObservationTests {
    private struct Fixture {
        let journey = Journeys.Journey()
        let stops = [Journeys.Stop("a"), Journeys.Stop("b")]
        let guide = Journeys.Guide("c")

        /// Inserts the objects and saves them.
        @MainActor init(in context: ManagedObjectContext) async throws {
            context.insert(journey)
            for stop in stops { context.insert(stop) }
            context.insert(guide)
            journey.start = stops[0]
            try await context.save(through: .store)
        }

        @MainActor var watches: [Watch] {
            [
                Watch { _ = journey.mood }, Watch { _ = journey.place }, Watch { _ = journey.start },
                Watch { _ = journey.stops }, Watch { _ = journey.guides },
            ]
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: setting a property of each kind notifies the observers of its typed accessor`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Journeys.model)
        let fixture = try await Fixture(in: container.mainContext)
        let journey = fixture.journey
        let watches = fixture.watches
        // The second time, the value is equal.
        for number in 0..<2 {
            journey.mood = .tired
            #expect(watches.map { $0.take() } == [1 - number, 0, 0, 0, 0])
            journey.place = Journeys.Place(city: "Oslo")
            #expect(watches.map { $0.take() } == [0, 1 - number, 0, 0, 0])
        }
        journey.start = fixture.stops[1]
        #expect(watches.map { $0.take() } == [0, 0, 1, 0, 0])
        journey.stops = fixture.stops
        #expect(watches.map { $0.take() } == [0, 0, 0, 1, 0])
        journey.guides = [fixture.guide]
        #expect(watches.map { $0.take() } == [0, 0, 0, 0, 1])
        // The other end notifies too.
        fixture.stops[0].journey = nil
        fixture.guide.journeys = []
        #expect(watches.map { $0.take() } == [0, 0, 0, 1, 1])
        #expect(journey.stops == [fixture.stops[1]] && journey.guides.isEmpty)
        journey.stops = nil
        journey.place = nil
        #expect(watches.map { $0.take() } == [0, 1, 0, 1, 0])
        #expect(journey.stops == [] && journey.place == nil && journey.start == fixture.stops[1])
        withExtendedLifetime(container) {}
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: a save of another context notifies the observers of each typed accessor once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Journeys.model)
        let fixture = try await Fixture(in: container.mainContext)
        let journey = fixture.journey
        let watches = fixture.watches
        let (id, stops, guide) = (journey.id, fixture.stops.map(\.id), fixture.guide.id)
        try await container.newBackgroundContext().perform(andSave: .durable) { context in
            let journey = context.object(Journeys.Journey.self, with: id)
            journey.mood = .tired
            journey.place = Journeys.Place(city: "Oslo")
            journey.start = context.object(Journeys.Stop.self, with: stops[1])
            journey.stops = stops.map { context.object(Journeys.Stop.self, with: $0) }
            journey.guides = [context.object(Journeys.Guide.self, with: guide)]
        }
        try await until("the main context shows the save") { journey.mood == .tired }
        #expect(watches.map(\.count) == [1, 1, 1, 1, 1])
        #expect(journey.start == fixture.stops[1] && journey.stops == fixture.stops && journey.guides == [fixture.guide])
        #expect(journey.place == Journeys.Place(city: "Oslo"))
        withExtendedLifetime(container) {}
    }
}
