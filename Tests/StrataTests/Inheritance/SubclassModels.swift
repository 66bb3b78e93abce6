import Foundation
import Strata

// Sources/ObjectGraph/ObjectGraph.docc/InheritingModels.md
@Model class Excursion {
    var name: String
    var days = 1
    @Relationship(inverse: \Tourist.excursions) var tourist: Tourist?

    init(name: String, days: Int = 1) {
        self.name = name
        self.days = days
    }
}

@Model final class BusinessExcursion: Excursion {
    var perDiem: Double
    var sponsor: Sponsor?

    init(name: String, perDiem: Double) {
        self.perDiem = perDiem
        super.init(name: name)
    }
}
// end

@Model final class Sponsor {
    var title: String
    var excursions: [BusinessExcursion]
}

@Model final class Tourist {
    var name: String
    @Relationship(deleteRule: .cascade) var excursions: [Excursion]
}

/// The condition of the article.
enum CostlyExcursions {
    static var predicate: Predicate<Excursion> {
        // Sources/ObjectGraph/ObjectGraph.docc/InheritingModels.md
        let costly = #Predicate<Excursion> { ($0 as? BusinessExcursion)?.perDiem ?? 0 > 100 }
        // end
        return costly
    }
}

/// Shapes of subclasses.
enum SubclassShapes {
    @Model(isAbstract: true) class Shape {
        #Index<Shape>([\.label])
        var label: String
        @Transient var isHidden = false
        init(label: String) { self.label = label }
    }

    @Model class Polygon: Shape {
        #Unique<Polygon>([\.code])
        var corners = 3
        @Attribute(.length(1...8)) var code: String
        var notes = [String]()
        var next: Shape?
        var others = [Shape]()
        var color = "red"

        init(label: String, code: String, inner: Shape? = nil) {
            self.code = code
            let other = Circle(label: "in between")
            super.init(label: label + other.label.prefix(0))
            self.next = inner
        }

        /// Creates models of the hierarchy while this one is being created.
        init(around label: String) {
            code = "around"
            next = Circle(label: "before")
            super.init(label: Circle(label: label).label)
        }

        struct Refused: Error {}
        init(refusing code: String) throws {
            self.code = code
            if code.isEmpty { throw Refused() }
            super.init(label: code)
        }
    }

    @Model final class Square: Polygon {
        @Attribute(.indexed) var side: Double
        var metadata: Point?

        init(label: String, side: Double, metadata: Point? = nil) {
            self.side = side
            self.metadata = metadata
            super.init(label: label, code: label)
            corners = 4
        }

        /// Fails after it has related the new object, and before the superclass is initialized.
        init(refusedAt point: Point, side: Double) throws {
            self.side = side
            self.metadata = point
            if side == 0 { throw Polygon.Refused() }
            super.init(label: "", code: "")
        }
    }

    @Model final class Circle: Shape {
        var radius = 1.0
        var woken = 0

        override init(label: String) { super.init(label: label) }
    }

    @Model final class Point {
        var x = 0
        var squares: [Square] = []
        init() {}
    }
}

extension SubclassShapes.Circle: ManagedObjectLifecycle {
    func awakeFromInsert() { woken += 1 }
}
