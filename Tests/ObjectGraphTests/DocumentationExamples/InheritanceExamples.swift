import ObjectGraph
import StoreInterface
import StoreModel

/// The examples of inheritance by names, compiled. The architecture tests compare both.
private enum InheritanceExamples {
    static func describing() -> [EntityDescription] {
        // Sources/ObjectGraph/ObjectGraph.docc/InheritingModels.md
        let trip = EntityDescription(name: "Trip", properties: [.attribute(.init(name: "name", type: .string))])
        let business = EntityDescription(
            name: "BusinessTrip", properties: [.attribute(.init(name: "perDiem", type: .double))], superentity: "Trip")
        // end
        return [trip, business]
    }

    static func fetching() -> EntityFetchRequest {
        // Sources/ObjectGraph/Fetching/Predicates/Condition.swift
        let costly = Condition.isKind(of: "BusinessTrip", where: .compare("perDiem", .greater, to: 100))
        let request = EntityFetchRequest("Trip", matching: .any([costly, .equal("name", "Home")]))
        // end
        return request
    }
}
