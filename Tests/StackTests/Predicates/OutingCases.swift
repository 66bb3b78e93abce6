import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// A model with a subclass, for the rows of the table in Docs/Predicates.md that test classes.
class Outing: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var days: Int { Int(managedObject["days"]) ?? 0 }

    required init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    class var entityDescription: EntityDescription {
        EntityDescription(name: "Outing", properties: [.attribute(AttributeDescription("days", of: \Outing.days))])
    }

    class var columnsByKeyPath: [AnyKeyPath: String] { [\Outing.days: "days"] }
}

final class PaidOuting: Outing, Sellable {
    var price: Int { Int(managedObject["price"]) ?? 0 }

    override class var entityDescription: EntityDescription {
        EntityDescription(
            name: "PaidOuting", properties: [.attribute(AttributeDescription("price", of: \PaidOuting.price))],
            superentity: "Outing")
    }

    override class var columnsByKeyPath: [AnyKeyPath: String] { [\PaidOuting.days: "days", \PaidOuting.price: "price"] }
}

/// A protocol, which is no model.
protocol Sellable {}

/// The predicates of the table that test the class of an object. Each is written as in the table.
enum OutingCases {
    static var all: [PredicateCase<Outing>] {
        let limit = 3
        return [
            .init("$0 is PaidOuting", .store, #Predicate { $0 is PaidOuting }),
            .init("!($0 is PaidOuting) && $0.days > limit", .store, #Predicate { !($0 is PaidOuting) && $0.days > limit }),
            .init("($0 as? PaidOuting) == nil", .store, #Predicate { ($0 as? PaidOuting) == nil }),
            .init("($0 as? PaidOuting)?.price == nil", .store, #Predicate { ($0 as? PaidOuting)?.price == nil }),
            .init("($0 as? PaidOuting)?.price ?? 0 > limit", .store, #Predicate { ($0 as? PaidOuting)?.price ?? 0 > limit }),
            .init(
                "(($0 as? PaidOuting)?.price ?? 0) % 2 == 1", .memory,
                #Predicate {
                    (($0 as? PaidOuting)?.price ?? 0) % 2 == 1
                }),
            .init(
                "$0 is PaidOuting && ($0 as! PaidOuting).price > limit", .store,
                #Predicate {
                    $0 is PaidOuting && ($0 as! PaidOuting).price > limit
                }),
            .init("$0 is any Sellable", .no, #Predicate { $0 is any Sellable }),
        ]
    }
}
