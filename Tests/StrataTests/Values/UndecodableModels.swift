import Foundation
import Strata

/// A model before and after its types changed, so that they cannot decode what older versions stored.
enum TripBefore {
    enum Mood: String, Codable { case calm, wild }
    struct Place: Codable { var name: String }

    @Model final class Trip {
        var name: String
        var places: [Place] = []
        var home: Place?
        var base: Place
        var mood: Mood = Mood.calm
        var nextMood: Mood?
    }
}

enum TripAfter {
    enum Mood: String, Codable, CaseIterable { case calm }
    struct Place: Codable, Equatable {
        var name: String
        var zip: String
    }

    @Model final class Trip {
        var name: String
        var places: [Place] = []
        var home: Place?
        var base: Place
        var mood: Mood = Mood.calm
        var nextMood: Mood?
    }
}
