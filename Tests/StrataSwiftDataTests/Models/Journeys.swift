import StrataSwiftData

/// Classes that inherit from each other, as in SwiftData since 2026.
@Model class Journey {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Leg.journey) var legs: [Leg] = []
    init(name: String) { self.name = name }
}

@Model class PaidJourney: Journey {
    var price: Double
    var tags: [String] = []
    init(name: String, price: Double) {
        self.price = price
        super.init(name: name)
    }
}

@Model final class Leg {
    var place: String
    var journey: Journey?
    init(place: String, journey: Journey? = nil) {
        self.place = place
        self.journey = journey
    }
}
