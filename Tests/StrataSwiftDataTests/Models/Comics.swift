import StrataSwiftData

// A collection of comics, with ids, an un-annotated end of a many-to-many relationship, and types that the compiler infers.

enum Mood: String, Codable, CaseIterable, Sendable { case calm, wild }

struct Spot: Codable, Equatable, Sendable {
    var x: Double
    var y: Double

    init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }
}

@Model final class Comic {
    #Index<Comic>([\.title], [\.addedAt, \.title])
    @Attribute(.unique) var id: UUID
    var title: String
    @Attribute(.externalStorage) var cover: Data?
    var addedAt = Date(timeIntervalSinceReferenceDate: 0)
    var pages = 0
    var price: Decimal = 0
    var mood = Mood.calm
    var spot: Spot?
    var words: [String] = []
    var panels = Array(repeating: 0, count: 2)
    @Attribute(.ephemeral) var isOpen = false
    @Transient var zoom = 1.0

    @Relationship(deleteRule: .cascade, inverse: \Progress.comic)
    var progress: Progress?
    @Relationship(inverse: \Label.comics)
    var labels: [Label]
    var notes = [Remark]()

    @Transient var shortTitle: String { String(title.prefix(3)) }

    init(title: String, labels: [Label] = []) {
        id = UUID()
        self.title = title
        self.labels = labels
    }
}

@Model final class Progress {
    var page: Int
    var comic: Comic?

    init(page: Int = 0) { self.page = page }
}

@Model final class Label {
    @Attribute(.unique) var text: String
    var comics: [Comic]

    init(_ text: String) {
        self.text = text
        comics = []
    }
}

/// A model that is not final, and belongs to one comic.
@Model class Remark {
    var text: String
    var comic: Comic

    init(_ text: String, on comic: Comic) {
        self.text = text
        self.comic = comic
    }
}
