import StrataSwiftData

/// A model whose relationships both ends describe, without an inverse.
@Model final class Crew {
    var name: String
    @Relationship(deleteRule: .cascade) var sailors: [Sailor]? = []

    init(_ name: String) { self.name = name }
}

@Model final class Sailor {
    enum Rank: String, Codable { case mate, captain }

    @Attribute(.unique) var number: Int
    var rank: Rank
    @Relationship(deleteRule: .nullify) var crew: Crew?
    @Relationship var badges: Set<Badge>? = []

    init(number: Int, rank: Rank) {
        self.number = number
        self.rank = rank
    }
}

/// A model that could also be stored as a value.
@Model final class Badge: Codable {
    var text: String

    init(_ text: String) { self.text = text }

    init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
