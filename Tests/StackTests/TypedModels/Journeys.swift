import ObjectGraph

/// Models with a property of each kind whose accessor the compiler chooses by its type.
enum Journeys {
    static let model: Model = {
        do {
            return try Model([Journey.self, Stop.self, Guide.self])
        } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    enum Mood: String, Codable { case calm, tired }

    struct Place: Codable, Equatable {
        var city: String
    }

    final class Journey: PersistentModel {
        private let anchor: ModelAnchor
        var managedObject: ManagedObject { anchor.object }

        var mood: Mood {
            get { managedObject.property(0) }
            set { managedObject.setProperty(0, to: newValue) }
        }
        var place: Place? {
            get { managedObject.property(1) }
            set { managedObject.setProperty(1, to: newValue) }
        }
        var start: Stop {
            get { managedObject.property(2, 0) }
            set { managedObject.setProperty(2, 0, to: newValue) }
        }
        var stops: [Stop]? {
            get { managedObject.property(3, 1) }
            set { managedObject.setProperty(3, 1, to: newValue) }
        }
        var guides: Set<Guide> {
            get { managedObject.property(3, 2) }
            set { managedObject.setProperty(3, 2, to: newValue) }
        }

        init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

        convenience init() {
            self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
        }

        /// The descriptions of the other classes need it before the description of this class exists.
        static let entityName = "Journey"
        static let entityDescription = EntityDescription(
            name: entityName,
            properties: [
                .property("mood", of: \Journey.mood, default: Mood.calm),
                .property("place", of: \Journey.place),
                .relationship(.init(name: "start", destination: "Stop", cardinality: .toOne)),
                .related("stops", of: \Journey.stops, inverse: "journey"),
                .related("guides", of: \Journey.guides, inverse: "journeys"),
            ])
        // Immutable: it is created once, and key paths do not change.
        nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
            \Journey.mood: "mood", \Journey.place: "place", \Journey.start: "start", \Journey.stops: "stops",
            \Journey.guides: "guides",
        ]
    }

    final class Stop: PersistentModel {
        private let anchor: ModelAnchor
        var managedObject: ManagedObject { anchor.object }

        var name: String {
            get { managedObject.property(0) }
            set { managedObject.setProperty(0, to: newValue) }
        }
        var journey: Journey? {
            get { managedObject.property(1, 0) }
            set { managedObject.setProperty(1, 0, to: newValue) }
        }

        init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

        convenience init(_ name: String) {
            self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
            self.name = name
        }

        /// The descriptions of the other classes need it before the description of this class exists.
        static let entityName = "Stop"
        static let entityDescription = EntityDescription(
            name: entityName,
            properties: [
                .property("name", of: \Stop.name), .related("journey", of: \Stop.journey, inverse: "stops"),
            ])
        // Immutable: it is created once, and key paths do not change.
        nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
            \Stop.name: "name", \Stop.journey: "journey",
        ]
    }

    final class Guide: PersistentModel {
        private let anchor: ModelAnchor
        var managedObject: ManagedObject { anchor.object }

        var name: String {
            get { managedObject.property(0) }
            set { managedObject.setProperty(0, to: newValue) }
        }
        var journeys: [Journey] {
            get { managedObject.property(1, 0) }
            set { managedObject.setProperty(1, 0, to: newValue) }
        }

        init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

        convenience init(_ name: String) {
            self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
            self.name = name
        }

        /// The descriptions of the other classes need it before the description of this class exists.
        static let entityName = "Guide"
        static let entityDescription = EntityDescription(
            name: entityName,
            properties: [
                .property("name", of: \Guide.name), .related("journeys", of: \Guide.journeys, inverse: "guides"),
            ])
        // Immutable: it is created once, and key paths do not change.
        nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
            \Guide.name: "name", \Guide.journeys: "journeys",
        ]
    }
}
